#!/usr/bin/env python3
"""Networks train to the same bits on the host, on a virtual accelerator alone, and on both. In the last case the
accelerator has half of the required memory. Usage: programs_test.py SOURCE_ROOT BUILD_ROOT. With
SLUICE_TEST_FULL=1, all networks."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import numpy as np  # noqa: E402: of the environment entered above

FEW_LAYERS, FEW_WORDS = ("--batch", "2", "--layers", "2"), ("--batch", "2", "--layers", "2", "--length", "16")
PROGRAMS = {
    "lstm": ("--batch", "3", "--length", "8", "--words", "500"),
    "mobilenetv2": ("--batch", "2", "--size", "64"),
    "alexnet_r": ("--batch", "2"),
    "bert_base": FEW_WORDS,
    "fcn_r": ("--batch", "4"),
    "fcn_s": ("--batch", "2"),
    "gpt2": FEW_WORDS,
    "mlp_mixer": FEW_LAYERS,
    "resnet18": ("--batch", "2", "--size", "64"),
    "unet": ("--batch", "2", "--size", "32"),
    "vit_s": FEW_LAYERS,
}
FEW = ("lstm", "mobilenetv2")
LEFT_TO_HOST = ("mobilenetv2",)  # no part is worth the cost of its copies
CLASSES = {"unet": 2, "bert_base": 2}
DTYPES = {"u8": "uint8", "i32": "int32", "f32": "float32", "i64": "int64"}


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def succeed(self, program, *arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, f"{program} {' '.join(map(str, arguments))}: {done.stderr[-2000:]}")
        return done.stdout

    def compile(self, graph, name, *flags):
        """The path of the program."""
        self.succeed(os.path.join(BUILD, "bin/sluice"), "compile", "-q", graph, "-o", name, *flags)
        return os.path.join(self.folder, name)

    def write_graph(self, network, name, *flags):
        self.succeed(os.path.join(BUILD, "bin/models", network), *PROGRAMS[network], *flags, "-o", name)
        return name

    def draw_data(self, network, info):
        """Two batches of the network's inputs."""
        draw, arrays = np.random.default_rng(1), {}
        step = next(entry for entry in info["entries"] if entry["name"] == "train_step")
        for one in step["inputs"]:
            name, dtype, shape = one["name"], DTYPES[one["dtype"]], list(one["shape"])
            if not shape:
                continue
            shape[0] = 2 * info["capacity"]
            if "mask" in name:
                arrays[name] = np.ones(shape, dtype)
            elif dtype == "float32":
                arrays[name] = draw.random(shape, dtype=dtype)
            else:
                below = CLASSES.get(network, 10) if name == "label" else 2 if "segment" in name or "type" in name else 250
                arrays[name] = draw.integers(0, below, shape).astype(dtype)
        np.savez(os.path.join(self.folder, "data.npz"), **arrays)

    def trained(self, program):
        """The bytes of its weights after two steps."""
        self.succeed(program, "train", "-q", "--data", "data.npz", "--test-data", "data.npz", "--steps", 2, "--seed", 3, "--save",
                     "weights.safetensors")
        with open(os.path.join(self.folder, "weights.safetensors"), "rb") as file:
            return file.read()

    def step_of(self, program):
        info = json.loads(self.succeed(program, "info", "--json"))
        return next(entry for entry in info["entries"] if entry["name"] == "train_step")

    def check(self, network):
        graph = self.write_graph(network, "host.mlir")
        host = self.compile(graph, "host")
        info = json.loads(self.succeed(host, "info", "--json"))
        self.draw_data(network, info)
        expected = self.trained(host)
        alone = self.compile(self.write_graph(network, "alone.mlir", "--devices", "sim:0"), "alone")
        self.assertEqual(self.trained(alone), expected, "on the accelerator alone")
        half = info["peak_bytes"] // 2
        placed = self.compile(graph, "placed", "--devices", f"cpu,sim:0={half}B", "--link", "sim:0=100GB/s,1us", "--placement", "auto")
        step = self.step_of(placed)
        peak = step["device_peak_bytes"][1]
        self.assertLessEqual(peak, half)
        if network not in LEFT_TO_HOST:
            self.assertTrue(peak > 0 and step["copies"], "both devices have some")
        self.assertEqual(self.trained(placed), expected, "where the compiler places them")


def test_of(network):
    return lambda self: self.check(network)


for program in PROGRAMS if os.environ.get("SLUICE_TEST_FULL") else FEW:
    setattr(ProgramsTest, f"test_{program}", test_of(program))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
