#!/usr/bin/env python3
"""The developers' scripts: scripts_test.py SOURCE_ROOT BUILD_ROOT TEST

They run on copies, in which faults are planted. Contents of an archive without git are not checked."""

import argparse
import json
import os
import pathlib
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
            seconds = r" +\d+\.\d\d s" * 3  # the median, the processors', with a cache
            self.assertRegex(result.stdout, rf"(?m)^{name}{seconds} +\d+ MB +\d+ kB$")


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


class NetworksTest(unittest.TestCase):
    """With a Python that prints given times, in place of one with PyTorch and OpenVINO."""

    PYTHON = """#!/usr/bin/env python3
import json, os, sys
if sys.argv[1] == "-c":
    print("torch openvino onnxscript")
    sys.exit(0)
script, net, mode, batch, variant, threads = sys.argv[1:]
if script.endswith("onnx_peer.py") and mode == "train" or variant == "compile+cl":
    sys.exit(0)  # as a peer without the mode or the variant
if net == "mlp" and variant == "eager":
    sys.exit("no such memory")
slow = variant == "eager"
print(json.dumps({"ready": True, "version": f"of {net} {mode} {batch} {threads}", "first_s": 20.5}), flush=True)
for number, seconds in enumerate(sys.stdin):
    if net == "mlp" and number == 1:
        sys.exit(os.environ.get("ONEDNN_MAX_CPU_ISA", "ended"))
    print(json.dumps({"median_ms": 1e6 * float(seconds) * (2 if slow else 1), "resident_mb": 50 if slow else 70}), flush=True)
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.python, self.json, self.plot = (os.path.join(folder.name, name) for name in ("python", "figures.json", "chart.svg"))
        with open(self.python, "w", encoding="utf-8") as file:
            file.write(self.PYTHON)
        os.chmod(self.python, 0o755)

    def networks(self, *flags, net="mlp", rounds=1):
        return run("tools/bench/networks", "--build", BUILD, "--net", net, "--seconds", "0.01", "--rounds", str(rounds), "--threads", "1", "--json",
                   self.json, "--plot", self.plot, *flags)

    def figures(self):
        with open(self.json, encoding="utf-8") as file:
            return json.load(file)

    def test_alone(self):
        """The smallest network, without peers: the report has every figure."""
        result = self.networks("--python", sys.executable, "--peer", "tensorflow")
        self.assertEqual(result.returncode, 0, result.stdout)
        figures = self.figures()
        machine, (case,) = figures["machine"], figures["cases"]
        self.assertEqual((figures["target_cpu"], machine["threads"]), ("native", 1))
        for limits in (machine["one_thread"], machine["all_threads"]):
            self.assertGreater(limits["peak_gflops"], 0)
            self.assertGreater(limits["read_gbps"], 0)
        self.assertEqual((case["net"], case["mode"], case["batch"]), ("mlp", "train", 64))
        self.assertEqual((case["peers"], case["fastest_peer"], case["ratio"]), ({}, None, None))
        ours = case["sluice"]
        self.assertEqual((ours["rounds_ms"], ours["median_ms"]), ([ours["least_ms"]], ours["least_ms"]))
        for name in ("least_ms", "gflops", "peak_share", "planned_mb", "resident_mb", "compile_s", "executable_kb"):
            self.assertGreater(ours[name], 0, name)
        self.assertIn("products", case["classes"])
        self.assertAlmostEqual(sum(kernel["ms"] for kernel in case["kernels"]), sum(its["ms"] for its in case["classes"].values()))
        for its in case["classes"].values():
            self.assertAlmostEqual(its["share"], its["bound_ms"] / its["ms"])
        self.assertRegex(result.stdout, r"(?m)^mlp train \(64\) +[\d.]+ +[\d.]+ +\d+ +\d+% +\d+ +[\d.]+ *$")
        self.assertRegex(result.stdout, r"(?m)^    products +[\d.]+ ms +\d+%  bound +[\d.]+ ms +\d+%$")

    def test_the_fastest_peer_is_beside_ours(self):
        result = self.networks("--python", self.python, net="lenet")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("not installed, and skipped: jax, tensorflow, onnxruntime\n", result.stdout)
        train, infer = self.figures()["cases"]
        self.assertEqual({name: (peer["least_ms"], peer["median_ms"], peer["resident_mb"]) for name, peer in train["peers"].items()},
                         {"torch eager": (2e4, 2e4, 50), "torch eager+cl": (1e4, 1e4, 70), "torch compile": (1e4, 1e4, 70)})
        self.assertEqual(sorted(infer["peers"]), ["openvino", "torch compile", "torch eager", "torch eager+cl"])
        self.assertEqual((train["fastest_peer"], train["peers"]["torch eager+cl"]["version"]), ("torch eager+cl", "of lenet train 256 1"))
        self.assertAlmostEqual(train["ratio"], train["sluice"]["least_ms"] / 1e4)
        self.assertRegex(result.stdout, r"(?m)^lenet train \(256\) +[\d.]+ +[\d.]+  torch eager\+cl +10000.00 +10000.00 +\d+\.\d\d .* +70 +[\d.]+ +20\.5$")
        with open(self.plot, encoding="utf-8") as file:
            self.assertEqual(file.read().count("<rect"), 2)
        self.assertLess(infer["sluice"]["executable_kb"], train["sluice"]["executable_kb"] - 30)  # no training code

    def test_a_peer_that_fails_is_named(self):
        result = self.networks("--python", self.python, "--peer", "torch", "--target-cpu", "haswell", rounds=2)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("torch_peer.py mlp train 64 eager 1 gives 1: no such memory\n", result.stdout)
        self.assertIn("torch_peer.py mlp train 64 compile 1 gives 1: AVX2\n", result.stdout)  # in the second round
        case, = self.figures()["cases"]
        self.assertEqual(case["peers"], {})
        self.assertEqual(case["sluice"]["least_ms"], min(case["sluice"]["rounds_ms"]))
        self.assertEqual(len(case["sluice"]["rounds_ms"]), 2)
        self.assertRegex(result.stdout, r"AVX2: 1 thread \d+ GFLOP/s")

    def test_names_are_known(self):
        for flags, said in ((("--net", "lenot"), "--net: lenot is none of lenet, "), (("--mode", "eval"), "--mode: eval is none of train, "),
                            (("--peer", "caffe"), "--peer: caffe is none of torch, "),
                            (("--net", "mlp", "--mode", "infer"), "there is no case of mlp for infer")):
            result = run("tools/bench/networks", *flags)
            self.assertEqual(result.returncode, 2)
            self.assertIn(said, result.stdout)


class NetworkClassesTest(unittest.TestCase):
    """The classes of kernels in tools/bench/networks."""

    GRAPH = """module @grouped {
  sluice.model "grouped" format 2 phase "model" capacity 1
  sluice.graph ["x", "w", "v"] (%x: tensor<1x4x5x5xf32>, %w: tensor<4x1x3x3xf32>, %v: tensor<4x4x1x1xf32>) {
    %y = sluice.conv2d %x, %w {GROUPED} : (tensor<1x4x5x5xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x3x3xf32>
    %z = sluice.conv2d %y, %v {PLAIN} : (tensor<1x4x3x3xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x3x3xf32>
    sluice.output "z", %z : tensor<1x4x3x3xf32>
  }
}
"""

    def setUp(self):
        sys.path.insert(0, os.path.join(SOURCE, "tools/bench"))
        self.addCleanup(sys.path.remove, sys.path[0])

    def test_kinds_of_launches(self):
        from network_report import class_of

        kinds = {"einsum": "products", "einsum_bf16": "products", "conv2d": "convolutions", "conv2d_narrow": "convolutions",
                 "conv2d_input_grad": "input gradients", "conv2d_input_grad_narrow": "input gradients", "conv2d_weight_grad": "weight gradients",
                 "scaled_dot_product_attention": "attention", "attention_key_value_grad": "attention", "max_pool2d": "pools",
                 "avg_pool2d_grad": "pools", "elementwise": "elementwise", "movement": "copies", "relayout": "copies", "sum": "sums and norms", "": "sums and norms"}
        self.assertEqual({kind: class_of({"kind": kind, "name": "kernel"}, set()) for kind in kinds}, kinds)
        self.assertEqual(class_of({"kind": "conv2d", "name": "kernel"}, {"kernel"}), "convolutions in groups")

    def test_figures_are_the_least_of_the_runs(self):
        from network_report import classes_of, kernels_of

        def run_of(ms, bound, peak):
            kernel = {"kind": "einsum", "source": "x.cpp:1:1"}
            return {"machine": {"peak_gflops": peak},
                    "kernels": [kernel | {"name": "a", "launches": 2, "ms": ms, "bound": bound, "bound_by": "compute"},
                                kernel | {"name": "b", "launches": 1, "ms": 9 - ms, "bound": bound, "bound_by": "memory"}]}

        kernels = kernels_of([run_of(4, 2, 50), run_of(5, 1, 100)], set(), peak=200)  # twice the measured peak
        self.assertEqual([(kernel["ms"], kernel["bound_ms"], kernel["share"]) for kernel in kernels], [(4, 0.5, 0.125), (4, 1, 0.25)])
        self.assertEqual(classes_of(kernels), {"products": {"launches": 3, "ms": 8, "bound_ms": 1.5, "share": 0.1875}})

    def test_convolutions_in_groups_are_found(self):
        from network_programs import Program

        attributes = "stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = "
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "grouped.mlir"
            model.write_text(self.GRAPH.replace("GROUPED", f"{attributes}4 : i64").replace("PLAIN", f"{attributes}1 : i64"))
            options = argparse.Namespace(build=pathlib.Path(BUILD), threads=1, seconds=0, target_cpu="native")
            program = Program(model, "predict", options)
            flops = {kernel["name"]: round(kernel["gflops"] * kernel["ms"] * 1e6) for kernel in program.measure("--kernels")["kernels"]}
            grouped = program.grouped_kernels()
        self.assertLess(grouped, set(flops))
        self.assertEqual([flops[name] for name in grouped], [2 * 4 * 9 * 9])  # the other convolution has 2 * 4 * 9 * 4


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], TEST], verbosity=2)
