#!/usr/bin/env python3
"""The developers' scripts: scripts_test.py SOURCE_ROOT BUILD_ROOT TEST

They run on copies, in which faults are planted. Contents of an archive without git are not checked."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

TEST = sys.argv.pop()
SOURCE, BUILD = map(os.path.abspath, (sys.argv[-2], sys.argv[-1]))
del sys.argv[-2:]

UNTIDY = "int answer(bool yes) {\n  if (yes)\n    return 42;\n  else\n    return 0;\n}\n"


def run(*command, cwd=SOURCE, **options):
    return subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


class Copy:
    """A repository with a script, the settings it reads, and one file."""

    def __init__(self, script, name, text):
        self.folder = tempfile.mkdtemp()
        for path in (f"tools/{script}", ".clang-format", ".clang-format-ignore", ".clang-tidy", "tests/layers/check_layers.py",
                     "tests/words/check_words.py"):
            os.makedirs(os.path.dirname(os.path.join(self.folder, path)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, path), os.path.join(self.folder, path))
        for path, content in ((name, text), ("tests/words/allowed.txt", "tests 1000\ntools 1000\n")):
            os.makedirs(os.path.dirname(os.path.join(self.folder, path)), exist_ok=True)
            with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
                file.write(content)
        run(sys.executable, "tests/words/check_words.py", ".", "--lower", cwd=self.folder)
        run("git", "init", "-q", cwd=self.folder)
        run("git", "add", ".", cwd=self.folder)

    def __enter__(self):
        return self.folder

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


class FormatTest(unittest.TestCase):
    def test_the_tree_is_formatted(self):
        if run("git", "rev-parse", "HEAD").returncode != 0:
            self.skipTest("no git repository here")
        result = run("tools/format", "--check")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_file_that_is_not_is_named(self):
        with Copy("format", "bad.cpp", "int  x ;\n") as folder:
            result = run("tools/format", "--check", cwd=folder)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("bad.cpp:1", result.stdout)
            self.assertEqual(run("tools/format", cwd=folder).returncode, 0)
            self.assertEqual(run("tools/format", "--check", cwd=folder).returncode, 0)


class HookTest(unittest.TestCase):
    """In a repository with the hook's scripts and a few files, which commits with the hook installed."""

    def setUp(self):
        if run("git", "--version").returncode != 0:
            self.skipTest("git is absent")
        copy = Copy("format", "passes/Good.cpp", "int x;\n")
        self.addCleanup(shutil.rmtree, copy.folder)
        self.folder = copy.folder
        shutil.copytree(os.path.join(SOURCE, "tools", "hooks"), os.path.join(self.folder, "tools", "hooks"))
        for setting in (("user.name", "Test"), ("user.email", "test@example.org"), ("core.hooksPath", "tools/hooks")):
            self.git("config", *setting)
        self.git("add", ".")
        self.assertEqual(self.commit().returncode, 0)

    def git(self, *arguments):
        result = run("git", *arguments, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    def commit(self, *arguments):
        return run("git", "commit", "-m", "a change", *arguments, cwd=self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def refused(self, *said):
        head = self.git("rev-parse", "HEAD")
        result = self.commit()
        self.assertNotEqual(result.returncode, 0, result.stdout)
        for text in said:
            self.assertIn(text, result.stdout)
        self.assertEqual(self.git("rev-parse", "HEAD"), head)

    def test_a_file_that_is_not_formatted(self):
        self.write("passes/Bad.cpp", "int  y ;\n")
        self.git("add", ".")
        self.refused("passes/Bad.cpp:1", "pre-commit: staged files are not formatted")
        self.write("passes/Bad.cpp", "int y;\n")
        self.refused("passes/Bad.cpp:1")  # the staged text is unchanged
        self.git("add", ".")
        result = self.commit()
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_file_that_is_not_staged_is_not_checked(self):
        self.write("passes/Good.cpp", "int  x ;\n")
        self.write("passes/New.cpp", "int y;\n")
        self.git("add", "passes/New.cpp")
        result = self.commit()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.git("rm", "-q", "passes/New.cpp")
        result = self.commit()
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_file_that_is_committed_by_name(self):
        self.write("passes/Good.cpp", "int  x ;\n")
        result = self.commit("passes/Good.cpp")
        self.assertIn("passes/Good.cpp:1", result.stdout)
        self.assertNotEqual(result.returncode, 0)

    def test_an_include_of_another_layer(self):
        self.write("passes/Bad.cpp", '#include "frontend/graph/Call.h"\n')
        self.git("add", ".")
        self.refused("passes/Bad.cpp:1: passes may not include frontend/graph/Call.h", "pre-commit: failed: python3 -B tests/layers/check_layers.py .")

    def test_quickstart_refuses_other_arguments(self):
        result = run("tools/quickstart", "--hook")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown argument '--hook'; usage: tools/quickstart [--hooks]", result.stdout)

    def test_it_is_fast_in_this_repository(self):
        if run("git", "rev-parse", "HEAD").returncode != 0:
            self.skipTest("no git repository here")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = run("tools/hooks/pre-commit")
        self.assertEqual(result.returncode, 0, result.stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 8)  # seconds of CPU time; 2 on an idle machine


class LintTest(unittest.TestCase):
    def test_some_files_are_clean(self):
        if os.path.realpath(BUILD) not in (os.path.realpath(os.path.join(SOURCE, "build", name)) for name in ("dev", "release")):
            self.skipTest("lint knows the builds of dev and release")
        result = run("tools/lint", "--strict", "runtime/base/Text.cpp", "runtime/base/Status.cpp")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_a_finding_is_an_error(self):
        with Copy("lint", "bad.cpp", UNTIDY) as folder:
            os.makedirs(os.path.join(folder, "build", "dev"))
            with open(os.path.join(folder, "build", "dev", "compile_commands.json"), "w", encoding="utf-8") as file:
                file.write(f'[{{"directory": "{folder}", "file": "bad.cpp", "command": "c++ -Wno-restrict -c bad.cpp"}}]')
            result = run("tools/lint", "--strict", "bad.cpp", cwd=folder)
            self.assertNotEqual(result.returncode, 0, result.stdout)
            self.assertIn("else-after-return", result.stdout)


class QuickstartTest(unittest.TestCase):
    """With the existing build: a quickstart of an empty clone would first build for minutes."""

    def test_it_trains_lenet(self):
        if os.path.realpath(BUILD) != os.path.realpath(os.path.join(SOURCE, "build", "release")):
            self.skipTest("the quickstart builds release, and this is another build")
        result = run("tools/quickstart", timeout=280)
        self.assertEqual(result.returncode, 0, result.stdout)
        accuracy = float(result.stdout.rpartition("accuracy ")[2].split()[0])
        self.assertGreaterEqual(accuracy, 96, result.stdout)  # 97.5 on the machine of the first training


class CompileTimeTest(unittest.TestCase):
    def test_it_prints_a_line_for_each(self):
        result = run("tools/bench/compile_time", "--build", BUILD, "--models", "mlp", "--chains", "20", "--depthwise", "2",
                     "--deep", "linear:2,mixed:20", "--rounds", "1")
        self.assertEqual(result.returncode, 0, result.stdout)
        for name in ("mlp", "linear 2", "mixed 20", "chain 20", "depthwise 2"):
            self.assertRegex(result.stdout, rf"(?m)^{name} +\d+\.\d\d s +\d+\.\d\d s +\d+ MB +\d+ kB$")


class PairsTest(unittest.TestCase):
    """With executables that print given times."""

    def executable(self, name, *lines):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(["#!/bin/sh", f"echo {name} >>'{self.folder}/runs'", *lines]) + "\n")
        os.chmod(path, 0o755)
        return path

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.steady = self.executable("steady", """echo '{"median_ms": 2.0}'""")

    def test_the_median_of_the_ratios_and_its_interval(self):
        slower = self.executable("slower", f"""echo "{{\\"median_ms\\": 2.$(grep -c slower '{self.folder}/runs')}}\"""")
        result = run("tools/bench/pairs", self.steady, slower, "--pairs", "9", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        found = json.loads(result.stdout)
        self.assertEqual((found["old_ms"], found["new_ms"], found["pairs"]), (2, 2.5, 9))
        self.assertAlmostEqual(found["ratio"], 1.25)
        # A resampling of 9 has its median at the least of them with probability 0.001, at the two least with 0.03.
        self.assertAlmostEqual(found["low"], 1.1)
        self.assertAlmostEqual(found["high"], 1.4)
        with open(f"{self.folder}/runs", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["steady", "slower", "slower", "steady"] * 4 + ["steady", "slower"])

    def test_flags_reach_the_executables(self):
        wants = self.executable("wants", 'case "$*" in *"--entry predict") ;; *) exit 2 ;; esac', """echo '{"median_ms": 1.0}'""")
        self.assertEqual(run("tools/bench/pairs", wants, wants, "--pairs", "1", "--", "--entry", "predict").returncode, 0)

    def test_what_fails_is_named(self):
        fails = self.executable("fails", "echo out of memory >&2; exit 5")
        result = run("tools/bench/pairs", self.steady, fails)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, "fails bench .* gives 5:\nout of memory")


class PeersTest(unittest.TestCase):
    """With a Python that prints given times, in place of one with PyTorch."""

    PYTHON = """#!/usr/bin/env python3
import json, sys
net, mode, batch, variant, threads = sys.argv[2:]
if variant == "fails":
    sys.exit(3)
if variant == "compile+cl":
    sys.exit(0)  # what a PyTorch that cannot compile does
slow = variant == "eager"
print(json.dumps({"version": f"of {net} {mode} {batch} {threads}", "first_s": 20.5}), flush=True)
for seconds in sys.stdin:
    print(json.dumps({"median_ms": 1e6 * float(seconds) * (2 if slow else 1), "resident_mb": 50 if slow else 70}), flush=True)
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.python = os.path.join(folder.name, "python")
        with open(self.python, "w", encoding="utf-8") as file:
            file.write(self.PYTHON)
        os.chmod(self.python, 0o755)

    def peers(self, *flags, net="lenet"):
        return run("tools/bench/peers", "--build", BUILD, "--net", net, "--seconds", "0.01", "--rounds", "1", "--threads", "1", *flags)

    def test_the_best_variant_is_beside_ours(self):
        result = self.peers("--python", self.python, "--mode", "train", "--json")
        self.assertEqual(result.returncode, 0, result.stdout)
        row = json.loads(result.stdout)
        self.assertEqual((row["net"], row["mode"], row["batch"], row["torch"]), ("lenet", "train", 256, "of lenet train 256 1"))
        self.assertEqual(row["torch_ms"], {"eager": 2e4, "eager+cl": 1e4, "compile": 1e4})
        self.assertEqual((row["torch_best"], row["torch_compile_s"]), ("eager+cl", {"compile": 20.5}))
        self.assertEqual(row["torch_mb"], {"eager": 50, "eager+cl": 70, "compile": 70})
        self.assertAlmostEqual(row["ratio"], row["ms"] / 1e4)
        self.assertLess(row["gflops"], 1.5 * row["peak_gflops"])
        self.assertGreater(row["planned_mb"], 3)
        self.assertGreater(row["compile_s"], 0.05)

    def test_it_prints_a_line_for_each(self):
        result = self.peers("--python", self.python)
        self.assertEqual(result.returncode, 0, result.stdout)
        for mode in ("train", "infer"):
            self.assertRegex(result.stdout, rf"(?m)^lenet {mode} +256 +[\d.]+ +10000.00 eager\+cl +\d+\.\d\d +\d+ +\d+% +\d+ +50 +[\d.]+ +20\.5$")

    def test_for_inference_nothing_is_compiled_that_trains(self):
        rows = [json.loads(line) for line in self.peers("--json").stdout.splitlines()]
        self.assertEqual([row["mode"] for row in rows], ["train", "infer"])
        self.assertLess(rows[1]["executable_kb"], rows[0]["executable_kb"] - 30)

    def test_alone_without_a_python(self):
        result = self.peers("--python", "", net="mlp")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^mlp train +64 +[\d.]+ +\d+ +\d+% +\d+ +[\d.]+ *$")

    def test_what_fails_is_named(self):
        result = self.peers("--python", self.python, "--variants", "fails", net="mlp")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, "peers_torch.py mlp train 64 fails 1 gives 3")

    def test_networks_and_modes_are_known(self):
        for flags, said in ((("--net", "lenot"), "--net: lenot is none of mlp, "), (("--mode", "eval"), "--mode: eval is none of train, ")):
            result = run("tools/bench/peers", *flags)
            self.assertEqual(result.returncode, 2)
            self.assertIn(said, result.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], TEST], verbosity=2)
