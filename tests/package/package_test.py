"""Installs Sluice into a folder, moves it, and uses it as a stranger would: package_test.py BUILD_ROOT CXX."""

import json
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
from installation import InstallationTest, run

InstallationTest.build, InstallationTest.cxx = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
C_HEADERS = ("array_c.h", "dlpack_structs.h")  # beside those of C++


class PackageTest(InstallationTest):
    @classmethod
    def build_models(cls):
        return cls.build_project(os.path.join(HERE, "model"), "model")

    def test_what_is_there(self):
        for name in ["bin/sluice", "bin/sluice-opt", "lib/libsluice.so", "lib/sluice/link/libsluice_runner.a",
                     "lib/sluice/backends/sluice_sim_run.so", "lib/sluice/backends/sluice_null_compile.so",
                     "share/sluice/mnist-10k", "share/sluice/kjv/train.txt", "share/sluice/clusters/h100x8x128.json", "include/sluice/sluice.h",
                     "include/sluice/backend/run.h", "include/sluice/backend/adapter/run.h", "include/sluice/runtime/api.h", "share/doc/sluice/ops.md", "lib/cmake/Sluice/SluiceConfig.cmake", "lib/pkgconfig/sluice.pc"]:
            self.assertTrue(os.path.exists(self.path("prefix", name)), name)

    def test_backends_are_found_where_they_were_moved_to(self):
        listed = json.loads(run(self.sluice, "devices", "--json"))
        sim = next(backend for backend in listed["backends"] if backend["name"] == "sim")
        self.assertEqual(sim["run"], self.path("prefix/lib/sluice/backends/sluice_sim_run.so"))

    def test_a_model_found_by_cmake_trains(self):
        models = self.build_models()
        run(os.path.join(models, "digits"), self.path("digits.mlir"))
        run(self.sluice, "compile", self.path("digits.mlir"), "-o", self.path("digits"))
        data = self.path("prefix/share/sluice/mnist-10k")
        run(self.path("digits"), "train", "--data", data, "--epochs", "2", "--save", self.path("digits.safetensors"))
        evaluated = json.loads(run(self.path("digits"), "eval", "--data", data, "--weights", self.path("digits.safetensors"), "--json"))
        self.assertGreater(evaluated["accuracy"], 0.8)

    def test_a_model_found_by_pkg_config_is_the_same(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=self.path("prefix/lib/pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "sluice", env=environment).split()
        run(self.cxx, os.path.join(HERE, "model", "digits.cpp"), "-o", self.path("by_pkg_config"), *flags)
        run(self.path("by_pkg_config"), self.path("by_pkg_config.mlir"))
        run(self.sluice, "compile", self.path("by_pkg_config.mlir"), "-o", self.path("by_pkg_config"))
        self.assertIn("digits", run(self.path("by_pkg_config"), "info"))

    def test_a_graph_is_compiled_in_process(self):
        self.assertEqual(run(os.path.join(self.build_models(), "in_process")), "2 4 6 8 ")

    def test_an_uncaught_error_ends_a_program_with_its_text_and_code(self):
        command = [os.path.join(self.build_models(), "in_process"), "no rows"]
        result = subprocess.run(command, text=True, capture_output=True, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"^in_process.cpp:\d+:\d+: error: run: .*\b0\b")
        self.assertNotIn("terminate", result.stderr)

    def test_headers_name_the_language_that_they_need(self):
        include = self.path("prefix", "include")
        headers = [os.path.join(folder, name) for folder in ("", "array", "layers", "ops") for name in os.listdir(os.path.join(include, "sluice", folder))]
        for header in headers:
            if header in C_HEADERS:
                run(self.cxx, "-x", "c", "-std=c99", "-pedantic-errors", "-fsyntax-only", f"-I{include}", os.path.join(include, "sluice", header))
            elif header.endswith(".h"):
                command = [self.cxx, "-std=c++17", "-E", f"-I{include}", "-x", "c++", "-"]
                text = f"#include <sluice/{header}>"
                result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
                self.assertIn("#error \"Sluice needs C++20: compile with -std=c++20 or a later standard\"", result.stderr, header)

    def test_a_program_with_its_own_loop_needs_no_llvm(self):
        models = self.build_models()
        run(os.path.join(models, "digits"), self.path("loop.mlir"))
        run(self.sluice, "compile", self.path("loop.mlir"), "--emit=so", "-o", self.path("loop.so"))
        own_loop = os.path.join(self.build_project(os.path.join(HERE, "own_loop"), "own_loop"), "own_loop")
        self.assertEqual(run(own_loop, self.path("loop.so")), "10\n")
        self.assertNotIn("LLVM", run("ldd", own_loop))

    def test_documents_lead_to_what_is_installed(self):
        documents = self.path("prefix/share/doc/sluice")
        found = [os.path.join(folder, name) for folder, _, names in os.walk(documents) for name in names if name.endswith(".md")]
        names = {os.path.relpath(name, documents) for name in found}
        self.assertLessEqual({"README.md", "ops.md", "frontend/GUIDE.md", "passes/PHASES.md", "runtime/data/DATA.md", "tools/compiler/scale/SCALE.md"}, names)
        links = 0
        for name in found:
            with open(name, encoding="utf-8") as opened:
                text = "".join(opened.read().split("```")[::2])  # without code blocks
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                links += 1
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(name), link)), f"{name} links to {link}")
        self.assertGreater(links, 20)

    def test_nothing_is_installed_of_a_tree_that_is_not_built(self):
        with open(os.path.join(self.build, "cmake_install.cmake"), encoding="utf-8") as opened:
            steps = opened.read()
        check = os.path.join(self.build, "check_built.cmake")
        self.assertLess(steps.index(check), min(steps.find(step) % len(steps) for step in ("file(INSTALL", "/cmake_install.cmake")))
        run("cmake", "-P", check)
        with open(check, encoding="utf-8") as opened:
            text = opened.read()
        for missing in ("bin/sluice-opt", "lib/libsluice.so", "lib/sluice/backends/sluice_sim_run.so", "share/doc/sluice/ops.md"):
            self.assertIn(os.path.join(self.build, missing), text)
            with open(self.path("check.cmake"), "w", encoding="utf-8") as out:
                out.write(text.replace(os.path.join(self.build, missing), self.path("unbuilt", missing)))
            result = subprocess.run(("cmake", "-P", self.path("check.cmake")), text=True, capture_output=True, check=False)
            self.assertNotEqual(result.returncode, 0)
            told = " ".join(result.stderr.split())
            self.assertIn("cannot install: " + self.path("unbuilt", missing), told)
            self.assertIn("has not been built; build what is installed first:", told)
            self.assertIn("--target sluice_installation", told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
