"""Products never store a transformed operand: the planned memory of a linear layer on many matrices, and of
attention in its usual form. Products along dimensions of one element have the same bits however they are compiled."""

import json
import math
import os
import pathlib
import re
import struct

from sluice_cli import BUILD, CliTest, main

SLUICE = os.path.join(BUILD, "bin", "sluice")
SGD = "#sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false>"
ROWS, WIDTH = 1024, 1024

# The graph that `linear` builds for an input of [rows, 1, 1024].
LINEAR = f"""module @linear {{
  sluice.model "linear" format 2 phase "model" capacity {ROWS}
  sluice.state parameter @w : tensor<{WIDTH}x{WIDTH}xf32> = <"uniform", -0.5 : f64, 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<?x1x{WIDTH}xf32>) {{
    %w = sluice.get @w : tensor<{WIDTH}x{WIDTH}xf32>
    %y = sluice.einsum "abc,dc->abd" %x, %w : (tensor<?x1x{WIDTH}xf32>, tensor<{WIDTH}x{WIDTH}xf32>) -> tensor<?x1x{WIDTH}xf32>
    sluice.output "y", %y : tensor<?x1x{WIDTH}xf32>
    %s = sluice.square %y : (tensor<?x1x{WIDTH}xf32>) -> tensor<?x1x{WIDTH}xf32>
    %l = sluice.mean %s {{axes = array<i64: 0, 1, 2>}} : (tensor<?x1x{WIDTH}xf32>) -> tensor<f32>
    sluice.minimize %l, {SGD} lr @lr [@w] : tensor<f32>
  }}
}}
"""

# q, k and v are [rows, positions, heads, channels]; heads move before the positions, and back after them.
STORED, IN_FRONT = "tensor<?x24x2x20xf32>", "tensor<?x2x24x20xf32>"
TURNED, SCORES = "tensor<?x2x20x24xf32>", "tensor<?x2x24x24xf32>"
TO_FRONT = f"{{permutation = array<i64: 0, 2, 1, 3>}} : ({STORED}) -> {IN_FRONT}"
ATTENTION = f"""module @attention {{
  sluice.model "attention" format 2 phase "model" capacity 3
  sluice.state parameter @scale : tensor<24x2x20xf32> = <"uniform", 0.5 : f64, 1.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["q", "k", "v"] (%q: {STORED}, %k: {STORED}, %v: {STORED}) {{
    %scale = sluice.get @scale : tensor<24x2x20xf32>
    %each = sluice.expand %scale {{dims = array<i64: 1, 2, 3>, shape = array<i64: ?, 24, 2, 20>}} : (tensor<24x2x20xf32>) -> {STORED}
    %scaled = sluice.mul %q, %each : ({STORED}, {STORED}) -> {STORED}
    %qh = sluice.transpose %scaled {TO_FRONT}
    %kh = sluice.transpose %k {TO_FRONT}
    %vh = sluice.transpose %v {TO_FRONT}
    %kt = sluice.transpose %kh {{permutation = array<i64: 0, 1, 3, 2>}} : ({IN_FRONT}) -> {TURNED}
    %scores = sluice.einsum "abcd,abde->abce" %qh, %kt : ({IN_FRONT}, {TURNED}) -> {SCORES}
    %p = sluice.softmax %scores {{axis = 3 : i64}} : ({SCORES}) -> {SCORES}
    %y = sluice.einsum "abcd,abde->abce" %p, %vh : ({SCORES}, {IN_FRONT}) -> {IN_FRONT}
    %back = sluice.transpose %y {{permutation = array<i64: 0, 2, 1, 3>}} : ({IN_FRONT}) -> {STORED}
    sluice.output "y", %back : {STORED}
    %s = sluice.square %back : ({STORED}) -> {STORED}
    %l = sluice.mean %s {{axes = array<i64: 0, 1, 2, 3>}} : ({STORED}) -> tensor<f32>
    sluice.minimize %l, {SGD} lr @lr [@scale] : tensor<f32>
  }}
}}
"""


