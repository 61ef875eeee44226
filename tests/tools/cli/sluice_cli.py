"""Runs Sluice's programs in a temporary folder."""

import glob
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from sanitized import is_sanitized  # noqa: E402: of the folder named above

BUILD = os.path.abspath(sys.argv.pop(1))
MNIST = os.path.join(BUILD, "share", "sluice", "mnist-10k")

# A model that compiles quickly: y = relu(x w).
SMALL_MODEL = """
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %y = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}
"""


measures_memory = unittest.skipIf(is_sanitized(BUILD), "a sanitizer's own code and memory exceed any such limit")


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.write("small.mlir", SMALL_MODEL)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)

    def write_npy(self, name, descr, shape, data):
        """Writes a file in NumPy's format; `descr` is the type of its elements, such as "<f4"."""
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as out:
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)

    def write_zeros(self, folder, shape):
        """Data for training and testing: float images of zeros, of class 0."""
        for part in ("train", "test"):
            self.write_npy(f"{folder}/{part}/image.npy", "<f4", shape, bytes(4 * math.prod(shape)))
            self.write_npy(f"{folder}/{part}/label.npy", "|u1", f"({shape[0]},)", bytes(shape[0]))

    def run_program(self, *command, **options):
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60} | options
        return subprocess.run(command, cwd=self.folder, text=True, check=False, **settings)

    def sluice(self, *arguments, **options):
        return self.run_program(os.path.join(BUILD, "bin", "sluice"), *arguments, **options)

    def placement_environment(self):
        """With the plugins of the build, and without this machine's measurements."""
        return dict(
            os.environ,
            SLUICE_BACKEND_PATH=os.path.join(BUILD, "lib", "sluice", "backends"),
            SLUICE_CALIBRATION=self.path("calibration.json"))

    def model_program(self, *arguments, **options):
        return self.run_program(os.path.join(BUILD, "bin", "models", "mlp"), *arguments, **options)

    def executable(self, *arguments, **options):
        """A compiled model: logistic regression on 28 x 28 images."""
        return self.run_program(
            os.path.join(BUILD, "tests", "logreg"), *arguments, env=dict(os.environ, SLUICE_DATA=MNIST), **options)

    def succeed(self, *command):
        result = self.run_program(*command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def assert_refused(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stderr)
        for message in messages:
            self.assertIn(message, result.stderr)

    def predictions(self, program, rows):
        """The result y of a program compiled from the small model, for rows of three numbers and a w of ones."""
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, 3), }}".ljust(117) + "\n"
        with open(self.path("x.npy"), "wb") as out:
            out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            out.write(b"".join(struct.pack("<3f", *row) for row in rows))
        weights = json.dumps({"w": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}}).encode()
        with open(self.path("w.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(weights)) + weights + struct.pack("<6f", *[1] * 6))
        output = self.succeed(self.path(program), "predict", "--weights", "w.safetensors", "--input", "x=@x.npy", "--json")
        return json.loads(output)["outputs"]["y"]["values"]

    def pinned_nvrtc(self):
        wheels = glob.glob(os.path.join(BUILD, "..", "venv", "lib", "python3*", "site-packages", "nvidia", "cu13", "lib", "libnvrtc.so.13"))
        if not wheels:
            self.skipTest("the pinned NVRTC is not installed")
        return wheels[0]

    def files(self):
        return sorted(os.listdir(self.folder))


def main():
    unittest.main(verbosity=2)
