#!/usr/bin/env python3
"""The skeletons that tools/new writes: new_test.py SOURCE_ROOT LLVM_TOOLS MLIR_INCLUDES TEST...

MLIR_INCLUDES are folders with colons between them.
Every test runs in a copy of the tree. SkeletonTest checks the structure of the skeletons in seconds. With SLUICE_TEST_FULL,
BuildTest builds them and runs their tests."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, TOOLS, INCLUDES = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3].split(":")
del sys.argv[1:4]

COMMANDS = (("op", "row_sum"), ("pass", "drop_unused"), ("backend", "abacus"))


def run(*command, cwd, **options):
    return subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


def contents(folder):
    """Every file by its path, with what changes when it is written."""
    found = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            status = os.stat(path)
            found[os.path.relpath(path, folder)] = (status.st_size, status.st_mtime_ns)
    return found


class CopyTest(unittest.TestCase):
    """In a copy of the folders that tools/new reads and writes."""

    copied = ("backends", "frontend", "ir", "passes", "tests/backends", "tests/e2e/torch", "tests/ir", "tests/layers", "tests/passes",
              "tools/reference", "tools/skeletons", "tools/sluice-opt")
    files = (".clang-format", "tests/CMakeLists.txt", "tools/new")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "tree")
        for path in self.copied:
            shutil.copytree(os.path.join(SOURCE, path), os.path.join(self.root, path), ignore=shutil.ignore_patterns("__pycache__"))
        for path in self.files:
            shutil.copy(os.path.join(SOURCE, path), os.path.join(self.root, path))

    def new(self, *arguments):
        return run(sys.executable, "-B", "tools/new", *arguments, cwd=self.root)

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def written(self, *arguments):
        """Runs tools/new, and returns the new and the changed files that the output lists."""
        before = contents(self.root)
        result = self.new(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout)
        after = contents(self.root)
        new, changed = (re.findall(rf"(?m)^{word} +(\S+)$", result.stdout) for word in ("new", "changed"))
        self.assertEqual(sorted(new), sorted(set(after) - set(before)))
        self.assertEqual(sorted(changed), sorted(path for path in before if after[path] != before[path]))
        self.assertRegex(result.stdout, r"(?m)^fill in:\n  \S")
        for path in new + changed:
            self.assertNotRegex(self.text(path), r"@\w+@", path)
            self.assertTrue(self.text(path).endswith("\n"), path)
        return new, changed


class SkeletonTest(CopyTest):
    def check_sources(self, paths):
        sources = [path for path in paths if path.endswith((".cpp", ".h"))]
        if formatter := shutil.which("clang-format-19"):
            result = run(formatter, "--dry-run", "--Werror", *sources, cwd=self.root)
            self.assertEqual(result.returncode, 0, result.stdout)
        layers = run(sys.executable, "-B", "tests/layers/check_layers.py", ".", cwd=self.root)
        self.assertEqual(layers.returncode, 0, layers.stdout)

    def check_listed(self, sources):
        """Each source is in the next CMakeLists.txt above it, once."""
        for source in sources:
            folder = os.path.dirname(source)
            while not os.path.exists(os.path.join(self.root, folder, "CMakeLists.txt")):
                folder = os.path.dirname(folder)
            listed = self.text(f"{folder}/CMakeLists.txt")
            name = re.escape(os.path.relpath(source, folder))
            self.assertEqual(len(re.findall(rf"(?m)(?<=[\s(]){name}(?=[\s)])", listed)), 1, source)
            self.assertEqual(listed.count("("), listed.count(")"))

    def tablegen(self, tool, *arguments):
        result = run(os.path.join(TOOLS, tool), *arguments, f"-I{self.root}", *(f"-I{folder}" for folder in INCLUDES), "ir/Ops.td", cwd=self.root)
        self.assertEqual(result.returncode, 0, result.stdout[-2000:])
        return result.stdout

    def check_op(self, arguments, definition):
        new, changed = self.written("op", "row_sum", *arguments)
        self.assertIn(definition, new + changed)
        self.check_sources(new + changed)
        self.check_listed(path for path in new if path.endswith(".cpp"))
        self.assertIn("class RowSumOp", self.tablegen("mlir-tblgen", "-gen-op-decls"))
        self.check_reference()
        ast.parse(self.text("tests/e2e/torch/reference.py"))
        self.assertIn("row_sum(x, -1)", self.text("tests/e2e/torch/MixedGraph.cpp"))

    def check_reference(self):
        records = os.path.join(self.root, "ops.json")
        with open(records, "w", encoding="utf-8") as out:
            out.write(self.tablegen("llvm-tblgen", "--dump-json"))
        result = run(sys.executable, "-B", "tools/reference/op_reference.py", records, "tools/reference/preface.md",
                     "tools/reference/special_points.json", "ops.md", cwd=self.root)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("### sluice.row_sum\n", self.text("ops.md"))

    def test_an_op_in_a_new_family(self):
        neighbor = self.place("op neighbor")
        self.check_op([], os.path.join(os.path.dirname(neighbor), "RowSum.td"))

    def test_an_op_in_a_family(self):
        family = next(path for path in re.findall(r'include "([^"]+)"', self.text("ir/Ops.td")) if path.endswith("/Reduction.td"))
        self.check_op(["--family", "Reduction"], family)

    def test_a_pass(self):
        new, changed = self.written("pass", "drop_unused")
        self.check_sources(new + changed)
        self.check_listed(path for path in new if path.endswith(".cpp"))
        self.assertIn("void dropUnused(mlir::ModuleOp module);", self.text("passes/Passes.h"))
        self.assertIn('{"drop-unused"', self.text("passes/driver/PassTable.cpp"))
        self.assertIn("--sluice-drop-unused", self.text("tests/passes/drop_unused.mlir"))

    def test_a_pass_of_each_room(self):
        for room in ("assign", "kernel", "train"):
            new, _ = self.written("pass", f"drop_{room}", "--room", room)
            self.assertIn(f"passes/{room}/Drop{room.capitalize()}.cpp", new)
            self.check_listed(path for path in new if path.endswith(".cpp"))

    def test_a_backend(self):
        new, changed = self.written("backend", "abacus")
        self.check_sources(new)
        self.assertEqual(sorted(changed), ["backends/CMakeLists.txt", "tests/CMakeLists.txt"])
        self.assertEqual(self.text("backends/CMakeLists.txt").count("add_subdirectory(abacus)\n"), 1)
        self.assertEqual(self.text("tests/CMakeLists.txt").count("add_subdirectory(backends/abacus)\n"), 1)
        for path in new:
            self.assertNotRegex(self.text(path), r"(?<![a-z])null(?![a-z])|template", path)
        compiler = shutil.which("clang++-19")
        for half in ("compiler", "runtime") if compiler else ():
            result = run(compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Ibackends/include",
                         f"backends/abacus/{half}/Plugin.cpp", cwd=self.root)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_all_of_them(self):
        for arguments in COMMANDS:
            self.written(*arguments)

    def place(self, name):
        return json.loads(run(sys.executable, "-B", "-c", "import json, runpy; "
                              f"print(json.dumps(runpy.run_path('tools/new')['PLACES'][{name!r}]))", cwd=self.root).stdout)


class RefusalTest(CopyTest):
    def refused(self, *arguments):
        before = contents(self.root)
        result = self.new(*arguments)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertEqual(contents(self.root), before, arguments)
        return result.stdout

    def test_bad_names(self):
        for kind, _ in COMMANDS:
            for name in ("RowSum", "row-sum", "2d", "_row", "row__sum", "row_", "row sum", "../row", "", "größe"):
                self.assertIn(f"cannot use the name '{name}': a name is in lower case", self.refused(kind, name))
            self.assertIn("cannot use the name 'switch': C++ reserves it", self.refused(kind, "switch"))

    def test_names_that_exist(self):
        for arguments, said in ((("op", "exp"), "Elementwise.td has an op of that name"), (("op", "cum_sum"), "Reduction.td has an op of that name"),
                                (("op", "cumsum"), "has an op of that name"), (("op", "topk"), "has a function of that name"),
                                (("op", "simplify"), "cannot write tests/passes/simplify.mlir: the file exists"),
                                (("pass", "simplify"), "passes/Passes.h has simplify already"),
                                (("pass", "place_values"), "passes/Passes.h has placeValues already"),
                                (("pass", "lower_kernels"), 'PassTable.cpp has "lower-kernels" already'),
                                (("backend", "cpu"), "backends/cpu exists"), (("backend", "include"), "backends/include exists")):
            self.assertIn(said, self.refused(*arguments))

    def test_a_second_time(self):
        for arguments in COMMANDS:
            self.assertEqual(self.new(*arguments).returncode, 0)
            self.refused(*arguments)

    def test_families_and_rooms_are_known(self):
        self.assertIn("cannot find the family Sums: the families are Attention, ", self.refused("op", "row_sum", "--family", "Sums"))
        self.assertIn("cannot find the room cellar: the rooms are analysis, ", self.refused("pass", "drop_unused", "--room", "cellar"))

    def test_a_place_that_moved_is_named(self):
        os.remove(os.path.join(self.root, "tests/CMakeLists.txt"))
        self.assertIn("cannot find tests/CMakeLists.txt: it moved; correct PLACES in tools/new", self.refused("backend", "abacus"))
        with open(os.path.join(self.root, "passes/Passes.h"), "w", encoding="utf-8") as out:
            out.write("#pragma once\n")
        self.assertIn("cannot find where to add to passes/Passes.h", self.refused("pass", "drop_unused"))

    def test_without_arguments(self):
        self.assertIn("usage: tools/new", self.refused())


class BuildTest(unittest.TestCase):
    def test_skeletons_build_and_pass_their_tests(self):
        if not os.environ.get("SLUICE_TEST_FULL"):
            self.skipTest("builds the compiler; set SLUICE_TEST_FULL")
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "tree")
            shutil.copytree(SOURCE, root, symlinks=True, ignore=shutil.ignore_patterns("build", "__pycache__", ".git"))
            for arguments in COMMANDS:
                self.succeed(root, sys.executable, "-B", "tools/new", *arguments)
            self.succeed(root, "cmake", "--preset", "ci")
            self.succeed(root, "cmake", "--build", "--preset", "ci", "--target", "sluice", "sluice-opt", "sluice_backends",
                         "sluice_ir_tests", "torch_cases")
            listed = self.succeed(root, "ctest", "--preset", "ci", "--no-tests=error", "-R", r"^(RowSum|Gradient|Formula)$|^passes$|^conformance\.abacus$|^torch\.random$")
            for test in ("RowSum", "Gradient", "Formula", "passes", "conformance.abacus", "torch.random"):
                self.assertIn(test, listed)

    def succeed(self, root, *command):
        result = run(*command, cwd=root)
        self.assertEqual(result.returncode, 0, result.stdout[-5000:])
        return result.stdout


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    skipped = program.result.testsRun > 0 and len(program.result.skipped) == program.result.testsRun
    sys.exit(77 if skipped else not program.result.wasSuccessful())
