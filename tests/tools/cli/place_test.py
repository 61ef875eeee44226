"""The output of `sluice place` and its round trip: the keys that scripts rely on, from --save over an edit to
--placement, and the copies of the resulting executable."""

import json
import os

from sluice_cli import BUILD, CliTest, main

LINK = ["--link", "sim:0=500MB/s,5us"]


class PlaceTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        program = os.path.join(BUILD, "bin", "models", "lenet")
        self.succeed(program, "--input", "f32", "--batch", "32", "-o", "lenet.mlir")

    def succeed(self, *command):
        result = self.run_program(*command, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def place(self, *arguments, devices="cpu,sim:0"):
        sluice = os.path.join(BUILD, "bin", "sluice")
        return json.loads(self.succeed(sluice, "place", "lenet.mlir", "--devices", devices, *LINK, "--json", *arguments))

    def edit(self, name, change):
        with open(self.path("kept.json"), encoding="utf-8") as file:
            kept = json.load(file)
        change(kept["placement"])
        self.write(name, json.dumps(kept))

    @staticmethod
    def devices_of(report):
        return {item["name"]: item["device"] for kind in ("groups", "states") for item in report[kind]}

    def test_scripts_find_what_they_rely_on(self):
        report = self.place(devices="cpu,sim:0=1MB")
        self.assertIsInstance(report["predicted_ms"], float)
        self.assertTrue(0 <= report["gap"] <= 1)
        self.assertEqual(set(report["peak_bytes"]), {"cpu", "sim:0"})
        self.assertTrue(all(isinstance(size, int) for size in report["peak_bytes"].values()))
        self.assertLessEqual(report["peak_bytes"]["sim:0"], 1_000_000)
        for name in ("all cpu", "all sim:0", "as pinned"):
            self.assertIn(name, report["alternatives"])
        self.assertIsNone(report["alternatives"]["all sim:0"])
        self.assertIn("1000000", report["obstacles"]["all sim:0"])
        self.assertEqual(report["alternatives"][report["chosen"]], report["predicted_ms"])
        self.assertLessEqual(report["predicted_ms"], min(filter(None, report["alternatives"].values())))
        for group in report["groups"]:
            self.assertIn(group["device"], ("cpu", "sim:0"))
            for key in ("name", "reason", "source"):
                self.assertTrue(isinstance(group[key], str) and group[key], key)
        self.assertEqual(len({group["name"] for group in report["groups"]}), len(report["groups"]))

    def test_a_reason_names_the_cap_where_that_is_the_reason(self):
        for cap in (600_000, 1_000_000, 1_500_000):
            with self.subTest(cap):
                report = self.place(devices=f"cpu,sim:0={cap}B")
                reasons = [item["reason"] for kind in ("groups", "states") for item in report[kind] if item["device"] == "cpu"]
                self.assertTrue([reason for reason in reasons if f"gpu(0) may have {cap} bytes" in reason], reasons)
        free = self.place()
        self.assertFalse([item for kind in ("groups", "states") for item in free[kind] if "may have" in item["reason"]])

    def test_copies_are_told(self):
        copies = self.place()["copies"]
        self.assertTrue(copies)
        for copy in copies:
            self.assertEqual({copy["from"], copy["to"]}, {"cpu", "sim:0"})
            self.assertIsInstance(copy["bytes"], int)
            self.assertTrue(copy["reason"] and copy["source"])
            self.assertIsInstance(copy["predicted_ms"], float)
            self.assertEqual(copy["start_ms"] is None, copy["value"] == "lr" or copy["when"] == "asked")

    def test_what_is_kept_comes_back(self):
        for devices in ("cpu,sim:0", "cpu,sim:0=2MB", "cpu,sim:0=2MB,sim:1=2MB"):
            with self.subTest(devices):
                first = self.place("--save", "kept.json", devices=devices)
                second = self.place("--placement", "kept.json", "--save", "again.json", devices=devices)
                for key in ("predicted_ms", "peak_bytes", "copies", "memory", "devices", "links"):
                    self.assertEqual(first[key], second[key], key)
                self.assertEqual(self.devices_of(first), self.devices_of(second))
                with open(self.path("kept.json"), encoding="utf-8") as kept, open(self.path("again.json"), encoding="utf-8") as again:
                    self.assertEqual(kept.read(), again.read())

    def test_a_saved_placement_is_in_the_order_of_execution(self):
        report = self.place("--save", "kept.json")
        with open(self.path("kept.json"), encoding="utf-8") as kept:
            saved = list(json.load(kept)["placement"])
        starts = {group["name"]: group["start_ms"] for group in report["groups"]}
        names = saved[:len(starts)]
        self.assertEqual(set(names), set(starts))
        self.assertNotEqual(names, sorted(names))
        times = [starts[name] for name in names if starts[name] is not None]
        self.assertEqual(times, sorted(times))
        self.assertTrue(all(name.startswith("state ") for name in saved[len(names):]), saved)

    def test_devices_are_spelled_as_users_do(self):
        report = self.place("--save", "kept.json", "--html", "page.html", devices="cpu,sim:0")
        self.assertEqual([(device["name"], device["spelling"]) for device in report["devices"]], [("cpu", "cpu"), ("gpu(0)", "sim:0")])
        self.assertEqual({item["device"] for kind in ("groups", "states") for item in report[kind]}, {"cpu", "sim:0"})
        self.assertEqual({copy["queue"] for copy in report["copies"]} - {"sim:0.in", "sim:0.out", "sim:0", "cpu"}, set())
        for text in (json.dumps(report), self.read("kept.json")):
            self.assertNotIn("acc0", text.replace("acc0_", ""))  # a prefix of kernels
        self.assertEqual(set(json.loads(self.read("kept.json"))["placement"].values()), {"cpu", "gpu(0)"})

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_an_edit_moves_that_group_alone(self):
        before = self.devices_of(self.place("--save", "kept.json"))
        for group in ("einsum_add_relu_compare", "state fc1.weight"):
            with self.subTest(group):
                other = "cpu" if before[group.removeprefix("state ")] == "sim:0" else "sim:0"
                self.edit("edited.json", lambda placement, group=group, other=other: placement.update({group: other}))
                after = self.devices_of(self.place("--placement", "edited.json"))
                self.assertEqual(after, before | {group.removeprefix("state "): other})

    def test_what_is_left_out_is_chosen(self):
        before = self.place("--save", "kept.json")
        group = "conv2d_add_relu_compare_1"
        self.edit("less.json", lambda placement: placement.pop(group))
        after = self.place("--placement", "less.json")
        self.assertEqual(self.devices_of(after), self.devices_of(before))
        reasons = {item["name"]: item["reason"] for item in after["groups"]}
        self.assertIn("would take", reasons[group])
        self.assertIn("file", reasons["avg_pool2d"])
        self.edit("one.json", lambda placement: [placement.pop(key) for key in list(placement) if key != group])
        self.edit("other.json", lambda placement: placement.update({group: "cpu"}))
        slower = self.place("--placement", "other.json")
        self.assertGreater(slower["predicted_ms"], before["predicted_ms"])
        self.assertIsNone(slower["alternatives"]["all sim:0"])
        self.assertEqual(self.place("--placement", "one.json")["predicted_ms"], before["predicted_ms"])

    def test_an_executable_makes_the_predicted_copies(self):
        self.place("--save", "kept.json")
        self.edit("edited.json", lambda placement: placement.update({"conv2d_add_relu_compare_1": "cpu"}))
        sluice = os.path.join(BUILD, "bin", "sluice")
        for name in ("kept.json", "edited.json"):
            with self.subTest(name):
                predicted = self.place("--placement", name)
                self.succeed(sluice, "compile", "lenet.mlir", "--devices", "cpu,sim:0", *LINK, "--placement", name, "-o", "program")
                printed = self.succeed(self.path("program"), "bench", "--json", "--report", "--seconds", "0.01")
                report = json.loads(printed.splitlines()[-1])["report"]
                step = next(entry for entry in report["entries"] if entry["name"] == "train_step")
                each = [copy for copy in predicted["copies"] if copy["start_ms"] is not None]
                self.assertEqual(step["per_call"], {"copies": len(each), "bytes": sum(copy["bytes"] for copy in each)})
                keys = ("value", "from", "to", "bytes", "when", "reason", "source")
                spelled = {"cpu": "cpu", "acc0": "sim:0"}
                executed = [copy | {"from": spelled[copy["from"]], "to": spelled[copy["to"]]} for copy in step["copies"]]
                self.assertEqual(executed, [{key: copy[key] for key in keys} for copy in predicted["copies"]])
                for pair in report["copies"]:
                    self.assertEqual(pair["predicted"], pair["executed"])
                    self.assertEqual(pair["executed"], pair["engine"])
                for memory in report["memory"]:
                    self.assertEqual(memory["predicted_bytes"], predicted["peak_bytes"][memory["spelling"]])

    def test_a_cap_holds_while_it_trains(self):
        sluice = os.path.join(BUILD, "bin", "sluice")
        needed = self.place("--save", "kept.json")["peak_bytes"]["sim:0"]
        devices = ["--devices", f"cpu,sim:0={needed}B", *LINK]
        self.succeed(sluice, "compile", "lenet.mlir", *devices, "--placement", "kept.json", "-o", "program")
        self.write_zeros("data", (64, 28, 28))
        run = ["train", "--data", "data", "--epochs", "1", "--report", "--json", "--sim"]
        memory = json.loads(self.succeed(self.path("program"), *run, f"memory={needed}B").splitlines()[-1])["report"]["memory"]
        self.assertLessEqual(memory[1]["taken_bytes"], needed)
        self.assertEqual(memory[1]["predicted_bytes"], needed)
        self.assertGreater(memory[1]["taken_bytes"], 0.9 * needed)
        tight = self.run_program(sluice, "place", "lenet.mlir", "--devices", f"cpu,sim:0={needed - 1}B", *LINK,
                                 "--placement", "kept.json", env=self.environment)
        self.assertEqual(tight.returncode, 5, "one byte less does not fit: " + tight.stdout)

    def test_one_op_is_explained(self):
        sluice = os.path.join(BUILD, "bin", "sluice")
        text = self.succeed(sluice, "place", "lenet.mlir", "--devices", "cpu,sim:0", *LINK, "--explain", "conv2d")
        self.assertRegex(text, r"(?m)^conv2d_add_relu_compare \(lenet.cpp:\d+:\d+\) runs on ")
        self.assertRegex(text, r"(?m)^  cpu +[0-9.]+ [mu]s of work")
        self.assertRegex(text, r"(?m)^  gpu\(0\) \(sim:0\) +[0-9.]+ [mu]s of work")

    def test_a_run_is_shown_beside_what_was_predicted(self):
        self.place("--save", "kept.json")
        sluice = os.path.join(BUILD, "bin", "sluice")
        self.succeed(sluice, "compile", "lenet.mlir", "--devices", "cpu,sim:0", *LINK, "--placement", "kept.json", "-o", "program")
        self.write("bench.json", self.succeed(self.path("program"), "bench", "--json", "--seconds", "0.01"))
        self.place("--placement", "kept.json", "--measured", "bench.json", "--html", "page.html")
        with open(self.path("page.html"), encoding="utf-8") as page:
            self.assertIn('"measured_ms"', page.read())


if __name__ == "__main__":
    main()
