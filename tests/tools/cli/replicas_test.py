"""Replicas end to end: compilation for several devices, training, reports; and the errors."""

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

    def summary(self, *arguments):
        flags = ("--replicas", "4", "--devices", "sim:0-3", "-o", "lenet")
        result = self.sluice("compile", "lenet.mlir", *flags, *arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def communication(self, *arguments):
        summary = json.loads(self.summary("--json", *arguments))
        return next(item for item in summary["communication"] if item["entry"] == "train_step"), summary

    def test_gradients_are_half_as_many_bytes_in_halves(self):
        full, summary = self.communication()
        half, _ = self.communication("--wire", "bf16")
        size = lambda step: sum(item["bytes"] for item in step["collectives"])
        self.assertGreaterEqual(size(half), 2 * summary["parameters"])
        self.assertTrue(0.49 < size(half) / size(full) < 0.51, (size(half), size(full)))  # layouts pad some
        self.assertEqual(size(self.communication("--wire", "f32")[0]), size(full))
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--wire", "bf17"), 2, "--wire: 'bf17' is none of f32, bf16; did you mean 'bf16'?")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--wire", "f16"), 2, "--wire: 'f16' is none of f32, bf16")
        self.assert_refused(self.compile("--wire", "bf16"), 2, "--wire applies to replicas, and there is one; add --replicas N")

    def test_the_summary_tells_when_they_communicate(self):
        step, summary = self.communication("--link", "replicas=1GB/s,2us")
        link = summary["replica_link"]
        self.assertEqual((link["bytes_per_second"], round(link["latency_s"], 9), link["source"]), (1e9, 2e-6, "given"))
        collectives = step["collectives"]
        gradients = [item for item in collectives if item["name"].startswith("gradient")]
        self.assertGreater(len(gradients), 1)
        self.assertTrue(any("loss" in item["name"].split(" and ") for item in collectives), collectives)
        self.assertEqual(sum(item["bytes"] for item in collectives), next(item["bytes"] for item in summary["collectives"] if item["entry"] == "train_step"))
        end = 0
        for item in collectives:
            self.assertLessEqual(max(item["ready_ms"], end), item["start_ms"] + 1e-9)
            seconds = 6 * 2e-6 + 1.5 * item["bytes"] / 1e9  # for a ring of four
            self.assertAlmostEqual(item["end_ms"] - item["start_ms"], 1e3 * seconds, places=6)
            self.assertGreaterEqual(item["exposed_ms"], -1e-9)
            end = item["end_ms"]
        self.assertAlmostEqual(sum(item["exposed_ms"] for item in collectives), step["exposed_ms"], places=6)
        self.assertLess(step["exposed_ms"], step["ms"])
        self.assertLess(step["exposed_ms"], step["call_ms"])
        text = self.summary("--link", "replicas=1GB/s,2us")
        self.assertIn("link          1.00 GB/s, 2.00 us from one to the next, given", text)
        self.assertRegex(text, r"in each train_step: [\d,]+ bytes; [\d.]+ ms, of which [\d.]+ ms are exposed in a call of [\d.]+ ms")
        for item in gradients:
            self.assertRegex(text, re.escape(item["name"]) + r" +[\d,]+ bytes, ready at [\d.]+, from [\d.]+ to [\d.]+ ms, [\d.]+ ms exposed")

    def test_they_share_as_is_asked(self):
        counts, calls = {}, {}
        for policy in ("auto", "fewest", "each"):
            step, summary = self.communication("--link", "replicas=12GB/s,5us", "--buckets", policy)
            counts[policy] = sum(item["name"].startswith("gradient") for item in step["collectives"])
            calls[policy] = step["call_ms"]
        self.assertEqual((counts["fewest"], counts["each"]), (1, 8))
        self.assertLessEqual(calls["auto"], 1.01 * min(calls["fewest"], calls["each"]))

    def test_the_link_that_they_were_compiled_for_is_that_of_the_simulator(self):
        step, _ = self.communication("--link", "replicas=100MB/s,50us")
        for settings, factor in (((), 1), (("--sim", "link=50MB/s,latency=100us"), 2)):  # which apply if given
            result = self.run_program(self.path("lenet"), "bench", "--seconds", "0.01", "--json", *settings, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            communication = json.loads(result.stdout.splitlines()[0])["communication"]
            self.assertAlmostEqual(communication["measured_ms"] / step["ms"], factor, places=3)
            self.assertAlmostEqual(communication["measured_exposed_ms"] / communication["exposed_ms"], 1, delta=0.05)

    def test_links_and_buckets_are_of_replicas(self):
        four = ("--replicas", "4", "--devices", "sim:0-3")
        self.assert_refused(self.compile("--buckets", "each"), 2, "--buckets applies to replicas, and there is one; add --replicas N")
        self.assert_refused(self.compile(*four, "--buckets", "many"), 2, "'many' is none of auto, fewest, each")
        self.assert_refused(self.compile("--link", "replicas=1GB/s"), 2, "--link replicas=SPEED applies to replicas, and there is one")
        self.assert_refused(self.compile(*four, "--link", "replicas=fast"), 2, "'fast' is no positive number of bytes a second")
        self.assert_refused(self.compile(*four, "--link", "replicas=1GB/s,soon"), 2, "'soon' is no time")
        self.assert_refused(self.compile(*four, "--link", "replicas=1GB/s", "--link", "replicas=2GB/s"), 2, "the link of replicas is given twice")
        self.assert_refused(self.compile(*four, "--link", "sim:0=1GB/s"), 2, "--link applies to automatic placement", "--placement auto")
        place = self.sluice("place", "lenet.mlir", "--devices", "cpu,sim:0", "--link", "replicas=1GB/s", env=self.environment)
        self.assert_refused(place, 2, "--link replicas=SPEED applies to replicas, and there is one")

    def test_what_was_exchanged_is_what_the_plan_says(self):
        self.assertEqual(self.compile("--replicas", "2", "--devices", "sim:0-1", "-o", "lenet").returncode, 0)
        result = self.run_program(self.path("lenet"), "bench", "--seconds", "0.01", "--report", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        counts = re.findall(r"^ *all_reduce +(\d+ / \d+) B +(\d+ / \d+) B +(\d+ / \d+) B", result.stdout, re.MULTILINE)
        self.assertEqual(len(counts), 1, result.stdout)
        self.assertEqual(len(set(counts[0])), 1, counts)

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
                self.assertAlmostEqual(item["measured_end_ms"] - item["measured_start_ms"], item["end_ms"] - item["start_ms"], places=4)
            self.assertLessEqual(communication["exposed_ms"], communication["ms"] + 1e-9)
            self.assertAlmostEqual(communication["measured_ms"], communication["ms"], places=4)
            self.assertAlmostEqual(bench["schedule"]["predicted_ms"] / bench["schedule"]["measured_ms"], 1, delta=0.05)
            exposed[link] = communication["exposed_ms"]
        fast, slow = exposed.values()
        self.assertGreater(slow, 10 * fast)

    def test_the_bench_prints_the_memory_of_each_device(self):
        self.assertEqual(self.compile("--replicas", "2", "--devices", "sim:0-1", "-o", "lenet").returncode, 0)
        bench = ("bench", "--seconds", "0.01", "--devices", "sim:2,sim:1")
        result = self.run_program(self.path("lenet"), *bench, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        peaks = re.findall(r"^planned peak of (.+), replica (\d): ([\d.]+ \w?B)$", result.stdout, re.MULTILINE)
        self.assertEqual([peak[:2] for peak in peaks], [("cpu", "0"), ("gpu(0) (sim:2)", "0"), ("cpu", "1"), ("gpu(0) (sim:1)", "1")])
        self.assertNotIn("GFLOP/s, planned peak", result.stdout)
        result = self.run_program(self.path("lenet"), *bench, "--json", env=self.environment)
        peaks = json.loads(result.stdout)["peaks"]
        self.assertEqual([(peak["device"], peak["replica"]) for peak in peaks], [("cpu", 0), ("sim:2", 0), ("cpu", 1), ("sim:1", 1)])
        info = json.loads(self.run_program(self.path("lenet"), "info", "--json", env=self.environment).stdout)
        planned = next(entry for entry in info["entries"] if entry["name"] == "train_step")["device_peak_bytes"]
        self.assertEqual([peak["bytes"] for peak in peaks], 2 * planned)

    def test_they_may_be_as_many_as_are_launched(self):
        flags = ("--replicas", "env", "--devices", "sim:0")
        result = self.sluice("compile", "lenet.mlir", *flags, "-o", "lenet", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("replicas      one per launched process; collectives are planned for 8; figures below are of one", result.stdout + result.stderr)
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
        self.assert_refused(self.sluice("compile", "fused.mlir", "--replicas", "2", "-o", "out", env=self.environment), 2, "cannot apply --replicas to a dump of phase 'fused', which already has one replica per launched process")
        self.assertEqual(self.sluice("compile", "fused.mlir", "-q", "-o", "out", env=self.environment).returncode, 0)
        self.assert_refused(self.compile("--replicas", "envy"), 2, "--replicas: 'envy' is neither a whole number from 1 to 1024 nor env")

    def test_devices_must_go_round(self):
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-2"), 2, "among 2 replicas: each needs the same number of accelerators, and there are 3; list a multiple of 2")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:3-1"), 2, "'sim:3-1' is no range of devices")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0,sim:0"), 2, "is listed twice")
        self.assert_refused(self.compile("--replicas", "0"), 2, "--replicas")
        self.assert_refused(self.compile("--replicas", "2000"), 2, "--replicas")

    def test_words_must_fit(self):
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--batch-norm", "synk"), 2, "--batch-norm: 'synk' is none of local, sync; did you mean 'sync'?")
        self.assert_refused(self.compile("--batch-norm", "sync"), 2, "--batch-norm applies to replicas")
        self.assert_refused(self.compile("--replicas", "2", "--devices", "sim:0-1", "--placement", "auto"), 4, "cannot choose the devices of replicas")

    def test_a_dump_has_its_replicas(self):
        result = self.compile("--replicas", "2", "--devices", "sim:0-1", "--compile-to", "train", "--emit", "mlir", "-o", "train.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_refused(self.sluice("compile", "train.mlir", "--replicas", "3", "--devices", "sim:0-2", "-o", "out", env=self.environment), 2, "which already has 2 replicas")
        result = self.sluice("compile", "train.mlir", "-q", "-o", "out", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_they_are_not_verified(self):
        with open(self.path("lenet.mlir"), encoding="utf-8") as model:
            text = model.read()
        self.write("two.mlir", text.replace(" capacity 64", " capacity 64 replicas 2", 1))
        self.assert_refused(self.sluice("verify", "two.mlir", env=self.environment), 4, "cannot verify a dump with replicas")


if __name__ == "__main__":
    main()
