"""Calls in microbatches end to end: compilation, training, resuming, reports; and the errors."""

import json
import os
import re

from sluice_cli import BUILD, CliTest, main


class MicrobatchesTest(CliTest):
    TRAIN = ("train", "--batch", "50", "--json", "--seed", "3")

    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "64", "-o", "lenet.mlir")

    def compile(self, *arguments):
        return self.sluice("compile", "lenet.mlir", "-q", *arguments, env=self.environment)

    def program(self, name, *arguments):
        result = self.compile(*arguments, "-o", name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path(name)

    def run_here(self, *arguments):
        result = self.run_program(*arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def losses(self, *arguments):
        return [json.loads(line)["loss"] for line in self.run_here(*arguments).splitlines() if "loss" in line]

    def assert_close(self, some, others, allowed=1e-3):
        self.assertEqual(len(some), len(others))
        for one, other in zip(some, others):
            self.assertTrue(abs(one - other) <= allowed * abs(one), (some, others))

    def test_they_train_as_one(self):
        whole = self.losses(self.program("whole"), *self.TRAIN, "--epochs", "1")
        self.assert_close(whole, self.losses(self.program("cut", "--accumulate", "4"), *self.TRAIN, "--epochs", "1"))
        replicas = ("--replicas", "3", "--devices", "sim:0-2", "--accumulate", "2")
        self.assert_close(whole, self.losses(self.program("replicas", *replicas), *self.TRAIN, "--epochs", "1"))

    def test_a_checkpoint_is_of_any_number_of_them(self):
        whole, cut = self.program("whole"), self.program("cut", "--accumulate", "2")
        expected = self.losses(whole, *self.TRAIN, "--epochs", "2")
        for first, then in ((whole, cut), (cut, whole)):
            folder = self.path("checkpoints of " + os.path.basename(first))
            flags = ("--checkpoint", folder, "--checkpoint-every", "100")
            self.losses(first, *self.TRAIN, "--epochs", "1", *flags)
            second = self.losses(then, *self.TRAIN, "--epochs", "2", *flags, "--resume")
            self.assert_close(expected[1:], second, allowed=1e-2)  # in f32, after two epochs

    def test_they_are_told_of(self):
        result = self.sluice("compile", "lenet.mlir", "--accumulate", "4", "-o", "lenet", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("microbatches  4 of up to 16 rows, one after another", result.stdout + result.stderr)
        result = self.sluice("compile", "lenet.mlir", "--accumulate", "4", "-o", "lenet", "--json", env=self.environment)
        summary = json.loads(result.stdout)
        self.assertEqual((summary["microbatches"], summary["capacity"]), (4, 64))
        self.assertIn("train_step", summary["entries"])
        info = self.run_here(self.path("lenet"), "info")
        self.assertIn("rows     of a call in up to 4 microbatches of 16 rows", info)
        self.assertRegex(info, r"train_step  \d+ launches, peak .*\n    each microbatch \d+ launches\n    once a call \d+ launches\n")
        info = json.loads(self.run_here(self.path("lenet"), "info", "--json"))
        self.assertEqual((info["microbatches"], info["batch"], info["capacity"]), (4, 64, 16))
        names = [entry["name"] for entry in info["entries"]]
        self.assertEqual(sorted(names), ["eval_step", "init", "predict", "train_step"])
        self.assertFalse([state for state in info["states"] if state["kind"] == "accumulator"])
        bench = self.run_here(self.path("lenet"), "bench", "--seconds", "0.01", "--batch", "40")
        self.assertIn("train_step, 40 rows in 3 microbatches of 16 rows, ", bench)

    def test_what_was_copied_is_what_the_plan_says(self):
        lenet = self.program("lenet", "--accumulate", "3", "--devices", "sim:0")
        report = json.loads(self.run_here(lenet, *self.TRAIN, "--epochs", "1", "--report").splitlines()[-1])["report"]
        self.assertEqual([entry["microbatches"] for entry in report["entries"] if entry["name"] == "train_step"], [3])
        moved = [copy for copy in report["copies"] if copy["predicted"]]
        self.assertTrue(moved)
        for copy in moved:
            self.assertEqual(copy["predicted"], copy["executed"])
            self.assertEqual(copy["executed"], copy["engine"])

    def test_the_bench_predicts_them(self):
        lenet = self.program("lenet", "--accumulate", "4", "--devices", "sim:0")
        bench = json.loads(self.run_here(lenet, "bench", "--seconds", "0.01", "--json").splitlines()[0])
        self.assertEqual((bench["microbatches"], bench["microbatch_rows"]), (4, 16))
        self.assertAlmostEqual(bench["schedule"]["predicted_ms"] / bench["schedule"]["measured_ms"], 1, delta=0.1)

    def test_what_does_not_go_together(self):
        norm = ("--replicas", "2", "--devices", "sim:0-1", "--batch-norm", "sync")
        self.assert_refused(self.compile("--accumulate", "2", *norm), 4, "cannot combine --accumulate with --batch-norm sync")
        self.assert_refused(self.compile("--accumulate", "2", "--placement", "auto", "--devices", "cpu,sim:0"), 4, "cannot choose the devices of microbatches")
        for count in ("0", "-1", "1025", "two"):
            self.assert_refused(self.compile("--accumulate", count), 2, "--accumulate")

    def test_a_dump_has_its_microbatches(self):
        result = self.compile("--accumulate", "2", "--compile-to", "fused", "--emit", "mlir", "-o", "fused.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("fused.mlir"), encoding="utf-8") as dump:
            self.assertTrue(re.search(r"capacity 32 batch 64 microbatches 2", dump.read()))
        self.assert_refused(self.sluice("compile", "fused.mlir", "--accumulate", "3", "-o", "out", env=self.environment), 2, "which already has 2 microbatches")
        self.assertEqual(self.sluice("compile", "fused.mlir", "-q", "-o", "out", env=self.environment).returncode, 0)

    def test_they_are_not_verified(self):
        with open(self.path("lenet.mlir"), encoding="utf-8") as model:
            text = model.read()
        self.write("two.mlir", text.replace(" capacity 64", " capacity 64 microbatches 2", 1))
        self.assert_refused(self.sluice("verify", "two.mlir", env=self.environment), 4, "cannot verify a dump with microbatches")


if __name__ == "__main__":
    main()
