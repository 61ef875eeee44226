"""Real ONNX models out of Python packages: the sizes to bind, and seeded inputs.

    real_models.py FOLDER [PACKAGE...]

downloads the models of packages, of all by default, without their dependencies. Nothing of them enters the repository.
"""

import dataclasses
import fnmatch
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy

PACKAGES = ["silero-vad", "basic-pitch", "rapidocr-onnxruntime", "ddddocr", "chython-rxnmap", "openwakeword==0.4.0",
            "pipecat-ai", "piper-tts"]
# Parts of openwakeword that only prepare sound, and a model with 8 MB of names.
LEFT_OUT = {"common.onnx", "embedding_model.onnx", "melspectrogram.onnx"}


@dataclasses.dataclass
class Case:
    """One set of sizes of a model.

    inputs: for each input its shape, in which "N" is the batch; a number: bound as a constant;
    ("length", rows, n): n for each row.
    """

    pattern: str
    inputs: dict
    dims: dict = dataclasses.field(default_factory=dict)
    rows: str = ""
    integers: int = 2  # inputs of integers are below this number
    whole_floats: int = 0  # floats are whole numbers from 1 to below this number, as indices
    tolerance: float = 1e-4
    seed: int = 0

    @property
    def free(self):
        """Whether the batch is free."""
        return any("N" in shape for shape in self.inputs.values() if isinstance(shape, list))


def vad(pattern, samples, rate, **more):
    return Case(pattern, {"input": ["N", samples], "state": [2, "N", 128], **({"sr": rate} if rate else {})}, **more)


CASES = [
    Case("basic-pitch/nmp.onnx", {"serving_default_input_2:0": ["N", 43844, 1]}),
    *(Case("chython-rxnmap/rxnmap.onnx",
           {"atoms": [1, n], "neighbors": [1, n], "distances": [1, n, n], "roles": [1, n]}, {"seq_len": n}, integers=3)
      for n in (32, 50)),
    Case("ddddocr/common_det.onnx", {"images": [1, 3, 416, 416]}),
    # Its activations are rounded to 8 bits by their extremes: a change of 1e-6 of the input moves the outputs of ONNX
    # Runtime by up to 2e-2.
    *(Case("ddddocr/common_old.onnx", {"input1": [1, 1, 64, n]}, {"image_width": n}, tolerance=1e-2, seed=1)
      for n in (160, 200)),
    # The seeds give probabilities that are not close to 0.
    Case("openwakeword/alexa_v0.1.onnx", {"onnx::Flatten_0": [1, 16, 96]}),
    Case("openwakeword/hey_jarvis_v0.1.onnx", {"x.1": [1, 16, 96]}, seed=5),
    Case("openwakeword/hey_marvin_v0.1.onnx", {"onnx::Flatten_0": [1, 16, 96]}, seed=26),
    Case("openwakeword/hey_mycroft_v0.1.onnx", {"input_1": ["N", 16, 96]}),
    Case("openwakeword/timer_v0.1.onnx", {"onnx::Flatten_0": [1, 34, 96]}),
    Case("openwakeword/weather_v0.1.onnx", {"onnx::Flatten_0": [1, 22, 96]}),
    *(Case("openwakeword/silero_vad.onnx",
           {"input": ["N", n], "sr": rate, "h": [2, "N", 64], "c": [2, "N", 64]}, {"sequence": n}, "batch")
      for n, rate in ((512, 16000), (768, 8000))),
    *(vad("pipecat-ai/silero_vad.onnx", n, rate, dims={"input:1": n}, rows="input:0,state:1")
      for n, rate in ((576, 16000), (288, 8000))),
    Case("pipecat-ai/smart-turn-*.onnx", {"input_features": ["N", 80, 800]}, tolerance=1e-2),
    # The rows are sorted by their lengths, so that the batch has a size.
    *(Case("piper-tts/model.onnx",
           {"char_inputs": [rows, n], "diac_inputs": [rows, n], "input_lengths": ("length", rows, n)},
           {"batch": rows, "seq": n}, integers=15)
      for rows, n in ((1, 40), (7, 27))),
    *(Case("piper-tts/nakdimon.onnx", {"input_1": ["N", n]}, {"unk__1916": n}, whole_floats=30) for n in (40, 27)),
    # ONNX Runtime computes probabilities below 1e-6 with an error of 100 %: noise for which a few are larger.
    *(Case("rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx", {"x": ["N", 3, h, w]},
           {"p2o.DynamicDimension.1": h, "p2o.DynamicDimension.2": w}, seed=seed)
      for h, w, seed in ((320, 320, 22), (256, 384, 8))),
    *(Case("rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx", {"x": ["N", 3, 48, w]},
           {"x:2": 48, "p2o.DynamicDimension.1": w}) for w in (320, 192)),
    *(Case("rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": ["N", 3, 48, w]}, {"x:2": 48, "x:3": w})
      for w in (192, 160)),
    # Windows of 512 and 256 samples after a context of 64 and 32 samples, and a window of 256 alone.
    *(vad("silero-vad/silero_vad.onnx", n, rate, dims={"input:1": n}, rows="input:0,state:1")
      for n, rate in ((576, 16000), (288, 8000), (256, 8000))),
    *(vad("silero-vad/silero_vad_16k_op15.onnx", n, rate, dims={"sequence": n}, rows="batch")
      for n, rate in ((576, 16000), (256, 8000))),
    Case("silero-vad/silero_vad_16k_sequence.onnx", {"input": [16, 576], "h": [1, 1, 128], "c": [1, 1, 128]},
         {"sequence_length": 16}),
    Case("silero-vad/silero_vad_16k_sequence.onnx", {"input": [5, 576], "h": [1, 1, 128], "c": [1, 1, 128]},
         {"sequence_length": 5}),
    vad("silero-vad/silero_vad_half.onnx", 576, None, dims={"sequence": 576}, rows="batch", tolerance=1e-2),
    *(vad("silero-vad/silero_vad_op18_ifless.onnx", n, rate, dims={"sequence": n}, rows="batch")
      for n, rate in ((576, 16000), (288, 8000), (256, 8000))),
    Case("silero-vad/silero_vad_openvino_16k.onnx", {"input": [1, 576], "state": [2, 1, 128]}),
]

