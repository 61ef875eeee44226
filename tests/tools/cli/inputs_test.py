"""Inputs that are not regular files: pipes without a writer and endless devices are read to the end, or rejected."""

import json
import os
import struct
import subprocess

from sluice_cli import BUILD, CliTest, main

INVALID = 3


class InputsTest(CliTest):
    def setUp(self):
        super().setUp()
        os.mkfifo(self.path("pipe"))
        trained = self.executable("train", "--epochs", "0", "--save", self.path("w.safetensors"))
        self.assertEqual(trained.returncode, 0, trained.stderr)

    def readers(self, path):
        """Each option that names an input, with `path` as its value."""
        environment = self.placement_environment()
        devices = ("--devices", "cpu,sim:0", "--link", "sim:0=1GB/s,1us")
        yield "compile", lambda: self.sluice("compile", path, "-o", "out")
        yield "show", lambda: self.sluice("show", path)
        yield "verify", lambda: self.sluice("verify", path)
        yield "place", lambda: self.sluice("place", path, *devices, env=environment)
        yield "--placement", lambda: self.sluice("compile", "small.mlir", *devices, "--placement", path, env=environment)
        yield "--measured", lambda: self.sluice("place", "small.mlir", *devices, "--measured", path, env=environment)
        yield "SLUICE_CALIBRATION", lambda: self.sluice(
            "place", "small.mlir", *devices, env=dict(environment, SLUICE_CALIBRATION=path))
        yield "--weights", lambda: self.executable("eval", "--weights", path)
        yield "--input", lambda: self.executable("predict", "--weights", "w.safetensors", "--input", "image=@" + path)
        yield "--data", lambda: self.executable("train", "--epochs", "1", "--data", self.data(path))
        yield "--resume", lambda: self.executable("train", "--epochs", "0", "--resume", "--checkpoint", self.checkpoints(path))

    def data(self, path):
        folder = self.path("data_" + os.path.basename(path))
        os.mkdir(folder)
        for name in ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]:
            os.symlink(path, os.path.join(folder, name))
        return folder

    def checkpoints(self, path):
        folder = self.path("checkpoints_" + os.path.basename(path))
        os.mkdir(folder)
        os.symlink(path, os.path.join(folder, "step-000000000001.safetensors"))
        return folder

    def test_what_has_no_end_or_no_writer_is_refused(self):
        for path in [self.path("pipe"), "/dev/zero", "/dev/full", "/dev/null"]:
            for name, read in self.readers(path):
                with self.subTest(f"{name} {path}"):
                    try:
                        result = read()
                    except subprocess.TimeoutExpired as hang:
                        self.fail(str(hang))
                    if name == "--resume":  # a damaged checkpoint is skipped with a warning
                        self.assertIn("skipped a damaged checkpoint", result.stderr)
                        continue
                    self.assertEqual(result.returncode, INVALID, result.stderr)
                    self.assertIn(os.path.basename(path), result.stderr)
                    self.assertEqual(result.stdout, "")

    # y = x * alpha in f64, and j = k in i64.
    TYPES = """
module @types {
  sluice.model "types" format 2 phase "model" capacity 4
  sluice.state hyperparameter @alpha : tensor<f64> = <"constant", 0.25 : f64>
  sluice.graph ["x", "k"] (%x: tensor<?x2xf64>, %k: tensor<?xi64>) {
    %a = sluice.get @alpha : tensor<f64>
    %all = sluice.expand %a {dims = array<i64>, shape = array<i64: ?, 2>} : (tensor<f64>) -> tensor<?x2xf64>
    %y = sluice.mul %x, %all : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x2xf64>
    %j = sluice.add %k, %k : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
    sluice.output "y", %y : tensor<?x2xf64>
    sluice.output "j", %j : tensor<?xi64>
  }
}
"""

    def test_predict_sets_hyperparameters_and_widens_arrays(self):
        self.write("types.mlir", self.TYPES)
        compiled = self.sluice("compile", "types.mlir", "-q", "-o", "types")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        x, k = [0.1, -2.0, 3.5, 1e-30, 5.0, 7.25], [3, 0, 250]
        numbers = {name: struct.unpack(f"<{len(x)}{name}", struct.pack(f"<{len(x)}{name}", *x)) for name in "efd"}
        for floats, integers in (("d", "q"), ("f", "i"), ("e", "B")):
            sizes = {"d": "<f8", "f": "<f4", "e": "<f2", "q": "<i8", "i": "<i4", "B": "|u1"}
            self.write_npy("x.npy", sizes[floats], (3, 2), struct.pack(f"<6{floats}", *x))
            self.write_npy("k.npy", sizes[integers], (3,), struct.pack(f"<3{integers}", *k))
            for flags, alpha in (((), 0.25), (("--set", "alpha=-0.5"), -0.5)):
                with self.subTest(f"{floats} {integers} {flags}"):
                    out = json.loads(self.succeed(self.path("types"), "predict", "--json", "--input", "x=@x.npy", "--input", "k=@k.npy", *flags))
                    self.assertEqual(out["outputs"]["y"]["values"], [alpha * number for number in numbers[floats]])
                    self.assertEqual(out["outputs"]["j"]["values"], [2 * number for number in k])
        measured = self.run_program(self.path("types"), "bench", "--seconds", "0", "--set", "alpha=2")
        self.assertEqual(measured.returncode, 0, measured.stderr)

    def test_a_model_can_come_through_a_pipe(self):
        command = f"{BUILD}/bin/models/mlp -o - | {BUILD}/bin/sluice show /dev/stdin --phase train"
        result = self.run_program("sh", "-c", command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sluice.einsum", result.stdout)

    def test_a_pipe_without_an_end_is_read_to_a_limit(self):
        result = self.run_program(
            "sh", "-c", f"cat /dev/zero | {BUILD}/bin/sluice place small.mlir --devices cpu,sim:0 --measured /dev/stdin",
            env=self.placement_environment())
        self.assertEqual(result.returncode, INVALID, result.stderr)
        self.assertIn("has more than 67108864 bytes", result.stderr)

    def test_nowhere_to_keep_what_is_measured_is_an_error_at_once(self):
        environment = dict(os.environ, XDG_CACHE_HOME="", HOME="", SLUICE_CALIBRATION="")
        before = self.files()
        result = self.sluice("devices", "--measure", "--devices", "cpu", env=environment)
        self.assertEqual(result.returncode, INVALID, result.stderr)
        self.assertIn("SLUICE_CALIBRATION can name a file", result.stderr)
        self.assertEqual(self.files(), before)


if __name__ == "__main__":
    main()
