"""Everything that reads what others wrote, with something valid for each to begin with.

A reader has seeds, a way to damage them, and a run: it puts a damaged seed where its program reads it and names the program
and its arguments. What it leaves beside the seed, unless it ends with 0, is a failure.
"""

import base64
import dataclasses
import gzip
import io
import json
import os
import shutil
import struct
import typing
import zipfile
import zlib


from mutate import damage_bytes, damage_gzip, damage_text
from mutate_onnx import damage_onnx
from onnx_files import seeds

MODEL = b"""module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"uniform", -0.5 : f64, 0.5 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x3xf32>, %label: tensor<?xi64>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %y = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}
"""
COLOURS = b"""module @colours {
  sluice.model "colours" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<10x3xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["image", "label"] (%x: tensor<?x3x32x32xui8>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<10x3xf32>
    %f = sluice.cast %x {to = f32} : (tensor<?x3x32x32xui8>) -> tensor<?x3x32x32xf32>
    %m = sluice.mean %f {axes = array<i64: 2, 3>} : (tensor<?x3x32x32xf32>) -> tensor<?x3xf32>
    %y = sluice.einsum "ab,cb->ac" %m, %w : (tensor<?x3xf32>, tensor<10x3xf32>) -> tensor<?x10xf32>
    sluice.output "y", %y : tensor<?x10xf32>
    %each = sluice.softmax_cross_entropy %y, %label : (tensor<?x10xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %each {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""
WORDS = b"""module @words {
  sluice.model "words" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<256x256xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["tokens", "label"] (%x: tensor<?x1xi32>, %label: tensor<?x1xi32>) {
    %w = sluice.get @w : tensor<256x256xf32>
    %i = sluice.reshape %x {shape = array<i64: ?>} : (tensor<?x1xi32>) -> tensor<?xi32>
    %l = sluice.reshape %label {shape = array<i64: ?>} : (tensor<?x1xi32>) -> tensor<?xi32>
    %y = sluice.gather %w, %i {axis = 0 : i64} : (tensor<256x256xf32>, tensor<?xi32>) -> tensor<?x256xf32>
    %each = sluice.softmax_cross_entropy %y, %l : (tensor<?x256xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %each {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""
VOCABULARY = {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "aba": 4, "abab": 5}
MERGES = b"#version: 0.2\na b\nab a\nab ab\n"
JPEG = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6
T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAQABADASIAAhEBAxEB
/8QAFQABAQAAAAAAAAAAAAAAAAAABQH/xAAYEAEAAwEAAAAAAAAAAAAAAAABAAMiBP/EABUBAQEAAAAAAAAAAAAAAAAAAAID/8QAGREAAgMBAAAAAAAAAA
AAAAAAAAIDBBES/9oADAMBAAIRAxEAPwC0OiLUOSCUOyM87ghaxpKFuj//2Q==
""")
EXCLUSIONS = b"# of the simulator\nop.add: it cannot add\nmemory.*: it forgets\n"
FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
DEVICES = ["cpu", "cpu,sim:0", "cpu,sim:0=16GB,sim:1", "cpu,sim:0=512MiB"]
LINKS = ["sim:0=12GB/s,5us", "sim:0=3GB/s,100ns", "sim:0=1.5TB/s"]


@dataclasses.dataclass
class Reader:
    name: str
    seeds: typing.List[bytes]
    damage: typing.Callable  # (seed, random) -> bytes
    run: typing.Callable     # (bench, damaged) -> (program, arguments)
    weight: int = 1          # of this reader among those without a count
    count: int = 0           # of its mutants
    memory: typing.Optional[typing.Callable] = None  # size of an input -> peak memory that is allowed, in bytes
    keep: typing.Tuple[str, ...] = ()  # files that it may leave, beside those that were there


def npy(shape, data, descr="<f4"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors(**tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npz(compression, **arrays):
    """As numpy.savez writes it, or numpy.savez_compressed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in arrays.items():
            info = zipfile.ZipInfo(name + ".npy")
            info.compress_type = compression
            with archive.open(info, "w", force_zip64=True) as member:
                member.write(data)
    return content.getvalue()


def cifar(rows):
    return b"".join(bytes([row % 10]) + bytes(range(256)) * 12 for row in range(rows))


def idx(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return struct.pack(f">{len(sizes) + 1}I", 0x800 + len(sizes), *sizes) + bytes(i % 10 for i in range(count))


def write_images(folder):
    """An MNIST-style folder of eight images for training and testing each."""
    os.makedirs(folder)
    for part in ("train", "t10k"):
        for name, data in (("images-idx3-ubyte", idx(8, 28, 28)), ("labels-idx1-ubyte", idx(8))):
            with open(os.path.join(folder, f"{part}-{name}"), "wb") as out:
                out.write(data)


def compile_text(bench, damaged):
    bench.write("bad.mlir", damaged)
    return "sluice", ["compile", "bad.mlir", "-o", "bad.out", "--compile-to", bench.random.choice(["train", "fused", "planned"])]


def compile_whole(bench, damaged):
    bench.write("bad.mlir", damaged)
    return "sluice", ["compile", "bad.mlir", "-o", "bad.o", "--emit", "obj", "-q"]


def import_onnx(bench, damaged):
    bench.write("bad.onnx", damaged)
    if bench.random.random() < 0.2:
        return "sluice", ["import", "bad.onnx", "--check"]
    return "sluice", ["compile", "bad.onnx", "-o", "bad.out", "--compile-to", bench.random.choice(["model", "fused"])]


def place_with(name, flag=None):
    def run(bench, damaged):
        for file, data in {"calibration.json": bench.calibration, name: damaged}.items():
            bench.write(file, data)
        chosen = [flag, name] if flag else []
        return "sluice", ["place", "good.mlir", "--devices", "cpu,sim:0", "--place-entry", "predict", "-q", *chosen]
    return run


def compile_for(flag):
    def run(_, damaged):
        text = damaged.replace(b"\x00", b"")
        arguments = ["compile", "good.mlir", "-o", "good.out", "--compile-to", "planned", "--placement", "auto", "--place-entry", "predict"]
        more = [] if flag == "--devices" else ["--devices", "cpu,sim:0"]
        return "sluice", arguments + more + [os.fsencode(flag) + b"=" + text]
    return run


def check_exclusions(bench, damaged):
    bench.write("plugins/sim.exclusions", damaged)
    return "sluice", ["conformance", "--backend", "sim", "--only", "op.neg"]


def train_on(name):
    def run(bench, damaged):
        for part in ("train", "t10k"):
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
                for ending in ("", ".gz"):
                    bench.remove(f"images/{part}-{kind}{ending}")
        write_all = {f"{part}-{kind}": data for part in ("train", "t10k")
                     for kind, data in (("images-idx3-ubyte", idx(8, 28, 28)), ("labels-idx1-ubyte", idx(8)))}
        del write_all[name.removesuffix(".gz")]
        for other, data in write_all.items():
            bench.write(f"images/{other}", data)
        bench.write(f"images/{name}", damaged)
        return "logreg", ["train", "--data", "images", "--epochs", "1", "--batch", "4", "--save", "w.out", "-q"]
    return run


def rows_of_images():
    """The images and labels of .npy files."""
    return npy((8, 28, 28), bytes(i % 251 for i in range(8 * 784)), "|u1"), npy("(8,)", bytes(range(8)), "|u1")


def train_on_npy(bench, damaged):
    bench.write("rows/image.npy", damaged)
    bench.write("rows/label.npy", rows_of_images()[1])
    return "logreg", ["train", "--data", "rows", "--epochs", "1", "--batch", "4", "--save", "w.out", "-q"]


def train_on_npz(bench, damaged):
    bench.write("rows.npz", damaged)
    return "logreg", ["train", "--data", "rows.npz", "--test-data", "rows.npz", "--epochs", "1", "--batch", "4", "--save", "w.out", "-q"]


def train_on_npz_with(bench, damaged):
    return train_on_npz(bench, npz(zipfile.ZIP_DEFLATED, image=damaged, label=rows_of_images()[1]))


def train_on_cifar(bench, damaged):
    for batch in range(1, 6):
        bench.write(f"cifar/data_batch_{batch}.bin", damaged if batch == 3 else cifar(2))
    return "colours", ["train", "--data", "cifar", "--epochs", "1", "--save", "w.out", "-q"]


def png(width, height):
    """Of noise, in colours."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((7 * row + 5 * i) % 256 for i in range(3 * width)) for row in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def train_on_picture(ending):
    def run(bench, damaged):
        shutil.rmtree(bench.path("pictures"), ignore_errors=True)
        bench.write("pictures/ant/0.png", png(9, 5))
        bench.write("pictures/bee/1." + ending, damaged)
        return "colours", ["train", "--data", "pictures", "--epochs", "1", "--save", "w.out", "-q"]
    return run


def train_on_words(name):
    def run(bench, damaged):
        for file, data in {"vocab.json": json.dumps(VOCABULARY).encode(), "merges.txt": MERGES, "x.txt": b"abab ab aabb ab", name: damaged}.items():
            bench.write(file, data)
        is_binary = name.endswith(".bin")
        return "words", ["train", "--data", name if is_binary else "x.txt", "--epochs", "1", "--save", "w.out", "-q",
                         *([] if is_binary else ["--tokenizer", "."])]
    return run


def compile_with_values(bench, damaged):
    begins = b'<"data", 0.0 : f64 crc32 %d : i64>' % zlib.crc32(bench.weights[-24:])
    bench.write("valued.mlir", MODEL.replace(b'<"uniform", -0.5 : f64, 0.5 : f64>', begins)
                .replace(b"capacity 4", b'capacity 4 values "valued.safetensors"'))
    bench.write("valued.safetensors", damaged)
    return "sluice", ["compile", "valued.mlir", "-o", "valued.o", "--emit", "obj", "-q"]


def resume(bench, damaged):
    shutil.rmtree(bench.path("checkpoints"), ignore_errors=True)
    bench.write("checkpoints/step-000000000002.safetensors", damaged)
    return "logreg", ["train", "--data", "data", "--epochs", "1", "--batch", "4", "--checkpoint", "checkpoints", "--resume", "-q"]


def predict_with(name):
    def run(bench, damaged):
        files = {"w.safetensors": bench.weights, "x.npy": bench.rows, name: damaged}
        for file, data in files.items():
            bench.write(file, data)
        return "small", ["predict", "--weights", "w.safetensors", "--input", "x=@x.npy", "--output", "y=@y.npy"]
    return run


def run_plan(bench, damaged):
    """The executable with another plan of the same length."""
    size = len(bench.plan)
    bench.write("edited", bench.program.replace(bench.plan, damaged[:size].ljust(size)), mode=0o755)
    return "./edited", ["predict", "--weights", "good.safetensors", "--input", "x=@good.npy"]


def read_plan(bench, damaged):
    """The same with a checksum that fits: read, and not run, for such a plan may do anything."""
    plan = damaged[:len(bench.plan)].ljust(len(bench.plan))
    program = bench.program.replace(bench.plan, plan)
    bench.write("edited", program.replace(bench.checksum(bench.plan), bench.checksum(plan)), mode=0o755)
    return "./edited", ["info"]


def set_flags(_, damaged):
    words = damaged.replace(b"\x00", b"").split(b"\n")
    return "logreg", ["train", "--data", "data", "--epochs", "1", *words]


def set_backend(_, damaged):
    text = damaged.replace(b"\x00", b"")
    return "on_sim", ["predict", "--weights", "good.safetensors", "--input", "x=@good.npy", b"--sim=" + text]


def all_readers(bench):
    images, labels, rows = idx(8, 28, 28), idx(8), rows_of_images()
    flags = [b"--batch\n4\n--set\nlr=0.1", b"--seed\n7\n--threads\n2", b"--batch\n4\n--checkpoint\ncheckpoints\n--checkpoint-every\n1\n--resume\n--json"]
    settings = [b"seed=7,link=12GB/s,latency=5us", b"seed=1"]
    return [
        Reader("model text", [MODEL, *bench.dumps.values()], damage_text, compile_text, weight=6),
        Reader("model text, bytes", [MODEL, *bench.dumps.values()], damage_bytes, compile_text, weight=2),
        Reader("model text to code", [MODEL], damage_text, compile_whole),
        Reader("ONNX", seeds(), damage_onnx, import_onnx, count=5000 if FULL else 500, memory=lambda size: 4 * size + 200_000_000),
        Reader("images", [images], damage_bytes, train_on("train-images-idx3-ubyte")),
        Reader("labels", [labels], damage_bytes, train_on("t10k-labels-idx1-ubyte")),
        Reader("images, gzip", [gzip.compress(images, mtime=0)], damage_gzip, train_on("t10k-images-idx3-ubyte.gz")),
        Reader("labels, gzip", [gzip.compress(labels, mtime=0)], damage_gzip, train_on("train-labels-idx1-ubyte.gz")),
        Reader("rows of npy", [rows[0]], damage_bytes, train_on_npy),
        Reader("npz", [npz(method, image=rows[0], label=rows[1]) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)], damage_bytes,
               train_on_npz, weight=2),
        Reader("npz, inside", [rows[0]], damage_bytes, train_on_npz_with),
        Reader("cifar", [cifar(2)], damage_bytes, train_on_cifar),
        Reader("JPEG", [JPEG], damage_bytes, train_on_picture("jpg")),
        Reader("PNG", [png(7, 9)], damage_bytes, train_on_picture("png")),
        Reader("tokens", [struct.pack("<6i", *range(6))], damage_bytes, train_on_words("x.i32.bin")),
        Reader("text in tokens", [b"abab ab aabb ab"], damage_bytes, train_on_words("x.txt")),
        Reader("vocabulary", [json.dumps(VOCABULARY).encode()], damage_text, train_on_words("vocab.json")),
        Reader("merges", [MERGES], damage_text, train_on_words("merges.txt")),
        Reader("initial values", [bench.weights], damage_bytes, compile_with_values),
        Reader("npy", [bench.rows], damage_bytes, predict_with("x.npy")),
        Reader("safetensors", [bench.weights], damage_bytes, predict_with("w.safetensors")),
        Reader("checkpoint", [bench.checkpoint], damage_bytes, resume, keep=("checkpoints",)),
        Reader("plan", [bench.plan], damage_text, run_plan),
        Reader("plan with its checksum", [bench.plan], damage_text, read_plan, weight=2),
        Reader("placement", [bench.placement], damage_text, place_with("bad.json", "--placement")),
        Reader("placement, bytes", [bench.placement], damage_bytes, place_with("bad.json", "--placement")),
        Reader("calibration", [bench.calibration], damage_text, place_with("calibration.json")),
        Reader("measured schedule", [bench.measured], damage_text, place_with("bad.json", "--measured")),
        Reader("devices", [text.encode() for text in DEVICES], damage_bytes, compile_for("--devices")),
        Reader("links", [text.encode() for text in LINKS], damage_text, compile_for("--link")),
        Reader("exclusions", [EXCLUSIONS], damage_text, check_exclusions),
        Reader("flags of an executable", flags, damage_text, set_flags, keep=("checkpoints",)),
        Reader("settings of a backend", settings, damage_text, set_backend),
    ]
