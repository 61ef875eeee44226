#!/usr/bin/env python3
"""f16 and bf16 between Sluice and Python, through executables and files: halves_test.py SOURCE_ROOT BUILD_ROOT."""

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
import safetensors.torch  # noqa: E402
import torch  # noqa: E402

CASTS = """
module @casts {
  sluice.model "casts" format 2 phase "model" capacity 4096
  sluice.graph ["x"] (%x: tensor<?xf32>) {
    %f16 = sluice.cast %x {to = f16} : (tensor<?xf32>) -> tensor<?xf16>
    %bf16 = sluice.cast %x {to = bf16} : (tensor<?xf32>) -> tensor<?xbf16>
    %wide = sluice.cast %f16 {to = f32} : (tensor<?xf16>) -> tensor<?xf32>
    %brain = sluice.cast %bf16 {to = f32} : (tensor<?xbf16>) -> tensor<?xf32>
    sluice.output "f16", %f16 : tensor<?xf16>
    sluice.output "bf16", %bf16 : tensor<?xbf16>
    sluice.output "wide", %wide : tensor<?xf32>
    sluice.output "brain", %brain : tensor<?xf32>
  }
}
"""

SCALE = """
module @scale {{
  sluice.model "scale" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x{dtype}> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3x{dtype}>) {{
    %w = sluice.get @w : tensor<3x{dtype}>
    %e = sluice.expand %w {{dims = array<i64: 1>, shape = array<i64: ?, 3>}} : (tensor<3x{dtype}>) -> tensor<?x3x{dtype}>
    %y = sluice.mul %x, %e : (tensor<?x3x{dtype}>, tensor<?x3x{dtype}>) -> tensor<?x3x{dtype}>
    sluice.output "y", %y : tensor<?x3x{dtype}>
  }}
}}
"""


def bf16_bits(x):
    """Rounds to nearest even in exact arithmetic: each float becomes the nearer of its two bf16 neighbors."""
    bits = x.view(np.uint32)
    low = (bits >> 16).astype(np.uint64)

    def value(upper):
        """The start of the next binade represents infinity."""
        exponent, digits = (upper >> 7) & 0xFF, upper & 0x7F
        normal = exponent > 0
        return np.ldexp((digits + normal * 128).astype(np.float64), np.maximum(exponent, 1).astype(np.int64) - 134)

    exact = np.abs(x.astype(np.float64))
    below, above = exact - value(low), value(low + 1) - exact
    up = (above < below) | ((above == below) & (low % 2 == 1))
    return np.where(np.isinf(x), low, low + up).astype(np.uint16)


def floats():
    """All floats at bf16 and f16 values, at midpoints between two of them, and next to these; and some of all
    magnitudes."""
    magnitudes = np.random.default_rng(1).integers(0, 0x7F800001, 20000, dtype=np.uint32)
    f16 = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = [(f16[:-1].astype(np.float64) + f16[1:]) / 2, [65519.0, 65520.0, 65521.0], f16]
    bf16 = np.arange(0, 0x7F80, 7, dtype=np.uint32) << 16
    bits = [np.concatenate(ties).astype(np.float32).view(np.uint32), bf16, bf16 + 0x8000, magnitudes]
    positive = np.concatenate([more + step for more in bits for step in (0, 1)]).astype(np.uint32).view(np.float32)
    positive = positive[~np.isnan(positive)]
    return np.concatenate([positive, -positive])


class HalvesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *command):
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=200, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def compile(self, name, text, *flags):
        with open(self.path(name + ".mlir"), "w", encoding="utf-8") as out:
            out.write(text)
        self.run_program(os.path.join(BUILD, "bin", "sluice"), "compile", name + ".mlir", "-o", name, *flags)

    def casts(self, x, *flags):
        self.compile("casts", CASTS, *flags)
        np.save(self.path("x.npy"), x)
        names = ("f16", "bf16", "wide", "brain")
        self.run_program(self.path("casts"), "predict", "--input", "x=@x.npy",
                         *[text for name in names for text in ("--output", f"{name}=@{name}.npy")])
        return {name: np.load(self.path(name + ".npy")) for name in names}

    def test_casts_are_those_of_numpy_and_exact_arithmetic(self):
        x = floats()
        with np.errstate(over="ignore"):
            f16 = x.astype(np.float16)
        bf16 = bf16_bits(x)
        np.testing.assert_array_equal(bf16, torch.from_numpy(x).bfloat16().view(torch.int16).numpy().view(np.uint16))
        for cpu in ("native", "haswell"):
            with self.subTest(cpu):
                got = self.casts(x, "--target-cpu", cpu)
                np.testing.assert_array_equal(got["f16"].view(np.uint16), f16.view(np.uint16))
                np.testing.assert_array_equal(got["bf16"].view(np.uint16), bf16)
                np.testing.assert_array_equal(got["wide"].view(np.uint32), f16.astype(np.float32).view(np.uint32))
                np.testing.assert_array_equal(got["brain"].view(np.uint32), bf16.astype(np.uint32) << 16)

    def test_no_number_stays_none(self):
        nans = np.array([0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF] * 5, dtype=np.uint32).view(np.float32)
        for cpu in ("native", "haswell"):
            with self.subTest(cpu):
                got = self.casts(nans, "--target-cpu", cpu)
                self.assertTrue(np.isnan(got["f16"]).all() and np.isnan(got["wide"]).all() and np.isnan(got["brain"]).all())
                self.assertTrue(((got["bf16"].view(np.uint16) & 0x7FFF) > 0x7F80).all())

    def test_weights_and_arrays_go_both_ways(self):
        for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
            with self.subTest(name):
                self.compile("scale", SCALE.format(dtype=name))
                w, x = torch.tensor([1.5, -0.3, 7e-5], dtype=dtype), torch.tensor([[1.1, 2.2, 3.3]], dtype=dtype)
                safetensors.torch.save_file({"w": w}, self.path("w.safetensors"))
                stored = x.view(torch.int16).numpy().view(np.uint16)
                np.save(self.path("x.npy"), stored.view(np.float16 if name == "f16" else "V2"))
                self.run_program(self.path("scale"), "predict", "--weights", "w.safetensors", "--input", "x=@x.npy",
                                 "--output", "y=@y.npy")
                y = torch.from_numpy(np.load(self.path("y.npy")).view(np.int16)).view(dtype)
                self.assertTrue(torch.equal(y, x * w), f"{y} is not {x * w}")

    def test_wider_parameters_take_them(self):
        self.compile("scale", SCALE.format(dtype="f32"))
        w = torch.tensor([1.5, -0.3, 7e-5], dtype=torch.bfloat16)
        safetensors.torch.save_file({"w": w}, self.path("w.safetensors"))
        np.save(self.path("x.npy"), np.ones((1, 3), dtype=np.float32))
        self.run_program(self.path("scale"), "predict", "--weights", "w.safetensors", "--input", "x=@x.npy",
                         "--output", "y=@y.npy")
        np.testing.assert_array_equal(np.load(self.path("y.npy")), w.float().numpy()[None, :])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
