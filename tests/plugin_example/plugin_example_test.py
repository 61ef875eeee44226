"""Builds the example plugin against an installation and nothing else, and uses it: plugin_example_test.py BUILD_ROOT CXX."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "package"))
from installation import InstallationTest, run

InstallationTest.build, InstallationTest.cxx = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)


class PluginExampleTest(InstallationTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        without_llvm = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in ("LLVM", "MLIR", "LLD")]
        cls.plugin = cls.build_project(HERE, "plugin", *without_llvm)
        cls.environment = dict(os.environ, SLUICE_BACKEND_PATH=cls.plugin)

    def test_it_needs_no_llvm(self):
        libraries = run("ldd", os.path.join(self.plugin, "abacus.so"))
        self.assertNotRegex(libraries, "LLVM|MLIR|sluice")

    def test_it_is_listed(self):
        listed = json.loads(run(self.sluice, "devices", "--json", env=self.environment))
        devices = {device["device"]: device for device in listed["devices"]}
        self.assertEqual(devices["abacus:0"]["name"], "Abacus")
        self.assertEqual(listed["refused"], [])

    def test_it_conforms_with_a_written_exclusion(self):
        report = json.loads(run(self.sluice, "conformance", "--backend", "abacus", "--json", env=self.environment))
        results = {test["test"]: test for test in report["tests"]}
        self.assertEqual(report["failed"], 0)
        for op in ("op.add.f32", "op.relu.f32", "op.einsum.f32"):
            self.assertEqual(results[op]["result"], "passed", results[op]["detail"])
        self.assertEqual(results["op.exp.f32"]["result"], "skipped")
        self.assertIn("not sluice.exp", results["op.exp.f32"]["detail"])
        self.assertRegex(results["op.einsum.f32"]["detail"], "[1-9][0-9]* cases refused, such as: abacus ")
        self.assertEqual(results["memory.counted"]["result"], "excluded")
        self.assertIn("does not know", results["memory.counted"]["detail"])

    def model(self, *arguments):
        """Builds the model and writes it; returns the file."""
        built = self.build_project(os.path.join(HERE, "model"), "model")
        run(os.path.join(built, "mixed"), self.path("mixed.mlir"), *arguments)
        return self.path("mixed.mlir")

    def test_it_computes_its_ops_and_the_cpu_the_rest(self):
        model = self.model()
        run(self.sluice, "compile", model, "--emit=so", "-o", self.path("mixed.so"), env=self.environment)
        run(os.path.join(self.path("model"), "check"), self.path("mixed.so"), env=self.environment)
        planned = run(self.sluice, "compile", model, "--compile-to", "fused", "-o", "-", env=self.environment)
        for op, alias in (("einsum", "acc0"), ("relu", "acc0"), ("exp", "cpu")):
            self.assertRegex(planned, rf"sluice\.{op} .*, #{alias}_?> loc")

    def test_it_gets_row_major_tensors_between_convolutions(self):
        model = os.path.join(HERE, "model", "between_convolutions.mlir")
        run(self.sluice, "compile", model, "--emit=so", "-o", self.path("between.so"), env=self.environment)
        fused = run(self.sluice, "compile", model, "--compile-to", "fused", "-o", "-", env=self.environment)
        self.assertNotRegex(fused, "acc0[^>]*layout")
        self.assertRegex(fused, r"sluice\.relayout .*#cpu")

    def test_an_op_that_it_lacks_is_an_error_with_its_reason(self):
        result = subprocess.run([self.sluice, "compile", self.model("all"), "-o", self.path("all")], env=self.environment,
                                text=True, capture_output=True, check=False)
        self.assertEqual(result.returncode, 4)
        self.assertRegex(result.stderr, "mixed.cpp:.*abacus can add, relu and einsum, but not sluice.exp")

    def test_without_the_plugin_the_model_is_refused(self):
        result = subprocess.run([self.sluice, "compile", self.model(), "-o", self.path("none")], text=True,
                                capture_output=True, check=False)
        self.assertEqual(result.returncode, 4)
        self.assertIn("there is no backend 'abacus'", result.stderr)

    def test_checklist_54_arrays_compute_on_it(self):
        self.model()
        result = subprocess.run([os.path.join(self.path("model"), "arrays")], env=self.environment, text=True,
                                capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:3], ["(2, 2) gpu(0) float32", "[[ 6.,  0.],", " [ 8., 12.]]"])
        self.assertRegex(lines[3], "exp: .*abacus can add, relu and einsum, but not sluice.exp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
