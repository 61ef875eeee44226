"""`sluice verify` on the shipped models: all kernels agree with the reference interpreter, fused and one by one."""

import json
import os

from sluice_cli import BUILD, CliTest, main


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
                self.assertGreater(one_by_one["kernels"], fused["kernels"])

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
        for model in ("lenet", "mlp"):
            for precision in ("bf16", "f16"):
                with self.subTest(model=model, precision=precision):
                    largest = self.verify(model, "--precision", precision)["largest_error"]
                    self.assertGreater(largest, 1e-5) # of results in halves, some of which round the other way

    def test_double_precision_agrees_closely(self):
        self.assertLess(self.verify("lenet", "--dtype", "f64")["largest_error"], 1e-10)

    def test_the_talk_names_the_entry_points(self):
        result = self.sluice("verify", "small.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kernels of init, predict agree with the reference", result.stdout)


if __name__ == "__main__":
    main()
