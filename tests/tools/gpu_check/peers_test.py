"""Tests that the peers in gpu_check's benchmarks are the same networks as Sluice's: peers_test.py SOURCE_ROOT
BUILD_ROOT. With equal weights PyTorch and JAX compute the same results, and so does Sluice if its parameters have
PyTorch's names. All have equally many parameters. Needs a Python with both, set by SLUICE_PEERS_PYTHON.
SLUICE_TEST_FULL=1 includes the largest networks."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import numpy as np  # noqa: E402: of the environment entered above
from safetensors.numpy import save_file  # noqa: E402

PYTHON = os.environ.get("SLUICE_PEERS_PYTHON", "")
PEERS = os.path.join(SOURCE, "tools/gpu_check/peers")
TOLERANCE = 1e-4  # relative to the largest logit: f32, and dozens of layers with other orders of sums
IMAGES, WORDS = ("--input", "f32"), ("--length", "8")
# For each network: flags of its program.
NETS = {"lenet": IMAGES, "mlp": IMAGES, "fcn_r": IMAGES, "alexnet_r": IMAGES, "resnet56": IMAGES, "resnet18": IMAGES, "resnet50": IMAGES, "mobilenetv2": IMAGES,
        "unet": IMAGES, "mlp_mixer": IMAGES, "vit_s": IMAGES, "lstm": WORDS, "lstm_lm": WORDS, "gpt2": WORDS, "bert_base": WORDS}
LARGE = {"alexnet_s": IMAGES, "fcn_s": IMAGES}
# Parts of PyTorch's parameter names for GPT-2, and Sluice's names, whose matrices are transposed.
RENAMED = {"gpt2": {".c_attn.": ".attn.c_attn.", ".c_proj.": ".attn.c_proj.", ".c_fc.": ".mlp.c_fc.", ".c_mlp_proj.": ".mlp.c_proj."}}
OTHER_NAMES = ("bert_base", "vit_s", "fcn_r", "fcn_s")  # names differ from PyTorch's: only the parameters are counted

if not PYTHON:
    print("skipped: SLUICE_PEERS_PYTHON names no Python with PyTorch and JAX")
    sys.exit(environment.SKIPPED)


def as_ours(net, name, value):
    for theirs, own in RENAMED.get(net, {}).items():
        if theirs in name:
            return name.replace(theirs, own), np.ascontiguousarray(value.T)
    return name, value


class PeersTest(unittest.TestCase):
    def run_program(self, *command):
        done = subprocess.run(list(map(str, command)), cwd=self.folder, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr[-2000:]}")
        return done.stdout + done.stderr

    def assert_close(self, found, expected, what):
        self.assertEqual(found.shape, expected.shape, what)
        error, allowed = np.abs(found - expected).max(), TOLERANCE * np.abs(expected).max()
        self.assertTrue(error <= allowed, f"{what}: {error} of {np.abs(expected).max()}")

    def compare(self, net, flags):
        said = self.run_program(f"{BUILD}/bin/models/{net}", *flags, "--batch", 2, "-o", "model.mlir")
        self.run_program(PYTHON, "-B", os.path.join(SOURCE, "tests/tools/gpu_check/peers_forward.py"), PEERS, net, self.folder / "peers.npz")
        arrays = dict(np.load(self.folder / "peers.npz"))
        weights = {name.split(" ", 1)[1]: value for name, value in arrays.items() if name.startswith("weight ")}
        count = sum(value.size for name, value in weights.items() if "running_" not in name)
        self.assertIn(f"{net}: {count} parameters,", said)
        for mode in ("infer", "train"):
            if f"torch {mode}" in arrays:
                self.assert_close(arrays[f"jax {mode}"], arrays[f"torch {mode}"], f"{net}: JAX in {mode}")
        self.assert_close(arrays["jax loss"], arrays["torch loss"], f"{net}: JAX's loss")
        if net in OTHER_NAMES:
            return
        save_file(dict(as_ours(net, *weight) for weight in weights.items()), self.folder / "weights.safetensors")
        image = "image" if flags == IMAGES else "tokens"
        np.save(self.folder / "x.npy", arrays["x"].astype(np.float32 if flags == IMAGES else np.int32))
        self.run_program(f"{BUILD}/bin/sluice", "compile", "model.mlir", "-q", "-o", "model")
        self.run_program("./model", "predict", "--weights", "weights.safetensors", "--input", f"{image}=@x.npy", "--output", "logits=@y.npy")
        self.assert_close(np.load(self.folder / "y.npy"), arrays["torch infer"], f"{net}: ours")

    def test_they_compute_the_same(self):
        for net, flags in (NETS | LARGE if os.environ.get("SLUICE_TEST_FULL") else NETS).items():
            with self.subTest(net), tempfile.TemporaryDirectory() as folder:
                self.folder = Path(folder)
                self.compare(net, flags)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
