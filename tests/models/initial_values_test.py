#!/usr/bin/env python3
"""How the parameters of a model program begin, by --init: initial_values_test.py BUILD_ROOT

Means and deviations of n drawn values lie within five of their own deviations: about 1 in a million does not."""

import array
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop())
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "data", "mnist-10k")
FAN_IN = {"conv1": 9, "conv2": 500, "fc1": 800, "fc2": 128}


def read_weights(path):
    """The f32 tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack("<Q", content[:8])
    tensors = json.loads(content[8 : 8 + size])
    tensors.pop("__metadata__", None)
    weights = {}
    for name, tensor in tensors.items():
        begin, end = tensor["data_offsets"]
        weights[name] = array.array("f", content[8 + size + begin : 8 + size + end])
    return weights


def mean(values):
    return math.fsum(values) / len(values)


def deviation(values):
    return math.sqrt(math.fsum(v * v for v in values) / len(values) - mean(values) ** 2)


class InitialValuesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, *command):
        result = subprocess.run(command, cwd=self.folder.name, text=True, capture_output=True, timeout=200, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def begin(self, init, *flags):
        """LeNet's parameters before any step."""
        model = os.path.join(self.folder.name, init)
        if not os.path.exists(model):
            self.run_program(f"{BUILD}/bin/models/lenet", "--init", init, "-o", "model.mlir")
            self.run_program(f"{BUILD}/bin/sluice", "compile", "model.mlir", "-o", model, "-q")
        self.run_program(model, "train", "--data", DATA, "--epochs", "0", "--save", "w.safetensors", *flags)
        return read_weights(os.path.join(self.folder.name, "w.safetensors"))

    def expect_moments(self, values, sigma, name):
        n = len(values)
        self.assertLess(abs(mean(values)), 5 * sigma / math.sqrt(n), name)
        self.assertLess(abs(deviation(values) - sigma), 5 * sigma / math.sqrt(2 * n), name)

    def test_notebook_draws_normal_weights_and_zero_biases(self):
        for name, values in self.begin("notebook").items():
            if name.endswith("bias"):
                self.assertTrue(all(v == 0 for v in values), name)
                continue
            self.expect_moments(values, 0.01, name)
            # A normal variable is within its deviation with probability 0.6827, a uniform one with 0.5774.
            within = sum(abs(v) < 0.01 for v in values) / len(values)
            self.assertLess(abs(within - 0.6827), 5 * 0.4655 / math.sqrt(len(values)), name)

    def test_torch_draws_uniform_weights_and_biases(self):
        for name, values in self.begin("torch").items():
            bound = 1 / math.sqrt(FAN_IN[name.partition(".")[0]])
            self.assertTrue(all(-bound <= v <= bound for v in values), name)
            self.expect_moments(values, bound / math.sqrt(3), name)

    def test_a_seed_says_which(self):
        first, same, other = (self.begin("notebook", "--seed", seed) for seed in ("3", "3", "4"))
        self.assertEqual(first, same)
        for name, values in first.items():
            if name.endswith("weight"):
                self.assertNotEqual(values, other[name], name)
        self.assertNotEqual(first["fc1.weight"][:10], first["fc2.weight"][:10])


if __name__ == "__main__":
    unittest.main(verbosity=2)
