"""A full or closed standard output is an error with code 3, and never another file."""

import os
import subprocess

from sluice_cli import BUILD, MNIST, CliTest, main

INVALID = 3


class StreamsTest(CliTest):
    def commands(self):
        """The commands that print results."""
        sluice = os.path.join(BUILD, "bin", "sluice")
        mlp = os.path.join(BUILD, "bin", "models", "mlp")
        logreg = os.path.join(BUILD, "tests", "logreg")
        return [
            [sluice, "--help"], [sluice, "--version"], [sluice, "compile", "--help"],
            [sluice, "compile", "small.mlir", "-o", "small"], [sluice, "compile", "small.mlir", "-o", "small", "--json"],
            [sluice, "compile", "small.mlir", "--compile-to", "fused"], [sluice, "show", "small.mlir"],
            [sluice, "show", "small.mlir", "--dot"], [sluice, "verify", "small.mlir"], [sluice, "devices"],
            [sluice, "devices", "--json"], [sluice, "place", "small.mlir", "--devices", "cpu,sim:0"],
            [mlp, "--help"], [mlp, "-o", "-"],
            [logreg, "--help"], [logreg, "info"], [logreg, "info", "--json"], [logreg, "train", "--help"],
            [logreg, "train", "--epochs", "1"], [logreg, "bench", "--seconds", "0"],
        ]

    def run_with(self, redirection, command):
        environment = dict(self.placement_environment(), SLUICE_DATA=MNIST)
        return self.run_program("sh", "-c", f'exec "$@" {redirection}', "sh", *command, env=environment)

    def check(self, redirection, reason):
        for command in self.commands():
            with self.subTest(" ".join([os.path.basename(command[0]), *command[1:], redirection])):
                result = self.run_with(redirection, command)
                self.assertEqual(result.returncode, INVALID, result.stderr)
                self.assertIn(reason, result.stderr)
                self.assertNotIn("LLVM ERROR", result.stderr)

    def test_a_full_standard_output_is_an_error(self):
        self.check(">/dev/full", "No space left on device")

    def test_a_closed_standard_output_is_an_error(self):
        self.check(">&-", "Bad file descriptor")

    def test_its_name_is_no_way_around_it(self):
        os.symlink("/proc/self/fd/1", self.path("stdout"))  # like /dev/stdout, which a failing test could replace
        for redirection in [">/dev/full", ">&-"]:
            with self.subTest(redirection):
                result = self.run_with(redirection, [os.path.join(BUILD, "bin", "models", "mlp"), "-o", "stdout"])
                self.assertEqual(result.returncode, INVALID, result.stderr)

    def test_nothing_printed_lands_in_a_file(self):
        result = self.run_with("<&- >&- 2>&-", [os.path.join(BUILD, "tests", "logreg"), "train", "--epochs", "2", "--log", "log"])
        self.assertEqual(result.returncode, INVALID)
        with open(self.path("log"), encoding="utf-8") as log:
            lines = log.read().splitlines()
        self.assertEqual(len(lines), 1)  # the next line could not be printed
        self.assertTrue(lines[0].startswith('{"epoch":1,'), lines)

    def test_closed_talk_keeps_results(self):
        for redirection in ["2>&-", "2>/dev/full", "<&-"]:
            with self.subTest(redirection):
                result = self.run_with(redirection, [os.path.join(BUILD, "bin", "sluice"), "show", "small.mlir"])
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("sluice.einsum", result.stdout)
                failed = self.run_with(redirection, [os.path.join(BUILD, "bin", "sluice"), "show", "absent.mlir"])
                self.assertEqual(failed.returncode, INVALID)

    def test_without_streams_files_are_written_whole(self):
        result = self.run_with("<&- >&- 2>&-", [os.path.join(BUILD, "bin", "sluice"), "compile", "small.mlir", "-q", "-o", "small"])
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.run_program(self.path("small"), "info", stderr=subprocess.DEVNULL).returncode, 0)


if __name__ == "__main__":
    main()
