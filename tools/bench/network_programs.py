"""The programs that tools/bench/networks alternates: compiled networks, and processes of other frameworks."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from network_cases import CONVOLUTIONS, FLAGS, MODES

HERE = Path(__file__).resolve().parent
MALLOC = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"  # PyTorch's tuning guide recommends it

# The script of each peer in peers/, the modules that it imports, and its variants.
Kind = namedtuple("Kind", "script modules variants")
PEERS = {
    "torch": Kind("torch_peer.py", ("torch",), ("eager", "compile")),
    "jax": Kind("jax_peer.py", ("jax",), ("jit",)),
    "tensorflow": Kind("tensorflow_peer.py", ("tensorflow",), ("graph", "xla")),
    "onnxruntime": Kind("onnx_peer.py", ("onnxruntime", "torch", "onnxscript"), ("onnxruntime",)),
    "openvino": Kind("onnx_peer.py", ("openvino", "torch", "onnxscript"), ("openvino",)),
}
# Environment variables that restrict peers to the instructions of the compiled code, by the name of the vectors in
# `bench --kernels`. ONNX Runtime has none.
RESTRICTIONS = {"AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                         "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}}

# A program for measuring the machine: only `machine` of its figures is used.
PRODUCT = """module @product {
  sluice.model "product" format 2 phase "model" capacity 1
  sluice.graph ["x"] (%x: tensor<64x64xf32>) {
    %y = sluice.einsum "ab,cb->ac" %x, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    sluice.output "y", %y : tensor<64x64xf32>
  }
}
"""


class Failure(Exception):
    """A program failed. The text has its command and the end of its errors."""


def pinned(command, threads):
    return ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads])), *map(str, command)]


def run(command, text=None):
    done = subprocess.run(list(map(str, command)), input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))} gives {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def without_training(graph):
    """Removes training from the text of a graph: everything from `minimize` to the end of its body."""
    begin = graph.index("    sluice.minimize")
    return graph[:begin] + graph[graph.index("\n  }", begin) + 1:]


class Program:
    """A compiled graph."""

    def __init__(self, model, entry, options):
        self.model, self.path, self.options = model, model.with_suffix(""), options
        start = time.monotonic()
        self.compile("-o", self.path, "-q")
        self.compile_s = time.monotonic() - start
        self.bench = [self.path, "bench", "--entry", entry, "--json", "-q"]

    def compile(self, *flags):
        command = [self.options.build / "bin/sluice", "compile", self.model, "--no-cache", "--target-cpu", self.options.target_cpu, *flags]
        return run(pinned(command, self.options.threads))

    def measure(self, *flags, threads=None, seconds=None):
        threads = threads or self.options.threads
        seconds = self.options.seconds if seconds is None else seconds
        return json.loads(run(pinned([*self.bench, "--threads", threads, "--seconds", seconds, *flags], threads)).splitlines()[-1])

    def grouped_kernels(self):
        """The names of the kernels with a convolution in groups, such as a depthwise one."""
        if not re.search(r"\bgroups = (?!1\b)\d", self.model.read_text()):
            return set()
        functions = self.compile("--compile-to", "lowered").split("sluice.function @")[1:]
        return {re.match(r"\w+", text)[0] for text in functions if re.search(r"\bgroups = (?!1\b)\d", text)}


def program_of(case, folder, options):
    model = folder / f"{case.net}.mlir"
    run([options.build / "bin/models" / case.net, *FLAGS[case.net], "--batch", case.batch, "-o", model])
    if case.mode == "infer":
        model.write_text(without_training(model.read_text()))
    return Program(model, MODES[case.mode], options)


def measured_machine(options):
    """The machine, and its limits for one thread and for all threads with the instructions of the compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "product.mlir"
        model.write_text(PRODUCT)
        program = Program(model, "predict", options)
        limits = {threads: program.measure("--kernels", threads=threads, seconds=0)["machine"] for threads in {1, options.threads}}
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {"cpu": cpu[1] if cpu else "", "vector": limits[1]["vector"], "load": os.getloadavg()[0], "threads": options.threads,
            "one_thread": limits[1], "all_threads": limits[options.threads]}


class PeerProcess:
    """A process that prints a line of JSON once it is prepared (`ready`), and one for each line of its input.

    `ready` is None if the process ends at once, without an error."""

    def __init__(self, command, environment=None):
        self.command = command
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.ready = None
        self.ready = self.hear()

    def hear(self):
        line = self.process.stdout.readline()
        if not line and (self.process.wait() or self.ready):
            self.errors.seek(0)
            last = (self.errors.read().strip().splitlines() or [""])[-1]
            raise Failure(f"{' '.join(map(str, self.command[3:]))} gives {self.process.returncode}: {last[:300]}")
        return json.loads(line) if line else None

    def ask(self, request):
        with contextlib.suppress(BrokenPipeError):  # of a process that has ended
            print(request, file=self.process.stdin, flush=True)
        return self.hear()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class Peer(PeerProcess):
    """Prepares its step and measures on request. `ready` is None if it lacks the network or variant."""

    def __init__(self, kind, python, case, variant, vector, options):
        environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), PYTHONWARNINGS="ignore", **RESTRICTIONS.get(vector, {}))
        if kind.script == "torch_peer.py" and os.path.exists(MALLOC):
            environment["LD_PRELOAD"] = MALLOC
        self.folder = tempfile.TemporaryDirectory()
        # The cache is empty, so that the first step compiles.
        environment["TORCHINDUCTOR_CACHE_DIR"] = environment["PEER_FOLDER"] = self.folder.name
        command = [python, HERE / "peers" / kind.script, case.net, case.mode, case.batch, variant, options.threads]
        super().__init__(pinned(command, options.threads), environment)

    def measure(self, seconds):
        return self.ask(seconds)

    def close(self):
        super().close()
        self.folder.cleanup()


def installed_peers(options):
    """The first Python interpreter with the modules of each requested peer, and the peers without an interpreter."""
    find = "import importlib.util, sys; print(*filter(importlib.util.find_spec, sys.argv[1:]))"
    wanted = sorted({module for name in options.peer for module in PEERS[name].modules})
    modules = {python: run([python, "-c", find, *wanted]).split() for python in options.python}
    found, absent = {}, []
    for name in options.peer:
        able = [python for python in options.python if set(PEERS[name].modules) <= set(modules[python])]
        if able:
            found[name] = able[0]
        else:
            absent.append(name)
    return found, absent


def variants_of(name, case):
    """The variants of a peer for a case. PyTorch also has channels_last for convolutions."""
    for variant in PEERS[name].variants:
        yield variant
        if name == "torch" and case.net in CONVOLUTIONS:
            yield f"{variant}+cl"
