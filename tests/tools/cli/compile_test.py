"""What `sluice` writes: executables, libraries, objects, IR; and what it says of them."""

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

    def test_every_phase_can_be_stopped_at(self):
        for phase in PHASES:
            with self.subTest(phase):
                result = self.sluice("compile", "small.mlir", "--compile-to", phase)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f'sluice.phase = "{phase}"', result.stdout)

    def test_dumps_are_numbered(self):
        whole = self.sluice("compile", "small.mlir", "-o", "whole", "--dump-ir", "dump")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        names = [f"{number:02}-{phase}.mlir" for number, phase in enumerate(PHASES, 1)]
        self.assertEqual(sorted(os.listdir(self.path("dump"))), sorted(names + ["manifest.json"]))

    def test_devices_names_the_cpu(self):
        result = self.sluice("devices", "--json")
        self.assertEqual(json.loads(result.stdout)["devices"][0]["backend"], "cpu")

    def test_help_fits_a_screen_and_has_examples(self):
        for command in [[], ["compile"], ["verify"], ["show"], ["devices"]]:
            with self.subTest(command):
                result = self.sluice(*command, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertIn("Examples:", result.stdout)
                self.assertLessEqual(result.stdout.count("\n"), 40)
                self.assertLessEqual(max(map(len, result.stdout.splitlines())), 120)


if __name__ == "__main__":
    main()