class ProductsTest(CliTest):
    def compiled(self, name, text, *flags):
        self.write(name + ".mlir", text)
        self.succeed(SLUICE, "compile", name + ".mlir", "-o", name, "-q", *flags)

    def phase(self, name, phase):
        return self.succeed(SLUICE, "compile", name + ".mlir", "--compile-to", phase, "-o", "-")

    def test_a_linear_layer_holds_its_weight_once(self):
        for dtype, size, flags in (("f32", 4, ()), ("f64", 8, ("--dtype", "f64"))):
            with self.subTest(dtype):
                self.compiled("linear", LINEAR, *flags)
                matrix = ROWS * WIDTH * size
                for entry, matrices in (("predict", 3), ("train_step", 4)):  # x, w and y; and the gradient of y
                    result = json.loads(self.succeed("./linear", "bench", "--entry", entry, "--seconds", "0.01", "--json"))
                    print(f"{entry} in {dtype}: planned {result['peak_bytes']} bytes, a matrix has {matrix}")
                    self.assertTrue(3 * matrix <= result["peak_bytes"] <= (matrices + 0.5) * matrix, result)

    def test_attention_stores_no_transpose(self):
        self.compiled("attention", ATTENTION)
        fused = self.phase("attention", "fused")
        predict = re.search(r'sluice\.entry @predict.*?sluice\.return', fused, re.S).group()
        self.assertEqual(re.findall(r"= sluice\.kernel \"([a-z]+)[_\d]*\"", predict), ["mul", "einsum", "softmax", "einsum"])
        self.assertNotIn("sluice.transpose", fused)
        self.assertNotIn("sluice.relayout", fused)
        self.assertIn("agree with the reference", self.succeed(SLUICE, "verify", "attention.mlir"))


    def test_dimensions_of_one_element_change_no_bit(self):
        """A batch dimension is innermost, and each free dimension of an operand has one element, or both have."""
        for equation, a, b, y in (("abc,adc->bdc", (9, 70, 8), (9, 1, 8), (70, 1, 8)), ("abc,adc->bdc", (9, 1, 8), (9, 70, 8), (1, 70, 8)),
                                  ("ab,cab->cb", (3, 2), (1, 3, 2), (1, 2)), ("abc,adc->bdc", (9, 1, 64), (9, 1, 64), (1, 1, 64))):
            with self.subTest(equation=equation, a=a, b=b):
                x, w, z = ("tensor<" + "".join(f"{size}x" for size in shape) + "f32>" for shape in (a, b, y))
                text = f"""module @units {{
  sluice.model "units" format 2 phase "model"
  sluice.graph ["a", "b"] (%a: {x}, %b: {w}) {{
    %p = sluice.einsum "{equation}" %a, %b : ({x}, {w}) -> {z}
    %y = sluice.tanh %p : ({z}) -> {z}
    sluice.output "y", %y : {z}
  }}
}}
"""
                for name, shape in (("a", a), ("b", b)):
                    numbers = [((37 * number) % 101 - 50) / 50 for number in range(math.prod(shape))]
                    self.write_npy(f"{name}.npy", "<f4", str(shape), struct.pack(f"<{len(numbers)}f", *numbers))

                def values(*options, threads="1"):
                    self.compiled("units", text, *options)
                    self.succeed("./units", "predict", "--threads", threads, "--input", "a=@a.npy", "--input", "b=@b.npy", "--output", "y=@y.npy", "-q")
                    return pathlib.Path(self.path("y.npy")).read_bytes()

                expected = values()
                self.assertTrue(any(expected[-4 * math.prod(y):]))
                for options in ((), ("--no-fuse",), ("--devices", "sim:0")):
                    self.assertEqual(values(*options, threads="2"), expected, options)
                self.assertIn("agree with the reference", self.succeed(SLUICE, "verify", "units.mlir"))


if __name__ == "__main__":
    main()
