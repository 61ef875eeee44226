"""A compiled model, as a file and on a terminal."""

import os
import pty
import re
import subprocess
import threading

from sluice_cli import BUILD, MNIST, CliTest, main, measures_memory

# The libraries that an executable may depend on: Debian's libtbb12, zlib1g, libstdc++6, libgcc-s1 and libc6.
ALLOWED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libtbb.so.12", "libz.so.1", "ld-linux-x86-64.so.2"}
MOST_BYTES = 2 << 20  # for a small model; mostly the runtime


class FileTest(CliTest):
    def compile(self, *arguments):
        result = self.sluice("compile", "small.mlir", "-o", "out", "-q", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)

    def readelf(self, *flags):
        return self.run_program("readelf", "-W", *flags, self.path("out")).stdout

    def needed(self):
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", self.readelf("-d")))

    @measures_memory
    def test_an_executable_is_small_and_needs_little(self):
        self.compile()
        self.assertLess(os.path.getsize(self.path("out")), MOST_BYTES)
        self.assertIn("libtbb.so.12", self.needed())
        self.assertEqual(self.needed() - ALLOWED, set())

    def test_a_library_needs_the_c_library_alone(self):
        self.compile("--emit=so")
        self.assertLess(os.path.getsize(self.path("out")), 64 << 10)
        self.assertEqual(self.needed() - {"libc.so.6", "libm.so.6"}, set())
        exported = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +\d+ (\w+)", self.readelf("--dyn-syms"))
        self.assertEqual(exported, ["sluice_artifact_query"])

    def test_nothing_in_it_is_writable_and_executable_or_from_elsewhere(self):
        for emit in ["exe", "so"]:
            with self.subTest(emit):
                self.compile(f"--emit={emit}")
                dynamic, segments = self.readelf("-d"), self.readelf("-l")
                self.assertIn("Dynamic section", dynamic)
                for word in ["TEXTREL", "RPATH", "RUNPATH"]:
                    self.assertNotIn(word, dynamic)
                self.assertIn("BIND_NOW", dynamic)
                self.assertIn("GNU_RELRO", segments)
                self.assertRegex(segments, r"GNU_STACK .* RW ")
                self.assertNotIn("RWE", segments)

    def test_it_runs_where_sluice_is_not(self):
        self.compile()
        result = self.run_program(self.path("out"), "info", env={"PATH": "/nowhere", "HOME": "/nowhere"})
        self.assertEqual(result.returncode, 0, result.stderr)


class DataTest(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "-o", "mlp.mlir")
        self.succeed(os.path.join(BUILD, "bin", "sluice"), "compile", "mlp.mlir", "-q", "-o", "mlp")

    def train(self, *flags, **variables):
        environment = {key: value for key, value in os.environ.items() if key != "SLUICE_DATA"} | variables
        return self.run_program(self.path("mlp"), "train", "--steps", "1", *flags, env=environment)

    def test_a_data_set_beside_the_model_s_is_found_by_name(self):
        for flags, variables in (("--data", "mnist-10k"), {}), (("--test-data", "mnist-10k"), {}), ((), {"SLUICE_DATA": "mnist-10k"}):
            with self.subTest(f"{flags} {variables}"):
                result = self.train(*flags, **variables)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_folder_here_comes_first(self):
        os.mkdir(self.path("mnist-10k"))
        self.assert_refused(self.train("--data", "mnist-10k"), 3, "mnist-10k: has no data")

    def test_an_unknown_name_tells_where_it_was_looked_for(self):
        for name in ("--data", "--test-data"):
            self.assert_refused(
                self.train(name, "mnist-1k"), 3, "no data 'mnist-1k': it is neither a file or folder here nor a data set in ",
                os.path.join("share", "sluice"), "did you mean 'mnist-10k'?")
        self.assert_refused(self.train("--data", "./mnist-1k"), 3, "./mnist-1k: cannot open: No such file or directory")


class TerminalTest(CliTest):
    def train(self, *flags, **environment):
        """The output of training on a terminal and on standard output."""
        try:
            terminal, end = pty.openpty()
        except OSError as error:
            self.skipTest(f"this machine gives no terminal: {error}")
        drawn = []

        def drain():
            try:
                while block := os.read(terminal, 65536):
                    drawn.append(block)
            except OSError:  # the other end is closed
                pass

        reader = threading.Thread(target=drain)
        reader.start()
        command = [os.path.join(BUILD, "tests", "logreg"), "train", "--epochs", "2", *flags]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=end, cwd=self.folder, text=True, timeout=60, check=False,
            env={"SLUICE_DATA": MNIST, "TERM": "xterm", **environment})
        os.close(end)
        reader.join(timeout=20)
        os.close(terminal)
        self.assertEqual(result.returncode, 0)
        return b"".join(drawn).decode(), result.stdout

    def test_a_terminal_shows_a_bar_and_keeps_none(self):
        drawn, printed = self.train()
        self.assertRegex(drawn, "\r.*epoch 1/2 \\[\033\\[36m#*\\.*\033\\[0m\\] \\d+%  loss \\d")
        self.assertTrue(drawn.endswith("\r\033[K"), repr(drawn[-60:]))
        self.assertNotIn("\n", drawn)
        self.assertNotIn("\033", printed)
        self.assertEqual([line[:9] for line in printed.splitlines()], ["epoch 1/2", "epoch 2/2"])

    def test_colour_can_be_refused(self):
        drawn, _ = self.train(NO_COLOR="1")
        self.assertIn("epoch 1/2 [", drawn)
        self.assertNotIn("\033[36m", drawn)

    def test_nothing_is_drawn_where_it_is_not_wanted(self):
        for flags, environment in [(["-q"], {}), (["--json"], {}), ([], {"TERM": "dumb"})]:
            with self.subTest(f"{flags} {environment}"):
                self.assertEqual(self.train(*flags, **environment)[0], "")

    def test_nothing_is_drawn_into_a_pipe(self):
        self.assertEqual(self.executable("train", "--epochs", "1").stderr, "")


if __name__ == "__main__":
    main()
