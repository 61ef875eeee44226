"""Replicas that shard the optimizer state, end to end: reports, training, resuming with other numbers; and the
errors."""

import json
import os
import re

from sluice_cli import BUILD, main
from sluice_processes import ProcessesTest


class ZeroTest(ProcessesTest):
    def model(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "24", "-o", "lenet.mlir")
        with open(self.path("lenet.mlir"), encoding="utf-8") as model:
            text = model.read()
        self.write("lenet.mlir", text.replace("momentum = 0.0", "momentum = 0.9", 1))

    def compile(self, *flags):
        self.model()
        return self.sluice("compile", "lenet.mlir", *flags, env=self.environment)

    def program(self, *flags):
        if flags not in self.compiled:
            path = os.path.join(self.shelf, f"lenet{len(self.compiled)}")
            result = self.compile("-q", *flags, "-o", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.compiled[flags] = path
        return self.compiled[flags]

    def on(self, replicas, *flags):
        return self.program("--replicas", str(replicas), "--devices", f"sim:0-{replicas - 1}", *flags)

    def shards(self, replicas):
        return self.program("--replicas", str(replicas), "--devices", "cpu", "--zero", "1")

    def losses(self, text):
        return [json.loads(line)["loss"] for line in text.splitlines() if "loss" in line]

    def assert_close(self, some, others, allowed=1e-4):
        self.assertEqual(len(some), len(others))
        for one, other in zip(some, others):
            self.assertTrue(abs(one - other) <= allowed * abs(one), (some, others))

    def test_the_summary_tells_what_each_keeps(self):
        four = ("--replicas", "4", "--devices", "sim:0-3", "-o", "lenet")
        text = self.compile(*four, "--zero", "1").stdout
        kept, whole = (int(number.replace(",", "")) for number in re.search(r"zero +level 1: ([\d,]+) of ([\d,]+) bytes of optimizer state in each replica", text).groups())
        self.assertLessEqual(kept, 1.05 * whole / 4)
        self.assertRegex(text, r"gradients? of .+ +[\d,]+ bytes, ready at")
        self.assertRegex(text, r"parameters? .+ +[\d,]+ bytes, ready at")
        shards, plain = (json.loads(self.compile(*four, "--json", *flags).stdout) for flags in (("--zero", "1"), ("--zero", "0")))
        self.assertEqual((shards["zero"], plain["zero"]), (1, 0))
        self.assertEqual(shards["optimizer_bytes"], kept)
        self.assertGreaterEqual(plain["optimizer_bytes"], whole)  # including tile padding, which shards lack
        saved = {key: of(plain) - of(shards) for key, of in (("state", lambda it: it["devices"][1]["state_bytes"]), ("slots", lambda it: it["optimizer_bytes"]))}
        self.assertLessEqual(abs(saved["state"] - saved["slots"]), 256)
        (step,) = (item for item in shards["communication"] if item["entry"] == "train_step")
        kinds = {kind: sum(item["bytes"] for item in step["collectives"] if item["kind"] == kind) for kind in ("reduce_scatter", "all_gather")}
        self.assertEqual(kinds["reduce_scatter"], kinds["all_gather"])
        self.assertLessEqual(4 * shards["parameters"], kinds["all_gather"])
        self.assertLessEqual(kinds["all_gather"], 4 * shards["parameters"] + 8 * 4 * 3)

    def step_of(self, *flags):
        """The training step's collectives of shards, and its predicted seconds."""
        four = ("--replicas", "4", "--devices", "sim:0-3", "--zero", "1", "--link", "replicas=1GB/s,5us", "-o", "lenet")
        result = json.loads(self.compile(*four, "--json", *flags).stdout)
        (step,) = (item for item in result["communication"] if item["entry"] == "train_step")
        return [item for item in step["collectives"] if item["kind"] in ("reduce_scatter", "all_gather")], step["call_ms"]

    def test_shards_share_collectives_as_calls_are_the_fastest(self):
        (each, slowest), (fewest, slow), (chosen, fast) = self.step_of("--buckets", "each"), self.step_of("--buckets", "fewest"), self.step_of()
        self.assertEqual((len(each), len(fewest)), (16, 2))
        self.assertEqual({sum(item["bytes"] for item in items) for items in (each, fewest, chosen)}, {2 * 516288})
        self.assertLess(len(chosen), len(each))
        self.assertLess(fast, 0.95 * min(slow, slowest))
        self.assertIn("gradients of fc2.bias to conv1.weight (8)", [item["name"] for item in fewest])
        self.assertIn("parameter fc1.weight", [item["name"] for item in each])

    def test_what_was_exchanged_is_what_the_plan_says(self):
        result = self.run_program(self.on(3, "--zero", "1"), "bench", "--seconds", "0.01", "--report", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        for kind in ("all_reduce", "all_gather", "reduce_scatter"):
            ((*counts,),) = re.findall(rf"^ *{kind} +(\d+ / \d+) B +(\d+ / \d+) B +(\d+ / \d+) B", result.stdout, re.MULTILINE)
            self.assertEqual(len(set(counts)), 1, counts)

    def test_checkpoints_are_of_any_number_of_them(self):
        programs = [self.on(4, "--zero", "1"), self.on(2), self.on(3, "--zero", "1"), self.program()]
        expected = self.losses(self.alone(programs[-1], *self.TRAIN[:3], "--epochs", "4", *self.TRAIN[5:]))
        losses = []
        for epoch, program in enumerate(programs, 1):
            flags = ("--checkpoint", "run", *(["--resume"] if epoch > 1 else []))
            losses += self.losses(self.alone(program, *self.TRAIN[:3], "--epochs", str(epoch), *self.TRAIN[5:], *flags))
        self.assert_close(expected, losses)

    def test_processes_train_as_one(self):
        for count in (2, 3):
            flags = (*self.TRAIN, "--checkpoint-every", "4")
            one = self.alone(self.shards(count), *flags, "--checkpoint", f"one{count}", "--save", "one.safetensors")
            results = self.launch(self.shards(count), count, *flags, "--checkpoint", f"many{count}", "--save", "many.safetensors")
            self.assert_fine(results)
            self.assertEqual(self.lines(results[0].stdout), self.lines(one))
            self.assertEqual(self.content("many.safetensors"), self.content("one.safetensors"))
            names = sorted(os.listdir(self.path(f"one{count}")))
            self.assertEqual(sorted(os.listdir(self.path(f"many{count}"))), names)
            for name in names:
                self.assertEqual(self.content(f"many{count}/{name}"), self.content(f"one{count}/{name}"), name)

    def test_processes_go_on_from_each_others_checkpoints(self):
        half = ("train", "--data", "data", "--epochs", "1", *self.TRAIN[5:], "--checkpoint", "run")
        self.assert_fine(self.launch(self.shards(3), 3, *half))
        results = self.launch(self.shards(2), 2, *self.TRAIN, "--checkpoint", "run", "--resume")
        self.assertEqual([result.returncode for result in results], [0, 0], results[0].stderr + results[1].stderr)
        expected = self.losses(self.alone(self.program(), *self.TRAIN))
        self.assert_close(expected[1:], self.losses(results[0].stdout))

    def test_what_makes_no_sense_is_refused(self):
        two = ("--replicas", "2", "--devices", "sim:0-1", "-o", "out")
        self.assert_refused(self.compile("--zero", "1", "-o", "out"), 2, "--zero 1 applies to replicas, and there is one; add --replicas N")
        self.assert_refused(self.compile("--zero", "1", "--replicas", "env", "-o", "out"), 4, "cannot combine --zero 1 with --replicas env: the size of a shard", "use --replicas N")
        self.assert_refused(self.compile(*two, "--zero", "2"), 4, "cannot shard gradients (--zero 2): not supported", "use --zero 1")
        self.assert_refused(self.compile(*two, "--zero", "5"), 2, "--zero: '5' is none of 0, 1")
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "-o", "plain.mlir")
        result = self.sluice("compile", "plain.mlir", *two, "--zero", "1", env=self.environment)
        self.assert_refused(result, 3, "cannot shard the optimizer state (--zero 1): this optimizer keeps none; use --zero 0")


if __name__ == "__main__":
    main()
