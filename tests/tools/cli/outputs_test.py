"""Output to non-regular files: links are followed, devices and pipes are written to, and none is replaced."""

import os
import stat
import threading

from sluice_cli import CliTest, main


class OutputsTest(CliTest):
    def setUp(self):
        super().setUp()
        placement = self.placement_environment()
        self.devices = ("--devices", "cpu,sim:0", "--link", "sim:0=1GB/s,1us")
        # The commands that write a file to a path, and the expected start of the file.
        self.writers = {
            "sluice compile": (lambda path: self.sluice("compile", "small.mlir", "-o", path), b"\x7fELF"),
            "sluice compile --emit=so": (lambda path: self.sluice("compile", "small.mlir", "--emit=so", "-o", path), b"\x7fELF"),
            "sluice compile --emit=obj": (lambda path: self.sluice("compile", "small.mlir", "--emit=obj", "-o", path), b"\x7fELF"),
            "sluice compile --emit=mlir": (lambda path: self.sluice("compile", "small.mlir", "--emit=mlir", "-o", path), b"#"),
            "sluice place --save": (
                lambda path: self.sluice("place", "small.mlir", *self.devices, "--save", path, env=placement), b"{"),
            "sluice place --html": (
                lambda path: self.sluice("place", "small.mlir", *self.devices, "--html", path, env=placement), b"<!"),
            "a model program": (lambda path: self.model_program("-o", path), b"#"),
            "train --save": (lambda path: self.executable("train", "--epochs", "0", "--save", path), b""),
            "train --log": (lambda path: self.executable("train", "--epochs", "1", "--log", path), b"{"),
            "bench --trace": (lambda path: self.executable("bench", "--seconds", "0", "--trace", path), b"{"),
        }

        os.symlink("/proc/self/fd/1", self.path("stdout"))  # like /dev/stdout, which a failing test could replace

    def for_each(self, check):
        for name, (write, begin) in self.writers.items():
            with self.subTest(name):
                check(name.replace(" ", "_"), write, begin)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def test_a_link_is_followed(self):
        def check(name, write, begin):
            self.write(name + ".target", "old")
            os.symlink(name + ".target", self.path(name))
            result = write(self.path(name))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(os.path.islink(self.path(name)))
            self.assertNotEqual(self.content(name + ".target"), b"old")
            self.assertTrue(self.content(name + ".target").startswith(begin))

        self.for_each(check)

    def test_a_link_to_nothing_is_followed(self):
        os.mkdir(self.path("folder"))

        def check(name, write, begin):
            os.symlink("folder/" + name, self.path(name))
            result = write(self.path(name))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(os.path.islink(self.path(name)))
            self.assertTrue(self.content("folder/" + name).startswith(begin))
            self.assertEqual([file for file in os.listdir(self.path("folder")) if "tmp" in file], [])

        self.for_each(check)

    def test_a_circle_of_links_is_an_error(self):
        os.symlink("circle", self.path("circle"))

        def check(name, write, _begin):
            if name == "bench_--trace":
                return  # writes its measurements at its end
            result = write(self.path("circle"))
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("Too many levels of symbolic links", result.stderr)
            self.assertTrue(os.path.islink(self.path("circle")))

        self.for_each(check)

    def test_a_device_stays_a_device(self):
        try:
            os.mknod(self.path("null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            with open(self.path("null"), "wb"):
                pass
        except OSError as reason:
            self.skipTest(f"no device nodes here: {reason}")

        def check(_name, write, _begin):
            result = write(self.path("null"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(stat.S_ISCHR(os.lstat(self.path("null")).st_mode))

        self.for_each(check)

    def test_a_pipe_gets_all_of_it(self):
        def check(name, write, begin):
            os.mkfifo(self.path(name))
            received = []
            reader = threading.Thread(target=lambda: received.append(self.content(name)), daemon=True)
            reader.start()
            result = write(self.path(name))
            reader.join(timeout=20)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(stat.S_ISFIFO(os.lstat(self.path(name)).st_mode))
            self.assertTrue(received and received[0], "the reader got nothing")
            self.assertTrue(received[0].startswith(begin))

        self.for_each(check)

    def test_the_standard_output_has_a_name(self):
        result = self.model_program("-o", "stdout")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sluice.graph", result.stdout)

    def test_lines_that_are_logged_and_printed_follow_each_other(self):
        with open(self.path("both"), "ab") as both:
            result = self.executable("train", "--epochs", "1", "--json", "--log", "stdout", stdout=both)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = self.content("both").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0], lines[1])


if __name__ == "__main__":
    main()
