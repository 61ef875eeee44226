"""PyTorch's new exporter, with the steps of models/from_pytorch/README.md: exporter_test.py SOURCE BUILD

Outputs and the losses of fine-tuned heads agree with PyTorch's, with 1 and 7 rows. Runs with SLUICE_TEST_FULL, in the
Python that SLUICE_PEERS_PYTHON names: it needs PyTorch 2.5 or later and onnxscript.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path[:0] = [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tests/tools/readme")]
from environment import SKIPPED
from readme_test import check_code, write_package

PYTHON = os.environ.get("SLUICE_PEERS_PYTHON", "")
DOCUMENT = os.path.join(SOURCE, "models/from_pytorch")
OUTPUTS, LOSSES = "1e-5", "1e-4"  # allowed differences, relative to the largest number


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


if not os.environ.get("SLUICE_TEST_FULL"):
    skip("runs with SLUICE_TEST_FULL")
if not PYTHON:
    skip("SLUICE_PEERS_PYTHON names no Python with PyTorch and onnxscript")
if sys.executable != PYTHON:  # not their real paths: a virtual environment links to the system's Python
    os.execv(PYTHON, [PYTHON, "-B", *sys.argv])
if not all(importlib.util.find_spec(package) for package in ("torch", "onnxscript")):
    skip(f"{PYTHON} has no torch or no onnxscript")


class ExporterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        write_package(SOURCE, BUILD, cls.folder.name)
        with open(os.path.join(DOCUMENT, "README.md"), encoding="utf-8") as text:
            check_code(text.read(), "README.md", SOURCE, cls.folder.name)
        cls.shell("g++ -std=c++20 -O2 fine_tune.cpp -o fine_tune $(PKG_CONFIG_PATH=. pkg-config --cflags --libs sluice)")

    @classmethod
    def shell(cls, command):
        done = subprocess.run(["bash", "-c", command], cwd=cls.folder.name, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{command}: code {done.returncode}: {done.stdout}{done.stderr}"[-2000:])
        return done.stdout

    def check_rows(self, rows):
        self.shell(f"'{PYTHON}' -B '{DOCUMENT}/export.py' . --dynamo --rows {rows}")
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "resnet18.onnx.data")), "the new exporter writes this file")
        for name in ("resnet18", "transformer"):
            with self.subTest(name=name, rows=rows):
                self.shell(f"'{BUILD}/bin/sluice' compile {name}.onnx -o {name} -q")
                self.shell(f"./{name} predict --input x=@{name}_x.npy --output logits=@y.npy")
                self.shell(f"'{PYTHON}' -B '{DOCUMENT}/compare.py' {name}_logits.npy y.npy {OUTPUTS}")
                self.shell(f"./fine_tune {name} > tuned.txt")
                self.shell(f"'{PYTHON}' -B '{DOCUMENT}/compare.py' {name}_losses.txt tuned.txt {LOSSES}")

    def test_one_row(self):
        self.check_rows(1)

    def test_seven_rows(self):
        self.check_rows(7)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
