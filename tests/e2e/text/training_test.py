#!/usr/bin/env python3
"""Language models trained on the bundled text by Sluice and by PyTorch.

Usage: training_test.py SOURCE_ROOT BUILD_ROOT [TEST ...]

Both start with the same weights and read the same windows in the same order. Dropout is 0, so that rounding is the
only difference. Trains 50 steps with one seed or, with SLUICE_TEST_FULL=1, 2,000 steps with three; on one thread
each."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)
sys.path.insert(0, os.path.join(SOURCE, "tests", "e2e", "torch"))

import numpy as np  # noqa: E402: of the environment entered above
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from programs import Weights, gpt2  # noqa: E402: of tests/e2e/torch

torch.set_num_threads(1)
KJV = os.path.join(SOURCE, "models", "data", "kjv")
IS_FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
STEPS, SEEDS = (2000, (1, 2, 3)) if IS_FULL else (50, (1,))
BATCH = 8
ALLOWED = 0.02 if IS_FULL else 1e-4  # of the loss: omitting weight decay changes it by 1e-3 in 50 steps


def threefry(key, counter):
    """The order of runtime/io/Shuffle.cpp."""
    a, b, mask = counter >> 32, counter & 0xffffffff, 0xffffffff
    keys = (key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda)
    a, b = (a + keys[0]) & mask, (b + keys[1]) & mask
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            a = (a + b) & mask
            b = ((b << rotation | b >> (32 - rotation)) & mask) ^ a
        a, b = (a + keys[(group + 1) % 3]) & mask, (b + keys[(group + 2) % 3] + group + 1) & mask
    return a, b


def shuffled(seed, epoch, count):
    key = threefry(threefry((seed >> 32, seed & 0xffffffff), 0x73687566666c6521), epoch)
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        high, low = threefry(key, i)
        j = (high << 32 | low) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return order


def windows(part, length):
    with open(os.path.join(KJV, part + ".txt"), "rb") as file:
        tokens = np.frombuffer(file.read(), np.uint8).astype(np.int64)
    rows = (len(tokens) - 1) // length
    return tuple(torch.tensor(tokens[shift : shift + rows * length].reshape(rows, length)) for shift in (0, 1))


class Gpt2:
    name, flags, length = "gpt2", ["--layers", "4", "--width", "128", "--length", "64", "--dropout", "0"], 64

    def __init__(self, parameters):
        self.weights = Weights(parameters)
        self.optimizer = torch.optim.AdamW(self.weights.parameters.values(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)

    def loss(self, x, label):
        return gpt2(self.weights, {"tokens": x, "label": label}, len(x))[1]

    def step(self, x, label):
        self.optimizer.zero_grad()
        self.loss(x, label).backward()
        self.optimizer.step()

    @staticmethod
    def batches(seed, epoch, count):
        order = shuffled(seed, epoch, count)
        return [order[begin : begin + BATCH] for begin in range(0, count, BATCH)]


class Lstm:
    """Rows continue where the rows of the previous batch ended."""
    name, flags, length = "lstm", [], 32

    def __init__(self, parameters):
        self.lstm = torch.nn.LSTM(256, 256, 2, batch_first=True)
        for name, value in self.lstm.named_parameters():
            value.data = torch.zeros(1024) if "bias_hh" in name else parameters["lstm." + name]
        self.embedding, self.weight, self.bias = (parameters[name].requires_grad_() for name in ("embedding.weight", "fc.weight", "fc.bias"))
        self.trained = [value for name, value in self.lstm.named_parameters() if "bias_hh" not in name]
        self.trained += [self.embedding, self.weight, self.bias]
        self.optimizer = torch.optim.SGD(self.trained, lr=0.1)
        self.state = None

    def loss(self, x, label, state=None):
        y, self.last = self.lstm(self.embedding[x], state)
        return F.cross_entropy((y @ self.weight.T + self.bias).flatten(0, 1), label.flatten())

    def step(self, x, label):
        self.optimizer.zero_grad()
        (self.loss(x, label, self.state) * self.length).backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 5.0)
        self.optimizer.step()
        self.state = tuple(value.detach() for value in self.last)

    def batches(self, _seed, _epoch, count):
        self.state = None
        calls = count // BATCH
        return [[passage * calls + call for passage in range(BATCH)] for call in range(calls)]


class TrainingTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def run_program(self, *command):
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=3600, check=False)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stderr}")
        return result.stdout

    def ours(self, seed):
        """The last output line of a training run, and its initial weights."""
        begin = ["./net", "train", "--threads", "1", "--seed", str(seed)]
        self.run_program(*begin, "--epochs", "0", "--save", "w.safetensors")
        lines = self.run_program(*begin, "--steps", str(STEPS), "--weights", "w.safetensors", "--json")
        return json.loads(lines.splitlines()[-1]), load_file(os.path.join(self.folder, "w.safetensors"))

    def theirs(self, net, seed):
        """The validation loss, and the seconds per step."""
        x, label = windows("train", net.length)
        step, epoch, start = 0, 0, time.monotonic()
        while step < STEPS:
            for rows in net.batches(seed, epoch, len(x))[: STEPS - step]:
                net.step(x[rows], label[rows])
                step += 1
            epoch += 1
        seconds = (time.monotonic() - start) / STEPS
        x, label = windows("test", net.length)
        with torch.no_grad():
            return net.loss(x, label).item(), seconds

    def compare(self, kind):
        self.run_program(os.path.join(BUILD, "bin", "models", kind.name), *kind.flags, "--words", "256", "--batch", str(BATCH), "-o", "net.mlir")
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "net.mlir", "-o", "net", "-q")
        for seed in SEEDS:
            with self.subTest(seed=seed):
                line, weights = self.ours(seed)
                loss, seconds = self.theirs(kind(weights), seed)
                print(f"{kind.name}, seed {seed}, {STEPS} steps: validation loss {line['nll']:.5f}, PyTorch's {loss:.5f}; "
                      f"{1e3 * BATCH / line['images_per_s']:.1f} ms a step, PyTorch {1e3 * seconds:.1f} ms", file=sys.stderr)
                self.assertEqual(line["step"], STEPS)
                self.assertLess(loss, 3.3)  # 5.5 before the first step
                self.assertAlmostEqual(line["nll"], loss, delta=ALLOWED * loss)
                self.assertAlmostEqual(line["perplexity"], math.exp(line["nll"]), delta=1e-6 * line["perplexity"])

    def test_rows_go_on_after_a_checkpoint(self):
        self.run_program(os.path.join(BUILD, "bin", "models", "lstm"), "--words", "256", "--batch", "600", "--length", "8", "-o", "net.mlir")
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", "net.mlir", "-o", "net", "-q")
        def train(*options):
            self.run_program("./net", "train", "--save", "w.safetensors", *options)
            with open(os.path.join(self.folder, "w.safetensors"), "rb") as file:
                return file.read()
        result = subprocess.run(["./net", "train", "--epochs", "0"], cwd=self.folder, text=True, capture_output=True, timeout=100, check=True)
        self.assertIn("the last 174 of 45774 training rows are left out: every call has 600", result.stderr)
        whole = train("--steps", "6")
        train("--steps", "3", "--checkpoint", "run")
        self.assertEqual(train("--steps", "6", "--checkpoint", "run", "--resume"), whole)

    def test_gpt2_learns_as_in_pytorch(self):
        self.compare(Gpt2)

    def test_an_lstm_learns_as_in_pytorch(self):
        self.compare(Lstm)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