FLOATS = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(double)": numpy.float64}
INTEGERS = {"tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(uint8)": numpy.uint8}


def cases(folder):
    """Pairs of a file and each of its cases; fails for a file without one."""
    found = []
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(n for n in names if n.endswith(".onnx")):
            path = os.path.join(root, name)
            its = [c for c in CASES if fnmatch.fnmatch(os.path.relpath(path, folder), c.pattern)]
            if not its:
                sys.exit(f"{path} has no case in {__file__}")
            found += [(path, case) for case in its]
    return found


def feeds(session, case, rows):
    """Inputs for ONNX Runtime by name."""
    generator = numpy.random.default_rng(case.seed)
    values = {}
    for declared in session.get_inputs():
        shape = case.inputs[declared.name]
        if isinstance(shape, (int, float)):
            values[declared.name] = numpy.array(shape, INTEGERS[declared.type])
        elif isinstance(shape, tuple):
            values[declared.name] = numpy.full([shape[1]], shape[2], INTEGERS[declared.type])
        else:
            sizes = [rows if size == "N" else size for size in shape]
            if declared.type in INTEGERS:
                values[declared.name] = generator.integers(0, case.integers, sizes).astype(INTEGERS[declared.type])
            elif case.whole_floats:
                values[declared.name] = generator.integers(1, case.whole_floats, sizes).astype(FLOATS[declared.type])
            else:
                values[declared.name] = (generator.standard_normal(sizes) * 0.5).astype(FLOATS[declared.type])
    return values


def import_flags(case):
    """Flags of `sluice compile`."""
    flags = [f"--dim={name}={size}" for name, size in case.dims.items()]
    flags += [f"--bind={name}={value}" for name, value in case.inputs.items() if isinstance(value, (int, float))]
    return flags + ([f"--rows={case.rows}"] if case.rows else [])


def download(folder, packages=()):
    """Downloads the models into FOLDER/<package>/, unless they are there."""
    for package in packages or PACKAGES:
        target = os.path.join(folder, package.split("==")[0])
        if os.path.isdir(target):
            continue
        with tempfile.TemporaryDirectory() as work:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, package]
            if subprocess.run([*command, "--only-binary", ":all:"], check=False, stderr=subprocess.DEVNULL).returncode:
                subprocess.run(command, check=True)
            os.makedirs(target)
            for archive in os.listdir(work):
                unpack(os.path.join(work, archive), target)


def folder_of(source):
    """The folder of the models of the tests: all of them with SLUICE_TEST_FULL. Skips the test if there are none."""
    folder = os.path.join(source, "build", "onnx", "models")
    if os.environ.get("SLUICE_TEST_FULL"):
        download(folder)
    elif not os.path.isdir(folder):
        print("skipped: there is no build/onnx/models; tools/scripts/onnx-tests makes it")
        sys.exit(77)  # SKIP_RETURN_CODE
    return folder


def unpack(archive, target):
    def put(name, read):
        base = os.path.basename(name)
        if base.endswith(".onnx") and base not in LEFT_OUT:
            with open(os.path.join(target, base), "wb") as out:
                out.write(read())

    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for name in file.namelist():
                put(name, lambda name=name: file.read(name))
    else:
        with tarfile.open(archive) as file:
            for member in file.getmembers():
                if member.isfile():
                    put(member.name, lambda member=member: file.extractfile(member).read())


if __name__ == "__main__":
    download(sys.argv[1], sys.argv[2:])
