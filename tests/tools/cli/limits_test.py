"""Limits of memory, threads, files and disks: an error and the documented exit code, no signal, and no leftovers.

A few limits are tested, and many with SLUICE_TEST_FULL=1."""

import os
import resource
import unittest

from cuda_test import DOUBLES
from sluice_cli import BUILD, MNIST, CliTest, main, measures_memory

INVALID, EXHAUSTED = 3, 5
FULL = os.environ.get("SLUICE_TEST_FULL") == "1"
MB = 1 << 20


def limited(kind, amount, user=None):
    """Applied in the child before it starts."""
    def prepare():
        if user is not None:
            os.setuid(user)
        resource.setrlimit(kind, (amount, amount))
    return prepare


class LimitsTest(CliTest):
    def setUp(self):
        super().setUp()
        os.environ["TMPDIR"] = self.path("tmp")  # where reproducers of crashes would be written
        self.addCleanup(os.environ.pop, "TMPDIR")
        os.mkdir(self.path("tmp"))
        made = self.model_program("-o", "mlp.mlir")
        self.assertEqual(made.returncode, 0, made.stderr)

    def commands(self):
        sluice = os.path.join(BUILD, "bin", "sluice")
        logreg = os.path.join(BUILD, "tests", "logreg")
        yield sluice, ["compile", "mlp.mlir", "-o", "out"]
        yield sluice, ["compile", "small.mlir", "--emit=so", "-o", "out"]
        yield sluice, ["verify", "small.mlir"]
        yield sluice, ["show", "mlp.mlir", "--phase", "fused"]
        yield os.path.join(BUILD, "bin", "models", "mlp"), ["-o", "out"]
        yield logreg, ["train", "--epochs", "1", "--threads", "1", "--save", "out"]
        yield logreg, ["train", "--epochs", "1", "--threads", "4", "--save", "out"]

    def starts_with(self, program, prepare):
        return self.run_program(program, "--help", preexec_fn=prepare).returncode == 0

    def least(self, program):
        """The megabytes that a program needs to start at all, which depends on the loader."""
        low, high = 0, 2000
        while high - low > 4:
            middle = (low + high) // 2
            if self.starts_with(program, limited(resource.RLIMIT_AS, middle * MB)):
                high = middle
            else:
                low = middle
        return high

    def check(self, name, program, arguments, prepare, codes):
        before = set(self.files())
        result = self.run_program(
            program, *arguments, preexec_fn=prepare, errors="replace", env=dict(os.environ, SLUICE_DATA=MNIST))
        left = set(self.files()) - before
        with self.subTest(f"{name}: {os.path.basename(program)} {' '.join(arguments)}"):
            self.assertIn(result.returncode, (0, *codes), result.stderr)
            if result.returncode != 0:
                self.assertNotEqual(result.stderr, "")
                self.assertEqual(left, set())
            self.assertEqual(os.listdir(self.path("tmp")), [])
        for file in left:
            os.remove(self.path(file))
        return result.returncode

    @measures_memory
    def test_little_memory(self):
        for program, arguments in self.commands():
            least = self.least(program)
            codes = set()
            for more in range(8, 700, 12) if FULL else [8, 40, 90, 150, 260]:
                limit = limited(resource.RLIMIT_AS, (least + more) * MB)
                codes.add(self.check(f"{least + more} MB", program, arguments, limit, [EXHAUSTED]))
            self.assertTrue(codes <= {0, EXHAUSTED}, codes)

    @measures_memory  # the leak checker uses a thread
    @unittest.skipUnless(os.getuid() == 0, "limits of threads are per user; only root can become one that has none")
    def test_few_threads(self):
        nobody = 65534
        for folder in ["", "tmp"]:
            os.chmod(self.path(folder), 0o777)
        if not self.starts_with(os.path.join(BUILD, "tests", "logreg"), limited(resource.RLIMIT_NPROC, 100, nobody)):
            self.skipTest("another user cannot run what was built")
        for program, arguments in self.commands():
            for threads in range(1, 8) if FULL else [1, 2]:
                self.check(f"{threads} threads", program, arguments, limited(resource.RLIMIT_NPROC, threads, nobody), [EXHAUSTED])

    def test_files_that_may_not_grow(self):
        for program, arguments in self.commands():
            for size in [0, 5000] + ([20_000, 100_000, 500_000] if FULL else []):
                self.check(f"{size} bytes", program, arguments, limited(resource.RLIMIT_FSIZE, size), [INVALID])

    def test_dumps_that_may_not_grow(self):
        sluice = os.path.join(BUILD, "bin", "sluice")
        for size in [100, 4000, 10_000]:
            with self.subTest(size):
                result = self.run_program(
                    sluice, "compile", "mlp.mlir", "-o", "out", "--dump-ir", f"dump{size}",
                    preexec_fn=limited(resource.RLIMIT_FSIZE, size))
                self.assertEqual(result.returncode, INVALID, result.stderr)
                self.assertIn("cannot write: File too large", result.stderr)
                self.check_dumps(self.path(f"dump{size}"))

    def test_texts_of_kernels_that_may_not_grow(self):
        os.mkdir(self.path("texts"))
        sluice = os.path.join(BUILD, "bin", "sluice")
        result = self.run_program(
            sluice, "show", "mlp.mlir", "--phase", "kernels", preexec_fn=limited(resource.RLIMIT_FSIZE, 1000),
            env=os.environ | {"TMPDIR": self.path("texts")})
        self.assertEqual((result.returncode, result.stdout), (INVALID, ""), result.stderr)
        self.assertRegex(result.stderr, r"\w+\.vector\.mlir: cannot write: File too large")
        self.assertEqual(os.listdir(self.path("texts")), [])

    def test_a_full_disk_leaves_no_half_of_a_text_of_kernels(self):
        os.makedirs(self.path("dump/kernels"))
        script = (f"mount -t tmpfs -o size=20k none {self.folder}/dump/kernels && {BUILD}/bin/sluice compile mlp.mlir -o out "
                  "--devices cuda:0 --copies insert --dump-ir dump; echo code $?; ls -A dump/kernels | grep -e tmp")
        if self.run_program("unshare", "-rm", "sh", "-c", f"mount -t tmpfs none {self.folder}/dump/kernels").returncode != 0:
            self.skipTest("no mount here")
        environment = os.environ | DOUBLES | {"CUDA_EMU_EFFORT": "least"}
        result = self.run_program("unshare", "-rm", "sh", "-c", script, env=environment)
        self.assertEqual(result.stdout, "code 3\n", result.stderr)
        self.assertRegex(result.stderr, r"\w+\.(cu|txt): cannot write: No space left on device")

    def test_a_full_disk_leaves_no_half_of_a_dump(self):
        os.mkdir(self.path("disk"))
        script = (f"mount -t tmpfs -o size=40k none {self.folder}/disk && "
                  f"{BUILD}/bin/sluice compile mlp.mlir -o out --dump-ir disk/dump; echo code $?; cp -r disk/dump copy")
        if self.run_program("unshare", "-rm", "sh", "-c", f"mount -t tmpfs none {self.folder}/disk").returncode != 0:
            self.skipTest("no mount here")
        result = self.run_program("unshare", "-rm", "sh", "-c", script)
        self.assertEqual(result.stdout, "code 3\n")
        self.assertIn("No space left on device", result.stderr)
        self.check_dumps(self.path("copy"))

    def check_dumps(self, folder):
        """Every existing file is complete."""
        for name in os.listdir(folder):
            self.assertTrue(name.endswith(".mlir"), name)
            with open(os.path.join(folder, name), encoding="utf-8") as dump:
                text = dump.read().rstrip()
            self.assertTrue(text.endswith(")"), f"{name} ends with {text[-40:]!r}")  # the last location


if __name__ == "__main__":
    main()
