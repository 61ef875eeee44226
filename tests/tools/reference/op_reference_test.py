"""Tests that the op reference documents each op completely for the author of a backend: op_reference_test.py
SOURCE_ROOT BUILD_ROOT."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (os.path.abspath(folder) for folder in sys.argv[1:3])
del sys.argv[1:3]


class OpReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(BUILD, "tools", "reference", "ops.json"), encoding="utf-8") as source:
            cls.records = json.load(source)
        with open(os.path.join(BUILD, "share", "doc", "sluice", "ops.md"), encoding="utf-8") as source:
            cls.reference = source.read()

    def generate(self, records):
        """The errors of the generator; none if it wrote the reference."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ops.json")
            with open(path, "w", encoding="utf-8") as out:
                json.dump(records, out)
            generator = os.path.join(SOURCE, "tools", "reference")
            result = subprocess.run(
                [sys.executable, "-B", os.path.join(generator, "op_reference.py"), path, os.path.join(generator, "preface.md"),
                 os.path.join(generator, "special_points.json"), os.path.join(folder, "ops.md")], text=True, capture_output=True, check=False)
            self.assertEqual(result.returncode, 1 if result.stderr else 0)
            return result.stderr.splitlines()

    def section(self, op):
        return re.search(rf"^### sluice\.{op}\n(.*?)(?=^##|\Z)", self.reference, re.M | re.S).group(1)

    def test_it_has_every_op_once(self):
        ops = sorted(self.records[name]["opName"] for name in self.records["!instanceof"]["Op"])
        self.assertEqual(sorted(re.findall(r"^### sluice\.(\w+)$", self.reference, re.M)), ops)

    def test_it_tells_operands_attributes_and_results(self):
        convolution = self.section("conv2d")
        for row in ["| `x` | tensor of f32 or f64 or f16 or bf16 |", "| `padding` | integers: [top, left, bottom, right]", "| `y` | tensor of f32 or f64 or f16 or bf16 |",
                    "**Rows.**", "**Rounding.**"]:
            self.assertIn(row, convolution)
        self.assertIn("one real, 0.01 by default: the slope below 0", self.section("leaky_relu"))
        self.assertIn("0x1BD11BDA", self.section("uniform"))
        self.assertIn("| `predicate` | a word: eq, ne,", self.section("compare"))
        self.assertIn("| `to` | a type: ", self.section("cast"))
        self.assertIn("| `type` | a type: ", self.section("uniform"))

    def test_it_has_results_and_gradients_at_special_points(self):
        points = re.search(r"^## Special points\n(.*?)(?=^## )", self.reference, re.M | re.S).group(1)
        self.assertIn("| op | x | result | gradient | in PyTorch |", points)
        self.assertRegex(points, r"\| `sluice::std\(x\)` \| 2 2 2 2 \| 0 \| 0 0 0 0 \| same \|")

    def test_what_an_op_lacks_is_an_error(self):
        for field in ["summary", "description", "rows", "rounding"]:
            records = copy.deepcopy(self.records)
            records["Conv2dOp"][field] = " "
            self.assertEqual(self.generate(records), [f"sluice.conv2d: no {field}"])

    def test_an_attribute_without_a_description_is_an_error(self):
        records = copy.deepcopy(self.records)
        stride = next(value for value, name in records["Conv2dOp"]["arguments"]["args"] if name == "stride")
        stride["def"] = records[stride["def"]]["constraint"]["def"]
        self.assertEqual(self.generate(records), ["sluice.conv2d: no description of attribute 'stride'"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
