"""Replicas as users meet them: compiled for several devices, trained, looked at; and what is refused."""

import json
import os
import re

from sluice_cli import BUILD, CliTest, main


class ReplicasTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "64", "-o", "lenet.mlir")

    def compile(self, *arguments):
        return self.sluice("compile", "lenet.mlir", "-q", *arguments, env=self.environment)

    def assert_refused(self, result, code, *messages):
        self.assertEqual(result.returncode, code, result.stderr)
        for message in messages:
            self.assertIn(message, result.stderr)

    def test_they_train_as_one_device(self):
        losses = {}
        for replicas in (1, 3):
            devices = f"sim:0-{replicas - 1}"
            self.assertEqual(self.compile("--replicas", str(replicas), "--devices", devices, "-o", f"lenet{replicas}").returncode, 0)
            result = self.run_program(self.path(f"lenet{replicas}"), "train", "--epochs", "1", "--batch", "50", "--json", "--seed", "3", env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            losses[replicas] = [json.loads(line)["loss"] for line in result.stdout.splitlines() if "loss" in line]
        self.assertEqual(len(losses[1]), len(losses[3]))
        for one, several in zip(losses[1], losses[3]):
            self.assertTrue(abs(one - several) <= 1e-3 * abs(one), losses)

    def test_the_summary_tells_what_they_exchange(self):
        result = self.sluice("compile", "lenet.mlir", "--replicas", "4", "--devices", "sim:0-3", "-o", "lenet", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("replicas      4, with up to 16 rows each", result.stdout + result.stderr)
        self.assertRegex(result.stdout + result.stderr, r"collectives   \d+ in each train_step: [\d,]+ bytes")
        result = self.sluice("compile", "lenet.mlir", "--replicas", "4", "--devices", "sim:0-3", "-o", "lenet", "--json", env=self.environment)
        summary = json.loads(result.stdout)
        self.assertEqual((summary["replicas"], summary["capacity"]), (4, 64))
        gradients = next(item for item in summary["collectives"] if item["entry"] == "train_step")
        self.assertGreaterEqual(gradients["bytes"], 4 * summary["parameters"])

    def test_what_was_exchanged_is_what_the_plan_says(self):
        self.assertEqual(self.compile("--replicas", "2", "--devices", "sim:0-1", "-o", "lenet").returncode, 0)
        result = self.run_program(self.path("lenet"), "bench", "--seconds", "0.01", "--report", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        counts = re.findall(r"^ *all_reduce +(\d+ / \d+) B +(\d+ / \d+) B", result.stdout, re.MULTILINE)
        self.assertEqual(len(counts), 1, result.stdout)
        self.assertEqual(counts[0][0], counts[0][1])

    def test_the_bench_tells_when_they_communicate(self):
        self.assertEqual(self.compile("--replicas", "4", "--devices", "sim:0-3", "-o", "lenet").returncode, 0)
        exposed = {}
        for link in ("100GB/s,latency=1us", "100MB/s,latency=50us"):
            result = self.run_program(
                self.path("lenet"), "bench", "--seconds", "0.01", "--json", "--sim", f"link={link}", env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            bench = json.loads(result.stdout.splitlines()[0])
            communication = bench["communication"]
            self.assertGreater(len(communication["collectives"]), 1)
            end = 0
            for item in communication["collectives"]:
                self.assertLessEqual(max(item["ready_ms"], end), item["start_ms"] + 1e-9)
                self.assertLessEqual(item["start_ms"], item["end_ms"])
                end = item["end_ms"]
            self.assertLessEqual(communication["exposed_ms"], communication["ms"] + 1e-9)
            self.assertAlmostEqual(bench["schedule"]["predicted_ms"] / bench["schedule"]["measured_ms"], 1, delta=0.05)
            exposed[link] = communication["exposed_ms"]
        fast, slow = exposed.values()
        self.assertGreater(slow, 10 * fast)

    def test_they_may_be_as_many_as_are_launched(self):
        flags = ("--replicas", "env", "--devices", "sim:0")
        result = self.sluice("compile", "lenet.mlir", *flags, "-o", "lenet", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("replicas      as many as are launched; collectives are planned for 8; what follows is of one", result.stdout + result.stderr)
        self.assertRegex(result.stdout + result.stderr, r"collectives   \d+ in each train_step: [\d,]+ bytes")
        result = self.run_program(self.path("lenet"), "info", "--json", env=self.environment)
        info = json.loads(result.stdout)
        self.assertEqual((info["replicas"], info["batch"], info["capacity"]), (0, 64, 64))
        result = self.run_program(self.path("lenet"), "info", env=self.environment)
        self.assertIn("replicas as many as processes are launched, up to 64 rows in one call", result.stdout)
        result = self.compile(*flags, "--compile-to", "fused", "--emit", "mlir", "-o", "fused.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("fused.mlir"), encoding="utf-8") as dump:
            text = dump.read()
        self.assertIn("capacity 64 replicas 0 batch 64", text)
        self.assertIn("sluice.all_reduce", text)
        self.assert_refused(self.sluice("compile", "fused.mlir", "--replicas", "2", "-o", "out", env=self.environment), 2, "has its replicas already, as many as are launched")
        self.assertEqual(self.sluice("compile", "fused.mlir", "-q", "-o", "out", env=self.environment).returncode, 0)
        self.assert_refused(self.compile("--replicas", "envy"), 2, "'envy' is neither a number from 1 to 1024 nor env")

    def test_devices_must_go_round(self):
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-2"), 2, "2 replicas need as many accelerators each", "has 3")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:3-1"), 2, "'sim:3-1' is no range of devices")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0,sim:0"), 2, "is listed twice")
        self.assert_refused(self.compile("--replicas", "0"), 2, "--replicas")
        self.assert_refused(self.compile("--replicas", "2000"), 2, "--replicas")

    def test_words_must_fit(self):
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--batch-norm", "synk"), 2, "'local' or 'sync'", "'synk'", "sync")
        self.assert_refused(self.compile("--batch-norm", "sync"), 2, "--batch-norm is for replicas")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--placement", "auto"), 4, "devices of replicas are not chosen")

    def test_a_dump_has_its_replicas(self):
        result = self.compile("--replicas", "2", "--devices", "sim:0-1", "--compile-to", "train", "--emit", "mlir", "-o", "train.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_refused(self.sluice("compile", "train.mlir", "--replicas", "3", "--devices", "sim:0-2", "-o", "out", env=self.environment), 2, "has its replicas already, 2")
        result = self.sluice("compile", "train.mlir", "-q", "-o", "out", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_they_are_not_verified(self):
        with open(self.path("lenet.mlir"), encoding="utf-8") as model:
            text = model.read()
        self.write("two.mlir", text.replace(" capacity 64", " capacity 64 replicas 2", 1))
        self.assert_refused(self.sluice("verify", "two.mlir", env=self.environment), 4, "what replicas do together is not compared")


if __name__ == "__main__":
    main()
