"""`sluice verify` on the shipped models: all kernels agree with the reference interpreter, fused and unfused.

The default run tests a few small networks. SLUICE_TEST_FULL=1 tests all programs in all precisions."""

import json
import os
import struct
import unittest
import zlib

from sluice_cli import BUILD, CliTest, main

FULL = os.environ.get("SLUICE_TEST_FULL") == "1"
PROGRAMS = sorted(os.listdir(os.path.join(BUILD, "bin", "models")))
# The reference would take hours, and gpt2 19 GB. Equal layers have the same kernels.
TEXT = ("--layers", "2", "--length", "16", "--words", "4000")
SMALLER = {"bert_base": TEXT, "gpt2": TEXT, "mlp_mixer": ("--layers", "2"), "unet": ("--size", "64"), "vit_s": ("--layers", "2")}

# y = x w + b, where w is initialized from data.
WITH_DATA = """
module @data {
  sluice.model "data" format 2 phase "model" capacity 4 values "w.safetensors"
  sluice.state parameter @w : tensor<3x2xf32> = <"data", 0.0 : f64 crc32 %d : i64>
  sluice.state parameter @b : tensor<2xf32> = <"constant", 0.5 : f64>
  sluice.graph ["x"] (%%x: tensor<?x3xf32>) {
    %%w = sluice.get @w : tensor<3x2xf32>
    %%b = sluice.get @b : tensor<2xf32>
    %%p = sluice.einsum "ab,bc->ac" %%x, %%w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %%e = sluice.expand %%b {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %%y = sluice.add %%p, %%e : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %%y : tensor<?x2xf32>
  }
}
"""


class VerifyTest(CliTest):
    def verify(self, model, *flags):
        program = self.run_program(os.path.join(BUILD, "bin", "models", model), "-o", "model.mlir")
        self.assertEqual(program.returncode, 0, program.stderr)
        result = self.sluice("verify", "model.mlir", "--json", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        verification = json.loads(result.stdout)
        self.assertTrue(verification["equal"])
        self.assertGreater(verification["largest_error"], 0)
        return verification

    def test_models_agree(self):
        for model in ("lenet", "mlp"):
            with self.subTest(model):
                fused = self.verify(model)
                one_by_one = self.verify(model, "--no-fuse", "--rows", "3", "--seed", "7")
                self.assertGreater(one_by_one["launches"], fused["launches"])

    def test_states_that_begin_with_data_agree(self):
        data = struct.pack("<6f", *range(1, 7))
        header = json.dumps({"w": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}}).encode()
        with open(self.path("w.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header + data)
        self.write("data.mlir", WITH_DATA % zlib.crc32(data))
        for flags in (), ("--dtype", "f64"):
            result = self.sluice("verify", "data.mlir", *flags)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("launches of init, predict agree with the reference", result.stdout)

    def test_small_transformers_agree(self):
        for model in ("gpt2", "bert_base"):
            with self.subTest(model):
                sizes = ("--layers", "1", "--width", "64", "--length", "8", "--words", "50", "--batch", "2")
                program = self.run_program(os.path.join(BUILD, "bin", "models", model), *sizes, "-o", "model.mlir")
                self.assertEqual(program.returncode, 0, program.stderr)
                result = self.sluice("verify", "model.mlir", "--rows", "2")
                self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipUnless(FULL, "minutes of the reference: only with SLUICE_TEST_FULL=1")
    def test_all_programs_agree_in_all_precisions(self):
        for model in PROGRAMS:
            sizes = ("--batch", "2", *SMALLER.get(model, ()))
            program = self.run_program(os.path.join(BUILD, "bin", "models", model), *sizes, "-o", "model.mlir")
            self.assertEqual(program.returncode, 0, program.stderr)
            for flags in (), ("--dtype", "f64"), ("--precision", "bf16"), ("--precision", "f16"):
                with self.subTest(model=model, flags=flags):
                    result = self.run_program(
                        os.path.join(BUILD, "bin", "sluice"), "verify", "model.mlir", "--rows", "2", *flags, timeout=3600)
                    self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_placement_is_verified_as_it_is_compiled(self):
        environment = self.placement_environment()
        program = self.run_program(os.path.join(BUILD, "bin", "models", "lenet"), "-o", "model.mlir")
        self.assertEqual(program.returncode, 0, program.stderr)
        for cap in ("", "=1MB"): # all on the accelerator, and a split
            with self.subTest(cap):
                devices = ["--devices", "cpu,sim:0" + cap, "--link", "sim:0=500MB/s,5us"]
                result = self.sluice("verify", "model.mlir", *devices, "--placement", "auto", "--json", env=environment)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(json.loads(result.stdout)["equal"])
        self.assertEqual(self.sluice("verify", "model.mlir", "--placement", "none.json", env=environment).returncode, 3)

    def test_mixed_precision_agrees(self):
        for model, precision in [("lenet", "bf16"), ("mlp", "f16")] + ([("lenet", "f16"), ("mlp", "bf16")] if FULL else []):
            with self.subTest(model=model, precision=precision):
                largest = self.verify(model, "--precision", precision)["largest_error"]
                self.assertGreater(largest, 1e-5) # for two-byte results, some of which round to the other neighbor

    def test_double_precision_agrees_closely(self):
        self.assertLess(self.verify("lenet", "--dtype", "f64")["largest_error"], 1e-10)

    def test_the_talk_names_the_entry_points(self):
        result = self.sluice("verify", "small.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("launches of init, predict agree with the reference", result.stdout)


if __name__ == "__main__":
    main()
