"""Checks that every reader reports damaged input: no signal, no code 70, no hang, no leftover file.
The importer of ONNX also has a limit of memory that depends on the size of the input.

Damages valid inputs of every reader (readers.py) and runs the reader under limits of memory and
time. Inputs that fail are kept in `mutants` of the build folder. The seed repeats a run:

    python3 tests/mutants/mutants_test.py build/dev --seed 7 --count 500 --reader "model text"
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from fork_server import ForkServer
from readers import COLOURS, FULL, MODEL, WORDS, all_readers, idx, npy, safetensors, write_images
from sanitized import is_sanitized

USAGE_OR_WORSE = {0, 1, 2, 3, 4, 5, 6}
LIMITS = {"MUTANTS_BYTES": str(8 << 30), "MUTANTS_SECONDS": "60"}


class Bench:
    """A folder with valid inputs of all kinds, and the programs that read them."""

    def __init__(self, build, folder):
        self.build, self.folder, self.random = build, folder, None
        self.scratch = os.path.join(folder, "tmp")
        self.work = os.path.join(folder, "work")
        os.makedirs(self.scratch)
        os.makedirs(self.work)
        self.environment = dict(
            os.environ, **LIMITS, TMPDIR=self.scratch, XDG_CACHE_HOME=self.path("cache"), SLUICE_BACKEND_PATH=self.path("plugins"),
            SLUICE_CALIBRATION=self.path("calibration.json"))
        if is_sanitized(build):
            self.environment["MUTANTS_BYTES"] = "0"  # shadow memory is larger than any limit
            options = [os.environ.get("ASAN_OPTIONS", ""), "verify_asan_link_order=0:allocator_may_return_null=1:detect_leaks=0"]
            self.environment["ASAN_OPTIONS"] = ":".join(filter(None, options))
        self.prepare()
        self.servers = {name: ForkServer(build, path, self.environment)
                        for name, path in (("sluice", self.tool), ("logreg", self.logreg), ("small", self.path("small")),
                                           ("on_sim", self.path("on_sim")), ("colours", self.path("colours")), ("words", self.path("words")))}

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, data, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as out:
            out.write(data)
        os.chmod(self.path(name), mode)

    def read(self, name):
        with open(self.path(name), "rb") as content:
            return content.read()

    def remove(self, name):
        if os.path.exists(self.path(name)):
            os.remove(self.path(name))

    def call(self, *command):
        result = subprocess.run(command, cwd=self.work, env=self.environment, capture_output=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{command}: {result.stderr.decode()}")
        return result.stdout

    def prepare(self):
        self.tool = os.path.join(self.build, "bin", "sluice")
        self.logreg = os.path.join(self.build, "tests", "logreg")
        shutil.copytree(os.path.join(self.build, "lib", "sluice", "backends"), self.path("plugins"))
        self.write("good.mlir", MODEL)
        self.call(self.tool, "compile", "good.mlir", "-o", "small", "--dump-ir", "dump", "-q")
        self.call(self.tool, "compile", "good.mlir", "-o", "on_sim", "--devices", "sim:0", "-q")
        self.write("colours.mlir", COLOURS)
        self.call(self.tool, "compile", "colours.mlir", "-o", "colours", "-q")
        self.write("words.mlir", WORDS)
        self.call(self.tool, "compile", "words.mlir", "-o", "words", "-q")
        self.dumps = {name: self.read(f"dump/{name}") for name in ("02-train.mlir", "07-fused.mlir")}
        self.program = self.read("small")
        text = self.program[self.program.index(b'{"format":'):].decode("latin-1")
        self.plan = text[:json.JSONDecoder().raw_decode(text)[1]].encode("latin-1")
        self.stages = next(n for n in range(1000) if struct.pack("<Q", zlib.crc32(self.plan + struct.pack("<Q", n))) in self.program)
        self.weights = safetensors(w=([3, 2], [1, 2, 3, 4, 5, 6]))
        self.rows = npy((3, 3), struct.pack("<9f", *range(9)))
        self.write("good.safetensors", self.weights)
        self.write("good.npy", self.rows)
        write_images(self.path("data"))
        self.call(self.logreg, "train", "--data", "data", "--epochs", "1", "--batch", "4", "--checkpoint", "checkpoints", "-q")
        self.checkpoint = self.read("checkpoints/step-000000000004.safetensors" if os.path.exists(
            self.path("checkpoints/step-000000000004.safetensors")) else "checkpoints/step-000000000002.safetensors")
        self.call(self.tool, "place", "good.mlir", "--devices", "cpu,sim:0", "--place-entry", "predict", "--save", "good.json", "-q")
        self.placement = self.read("good.json")
        self.calibration = CALIBRATION.replace(b"MACHINE", self.machine().encode())
        self.measured = MEASURED

    def checksum(self, plan):
        """As artifact.h says, in memory."""
        return struct.pack("<Q", zlib.crc32(plan + struct.pack("<Q", self.stages)))

    def machine(self):
        text = self.call(self.tool, "devices", "--json").decode()
        found = re.search(r'"name": ?"([^"]*)"', text)
        return f"{found.group(1) if found else 'cpu'}, {os.cpu_count()} threads"

    def files(self):
        found = set()
        for folder, _, names in os.walk(self.folder):
            found.update(os.path.relpath(os.path.join(folder, name), self.folder) for name in names)
        return found

    def run(self, program, arguments):
        """The status and the peak memory of a run."""
        output = os.path.join(self.folder, "output")
        if program in self.servers:
            return self.servers[program].run(output, self.work, arguments)
        seconds = int(LIMITS["MUTANTS_SECONDS"])
        with open(output, "wb") as out:
            process = subprocess.Popen([program, *arguments], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=out, preexec_fn=lambda: signal.alarm(seconds))
        _, status, usage = os.wait4(process.pid, 0)
        return status, usage.ru_maxrss << 10

    def allowed(self, reader, size):
        """The peak memory that a reader may need for an input of `size` bytes."""
        is_measured = reader.memory and self.environment["MUTANTS_BYTES"] != "0"
        return reader.memory(size) if is_measured else float("inf")

    def close(self):
        for server in self.servers.values():
            server.close()


CALIBRATION = b"""{"format": 1, "clocks": [{"clock": "cpu", "machine": "MACHINE",
 "devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": 1000, "bytes": 4000, "seconds": 1e-06}]}},
             {"device": "sim:0", "kinds": {"einsum": [{"flops": 1000, "bytes": 4000, "seconds": 2e-06}]}}],
 "links": [{"from": "cpu", "to": "sim:0", "bytes_per_second": 12e9, "latency_s": 5e-06}]}]}
