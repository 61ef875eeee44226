#!/usr/bin/env python3
"""Exchanges weights in both directions between a compiled LeNet and Python's safetensors: safetensors_test.py
SOURCE_ROOT BUILD_ROOT."""

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
from safetensors.numpy import load_file, save_file  # noqa: E402

DATA = os.path.join(SOURCE, "models", "data", "mnist-10k")
SHAPES = {"conv1.weight": (20, 1, 3, 3), "conv1.bias": (20,), "conv2.weight": (50, 20, 5, 5), "conv2.bias": (50,),
          "fc1.weight": (128, 800), "fc1.bias": (128,), "fc2.weight": (10, 128), "fc2.bias": (10,)}


def relu(x):
    return np.maximum(x, 0)


def conv2d(x, weight, bias):
    height, width = x.shape[2] - weight.shape[2] + 1, x.shape[3] - weight.shape[3] + 1
    y = np.zeros((x.shape[0], weight.shape[0], height, width))
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            y += np.einsum("nchw,kc->nkhw", x[:, :, i : i + height, j : j + width], weight[:, :, i, j])
    return y + bias[None, :, None, None]


def pool(x):
    rows, columns = x.shape[2] // 2, x.shape[3] // 2
    return x[:, :, : rows * 2, : columns * 2].reshape(*x.shape[:2], rows, 2, columns, 2).mean((3, 5))


def lenet(x, w):
    x = pool(relu(conv2d(x / 255.0, w["conv1.weight"], w["conv1.bias"])))
    x = pool(relu(conv2d(x, w["conv2.weight"], w["conv2.bias"])))
    x = relu(x.reshape(x.shape[0], -1) @ w["fc1.weight"].T + w["fc1.bias"])
    return x @ w["fc2.weight"].T + w["fc2.bias"]


class SafetensorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.run_program(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "64", "-o", "lenet.mlir")
        cls.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "lenet.mlir", "-o", "lenet")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.scratch.name, name)

    @classmethod
    def run_program(cls, *command):
        result = subprocess.run(command, cwd=cls.scratch.name, text=True, capture_output=True, timeout=200, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{command} gives {result.returncode}: {result.stderr}")
        return result.stdout

    def random_weights(self):
        random = np.random.default_rng(7)
        return {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in SHAPES.items()}

    def test_what_sluice_saves_python_reads(self):
        self.run_program(self.path("lenet"), "train", "--data", DATA, "--epochs", "1", "--save", "trained.safetensors")
        weights = load_file(self.path("trained.safetensors"))
        self.assertEqual({name: value.shape for name, value in weights.items()}, SHAPES)
        self.assertTrue(all(value.dtype == np.float32 and np.isfinite(value).all() for value in weights.values()))

    def test_what_python_saves_sluice_computes_with(self):
        weights = self.random_weights()
        save_file(weights, self.path("python.safetensors"))
        images = np.random.default_rng(8).integers(0, 256, (5, 1, 28, 28), dtype=np.uint8)
        np.save(self.path("x.npy"), images)
        self.run_program(self.path("lenet"), "predict", "--weights", "python.safetensors", "--input", "image=@x.npy",
                         "--output", "logits=@y.npy")
        logits, expected = np.load(self.path("y.npy")), lenet(images.astype(np.float64), weights)
        self.assertEqual(logits.shape, (5, 10))
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), equal_nan=False)

    def test_weights_survive_a_round_trip(self):
        weights = self.random_weights()
        save_file(weights, self.path("before.safetensors"))
        self.run_program(self.path("lenet"), "train", "--data", DATA, "--epochs", "0", "--weights", "before.safetensors",
                         "--save", "after.safetensors")
        after = load_file(self.path("after.safetensors"))
        for name, value in weights.items():
            np.testing.assert_array_equal(after[name], value)

    def test_eval_reports_both_figures(self):
        save_file(self.random_weights(), self.path("random.safetensors"))
        result = json.loads(self.run_program(self.path("lenet"), "eval", "--data", DATA, "--weights", "random.safetensors",
                                             "--json"))
        self.assertGreater(result["loss"], 0)
        self.assertTrue(0 <= result["accuracy"] <= 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
