"""Runs Sluice's programs in a folder of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
MNIST = os.path.join(BUILD, "share", "sluice", "mnist-10k")

# A model that compiles in no time: y = relu(x w).
SMALL_MODEL = """
module @small {
  sluice.model "small" format 1 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %p = sluice.matmul %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %y = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}
"""


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

    def run_program(self, *command, **options):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.run(command, cwd=self.folder, text=True, timeout=60, check=False, **streams)

    def sluice(self, *arguments, **options):
        return self.run_program(os.path.join(BUILD, "bin", "sluice"), *arguments, **options)

    def placement_environment(self):
        """With the plugins of the build, and without what was measured on this machine."""
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

    def files(self):
        return sorted(os.listdir(self.folder))


def main():
    unittest.main(verbosity=2)