"""
MEASURED = b"""{"schedule": {"rows": 4, "measured_ms": 0.5, "work": [{"name": "einsum", "queue": "cpu", "start_ms": 0.1, "end_ms": 0.2}]}}
"""


def verdict(status, left, peak, allowed):
    """What is wrong with how a run ended; None if nothing is."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "a hang" if number == signal.SIGALRM else f"signal {number}"
    if os.WEXITSTATUS(status) not in USAGE_OR_WORSE:
        return f"code {os.WEXITSTATUS(status)}"
    if os.WEXITSTATUS(status) != 0 and left:
        return f"code {os.WEXITSTATUS(status)}, and left behind: {', '.join(sorted(left))}"
    if peak > allowed:
        return f"a peak of {peak} bytes of memory; {allowed} are allowed"
    return None


def keep(bench, reader, number, seed, damaged, arguments, problem):
    folder = os.path.join(bench.build, "mutants")
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f"{re.sub(r'[^a-z0-9]+', '-', reader.name.lower())}-{seed}-{number}")
    with open(name, "wb") as out:
        out.write(damaged)
    with open(os.path.join(bench.folder, "output"), "rb") as printed:
        text = printed.read()[:2000].decode(errors="replace")
    print(f"{reader.name}: {problem}\n  {name}\n  {arguments}\n  {text}", flush=True)


def check_seeds(bench, reader):
    """A seed that is refused undamaged would let every mutant pass."""
    for seed in reader.seeds:
        bench.random = random.Random(0)
        before = bench.files()
        program, arguments = reader.run(bench, seed)
        status, _ = bench.run(program, arguments)
        if status != 0:
            with open(os.path.join(bench.folder, "output"), encoding="utf-8") as printed:
                raise RuntimeError(f"{reader.name}: {program} {arguments} ends with {status}: {printed.read()}")
        for name in bench.files() - before:
            os.remove(os.path.join(bench.folder, name))


def attack(bench, reader, count, seed):
    """Runs `count` mutants; how many of them failed, how the others ended, and the largest peak memory."""
    failures, codes, largest = 0, {}, 0
    for number in range(count):
        chance = bench.random = random.Random(f"{seed} {reader.name} {number}")
        damaged = reader.damage(chance.choice(reader.seeds), chance)
        program, arguments = reader.run(bench, damaged)
        before = bench.files()
        status, peak = bench.run(program, arguments)
        largest = max(largest, peak)
        left = bench.files() - before - {"output"}
        left -= {name for name in left if name.split("/")[1] in reader.keep}
        problem = verdict(status, left, peak, bench.allowed(reader, len(damaged)))
        for name in left:
            os.remove(os.path.join(bench.folder, name))
        codes[status >> 8] = codes.get(status >> 8, 0) + 1
        if problem:
            failures += 1
            keep(bench, reader, number, seed, damaged, arguments, problem)
    return failures, codes, largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="build folder")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the mutations (default: %(default)s)")
    parser.add_argument("--count", type=int, default=15_000 if FULL else 700, metavar="N",
                        help="number of mutants of the readers that set no count (default: %(default)s; $SLUICE_TEST_FULL raises it to 15000)")
    parser.add_argument("--reader", metavar="NAME", help="attack only this reader, with all mutants (default: all readers)")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(options.build), folder)
        readers = [reader for reader in all_readers(bench) if options.reader in (None, reader.name)]
        weights = sum(reader.weight for reader in readers if not reader.count)
        for reader in readers:
            check_seeds(bench, reader)
            start = time.monotonic()
            count = options.count if options.reader else reader.count or -(-options.count * reader.weight // weights)
            failed, codes, largest = attack(bench, reader, count, options.seed)
            failures += failed
            ends = ", ".join(f"code {code}: {number}" for code, number in sorted(codes.items()))
            print(f"{reader.name}: {count} mutants of seed {options.seed}, {failed} failures, "
                  f"{time.monotonic() - start:.1f} s, {largest / 1e6:.0f} MB; {ends}", flush=True)
        bench.close()
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
