"""The outputs of `sluice`: executables, libraries, objects, IR; and its messages."""

import json
import os

from sluice_cli import CliTest, main

PHASES = ["model", "train", "parallel", "placed", "copied", "fused", "scheduled", "planned", "lowered"]


class CompileTest(CliTest):
    def test_an_executable_tells_what_it_is(self):
        result = self.sluice("compile", "small.mlir", "-o", "small", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = json.loads(result.stdout)
        self.assertEqual(summary["parameters"], 6)
        self.assertEqual(summary["bytes"], os.path.getsize(self.path("small")))
        self.assertEqual(list(summary["phases"]), sorted(PHASES + ["executable"]))
        info = self.run_program(self.path("small"), "info", "--json")
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertIn("predict", info.stdout)

    def test_the_output_is_named_after_the_model(self):
        for kind, name in [("exe", "small"), ("so", "small.so"), ("obj", "small.o")]:
            with self.subTest(kind):
                self.assertEqual(self.sluice("compile", "small.mlir", f"--emit={kind}").returncode, 0)
                self.assertIn(name, self.files())

    def test_the_same_model_gives_the_same_bytes(self):
        for name in ("a", "b"):
            self.assertEqual(self.sluice("compile", "small.mlir", "-o", name).returncode, 0)
        with open(self.path("a"), "rb") as a, open(self.path("b"), "rb") as b:
            self.assertTrue(a.read() == b.read())

    def test_an_edited_plan_is_refused(self):
        """For any edit: the code belongs to the original plan."""
        self.assertEqual(self.sluice("compile", "small.mlir", "-o", "small").returncode, 0)
        with open(self.path("small"), "rb") as program:
            content = program.read()
        for old, new in [(b'"offset":', b'"offset": '), (b'"bytes":24', b'"bytes":25'), (b'"small"', b'"smell"'), (b'"fn":0', b'"fn":1')]:
            with self.subTest(old):
                at = content.index(old, content.index(b'{"format":'))
                with open(self.path("edited"), "wb") as program:
                    program.write(content[:at] + new + content[at + len(new):])
                os.chmod(self.path("edited"), 0o755)
                for verb in ("info", "predict", "bench"):
                    result = self.run_program(self.path("edited"), verb)
                    self.assertEqual(result.returncode, 3, result.stderr)
                    self.assertIn("checksum does not fit its plan", result.stderr)

    def test_every_phase_can_be_stopped_at(self):
        for phase in PHASES:
            with self.subTest(phase):
                result = self.sluice("compile", "small.mlir", "--compile-to", phase)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f' phase "{phase}"', result.stdout)

    def test_dumps_are_numbered(self):
        whole = self.sluice("compile", "small.mlir", "-o", "whole", "--dump-ir", "dump")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        names = [f"{number:02}-{phase}.mlir" for number, phase in zip((1, 2, 4, 5, 6, 7, 8, 9, 10), PHASES)]  # 3 is `chosen`
        self.assertEqual(sorted(os.listdir(self.path("dump"))), sorted(names + ["kernels", "manifest.json"]))

    def test_the_summary_tells_what_is_where(self):
        self.assertEqual(self.sluice("compile", "small.mlir", "--devices", "sim:0", "-o", "small").returncode, 0)
        text = self.sluice("compile", "small.mlir", "--devices", "sim:0", "-o", "small").stdout
        self.assertRegex(text, r"gpu\(0\) \(sim:0\) +3 ops in 2 launches of 2 kernels; peak memory ")
        self.assertIn("1 in each predict: 48 bytes with 4 rows", text)
        summary = json.loads(self.sluice("compile", "small.mlir", "--devices", "sim:0", "-o", "small", "--json").stdout)
        self.assertEqual([(device["name"], device["spelling"]) for device in summary["devices"]], [("cpu", "cpu"), ("gpu(0)", "sim:0")])
        self.assertEqual([(device["launches"], device["kernels"]) for device in summary["devices"]][1], (2, 2))
        self.assertIn({"entry": "predict", "copies": 1, "bytes": 48}, summary["copies"])

    def test_a_memory_limit_that_suffices_has_no_effect(self):
        for devices in ("cpu=1MB", "sim:0=1MB", "cpu,sim:0-1=1MB"):
            with self.subTest(devices):
                result = self.sluice("compile", "small.mlir", "--devices", devices, "-o", "small")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_precision_is_named(self):
        """In the compiler, the executable and dumps; dumps of phase model accept another precision."""
        for flags, precision in ((), "f32"), (("--precision", "f16"), "f16"), (("--precision", "bf16"), "bf16"):
            with self.subTest(precision):
                compiled = self.sluice("compile", "small.mlir", *flags, "-o", "small", "--dump-ir", "dump", "--json")
                self.assertEqual(json.loads(compiled.stdout)["precision"], precision)
                info = json.loads(self.run_program(self.path("small"), "info", "--json").stdout)
                self.assertEqual(info["build"]["precision"], precision)
                self.assertEqual({state["dtype"] for state in info["states"]}, {"f32"})
                self.assertEqual(info["entries"][0]["outputs"][0]["dtype"], "f32")
                self.assertIn(f"precision {precision}\n", self.run_program(self.path("small"), "info").stdout)
        self.assertIn("  precision     bf16\n", self.sluice("compile", "small.mlir", "--precision", "bf16", "-o", "small").stdout)
        for dump, flags, code in [("01-model", (), 0), ("01-model", ("--precision", "f32"), 0), ("02-train", (), 0),
                                  ("07-fused", ("--precision", "bf16"), 0), ("02-train", ("--precision", "f32"), 2)]:
            with self.subTest(dump=dump, flags=flags):
                result = self.sluice("compile", f"dump/{dump}.mlir", *flags, "-o", "again", "--json")
                self.assertEqual(result.returncode, code, result.stderr)
                if code == 0:
                    self.assertEqual(json.loads(result.stdout)["precision"], "f32" if "f32" in flags else "bf16")

    def test_a_picture_has_a_box_a_device_and_bytes_on_copies(self):
        picture = self.sluice("show", "small.mlir", "--devices", "cpu,sim:0", "--phase", "copied", "--dot").stdout
        self.assertTrue(picture.startswith("digraph"))
        self.assertNotIn("acc0", picture)
        picture = self.sluice("show", "small.mlir", "--devices", "sim:0", "--phase", "copied", "--dot").stdout
        self.assertIn('label="gpu(0) (sim:0)"', picture)
        self.assertIn("copy (input)\\n12 bytes a row", picture)

    def test_devices_names_the_cpu(self):
        result = self.sluice("devices", "--json")
        self.assertEqual(json.loads(result.stdout)["devices"][0]["backend"], "cpu")

    def test_help_fits_a_screen_and_has_examples(self):
        for command in [[], ["compile"], ["verify"], ["show"], ["devices"]]:
            with self.subTest(command):
                result = self.sluice(*command, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertIn("Examples:", result.stdout)
                self.assertLessEqual(result.stdout.count("\n"), 85)
                self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)


if __name__ == "__main__":
    main()
