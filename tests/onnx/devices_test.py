"""Real ONNX models on several devices, replicas and CUDA: devices_test.py SOURCE BUILD [PART-OF-A-NAME]

Outputs on virtual devices, with automatic placement, with pins by name and on replicas, are equal to those of the CPU,
bit for bit. The IR shows the copies that pins require.
`sluice verify` compares every kernel with the reference. NVRTC compiles the kernels for a GPU that need not exist: the
object contains its machine code, and the assembler has reported the registers of every kernel.
Runs with SLUICE_TEST_FULL; by default, only with the smallest model.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from environment import enter

MODELS = {"silero_vad_16k_op15": 4, "ch_PP-OCRv4_det_infer": 2, "ch_PP-OCRv4_rec_infer": 4, "rxnmap": 1}
SMALLEST = "silero_vad_16k_op15"
DEVICES = {
    "two virtual devices": ["--devices", "cpu,sim:0", "--placement", "auto"],
    "no device of the host": ["--devices", "sim:0"],
    "two replicas": ["--devices", "sim:0-1", "--replicas", "2"],
}
CUDA = ["--devices", "cuda:0", "--backend", "cuda=arch=sm_90", "--emit", "obj", "--no-cache", "--json"]
CUDA_MACHINE = 190  # EM_CUDA of an ELF file


class Model:
    def __init__(self, build, path, case, rows, work):
        import numpy
        import onnxruntime
        import real_models
        self.build, self.work, self.rows = build, work, rows if case.free else 1
        self.flags = real_models.import_flags(case)
        self.path = path
        onnxruntime.set_default_logger_severity(4)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs, self.outputs = [], [output.name for output in session.get_outputs()]
        for number, (name, value) in enumerate(real_models.feeds(session, case, self.rows).items()):
            if not isinstance(case.inputs[name], (int, float)):
                numpy.save(f"{work}/x{number}.npy", value)
                self.inputs += ["--input", f"{name}=@{work}/x{number}.npy"]
        self.run("import", path, "-o", f"{work}/m.mlir", *self.flags)

    def run(self, *arguments):
        done = subprocess.run([f"{self.build}/bin/sluice", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"sluice {' '.join(arguments[:2])}: code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def predict(self, *flags):
        """The bytes of all outputs of a program that is compiled with these flags."""
        self.run("compile", f"{self.work}/m.mlir", "-o", f"{self.work}/p", "--batch", str(self.rows), "-q", *flags)
        outputs = [part for number, name in enumerate(self.outputs)
                   for part in ("--output", f"{name}=@{self.work}/y{number}.npy")]
        subprocess.run([f"{self.work}/p", "predict", *self.inputs, *outputs], check=True, capture_output=True)
        return [open(f"{self.work}/y{number}.npy", "rb").read() for number in range(len(self.outputs))]

    def pin(self):
        """Pins every other group of ops and every other weight to the virtual device; returns the flags of the pins."""
        flags = ["--devices", "cpu,sim:0", "--place-entry", "predict"]
        self.run("place", f"{self.work}/m.mlir", *flags, "--save", f"{self.work}/pins.json", "-q")
        with open(f"{self.work}/pins.json", encoding="utf-8") as file:
            saved = json.load(file)
        pins = saved["placement"] = {name: "gpu(0)" if number % 2 else "cpu" for number, name in enumerate(saved["placement"])}
        with open(f"{self.work}/pins.json", "w", encoding="utf-8") as file:
            json.dump(saved, file)
        flags += ["--placement", f"{self.work}/pins.json"]
        self.run("place", f"{self.work}/m.mlir", *flags, "--save", f"{self.work}/kept.json", "-q")
        with open(f"{self.work}/kept.json", encoding="utf-8") as file:
            if json.load(file)["placement"] != pins:
                raise RuntimeError("pins changed")
        return flags

    def copies(self, *flags):
        """The number of copies in the IR."""
        return self.run("show", f"{self.work}/m.mlir", "--phase", "copied", *flags).count(" = sluice.copy ")

    def cuda(self):
        """The number of kernels for the GPU, the names of their functions, and the number of files of machine code."""
        facts = json.loads(self.run("compile", f"{self.work}/m.mlir", "-o", f"{self.work}/cuda.o", *CUDA))
        kernels = sum(device["kernels"] for device in facts["devices"] if device["spelling"] == "cuda:0")
        functions = [each["function"] for each in facts["functions"] if each["target"] == "sm_90" and each["registers"] > 0]
        with open(f"{self.work}/cuda.o", "rb") as file:
            code = file.read()
        machines = [int.from_bytes(code[at.start() + 18:at.start() + 20], "little") for at in re.finditer(b"\x7fELF", code)]
        return kernels, functions, machines.count(CUDA_MACHINE)


def check_pins(model, name, expected):
    flags = model.pin()
    copies = model.copies(*flags)
    print(name, f"pinned by name: {copies} copies", flush=True)
    problems = [] if copies and not model.copies() else [f"{name}: the IR shows {copies} copies with pins"]
    return problems if model.predict(*flags) == expected else [*problems, f"{name}: other bits with pins"]


def check_cuda(model, name):
    kernels, functions, files = model.cuda()
    print(name, f"for CUDA: {kernels} kernels, {len(functions)} functions in {files} files of sm_90", flush=True)
    if 0 < kernels <= len(functions) and files > 0:
        return []
    return [f"{name}: {kernels} kernels for CUDA have {len(functions)} functions in {files} files of machine code"]


def check(model, name):
    expected = model.predict()
    problems = check_pins(model, name, expected)
    for what, flags in DEVICES.items():
        if "replicas" in what and model.rows == 1:
            continue
        if model.predict(*flags) != expected:
            problems.append(f"{name}: other bits on {what}")
    print(name, model.run("verify", f"{model.work}/m.mlir", "--rows", str(min(model.rows, 2))).strip(), flush=True)
    return problems + check_cuda(model, name)


def main(source, build, part=""):
    full = os.environ.get("SLUICE_TEST_FULL")
    enter(source)
    import real_models
    folder = real_models.folder_of(source)
    problems, seen = [], set()
    for path, case in real_models.cases(folder):
        name = os.path.splitext(os.path.basename(path))[0]
        if name not in MODELS or name in seen or part not in name or not (full or name == SMALLEST):
            continue
        seen.add(name)
        with tempfile.TemporaryDirectory() as work:
            try:
                problems += check(Model(build, path, case, MODELS[name], work), name)
            except RuntimeError as error:
                problems.append(f"{name}: {error}")
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(*sys.argv[1:])
