"""`--target-cpu`: code for other CPUs than the host's."""

import json
import os
import re
import shutil
import subprocess
import unittest

from sluice_cli import BUILD, CliTest, main

UNSUPPORTED = 4


def this_machine_has(feature):
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return feature in info.read().split()


class TargetCpuTest(CliTest):
    def compile(self, cpu, model="small.mlir", *flags):
        return self.succeed(os.path.join(BUILD, "bin", "sluice"), "compile", model, "--target-cpu", cpu, *flags)

    def lenet(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "-o", "lenet.mlir")
        return "lenet.mlir"

    def test_an_older_cpus_code_runs_here(self):
        for cpu in ("native", "x86-64-v3", "haswell", "znver2:l1=16K,l2=1M"):
            with self.subTest(cpu):
                self.compile(cpu)
                self.assertEqual(self.predictions("small", [(1, 2, 3), (-1, 0, 0)]), [6, 6, 0, 0])

    def test_its_kernels_agree_with_the_interpreter(self):
        result = self.sluice("verify", self.lenet(), "--target-cpu", "haswell", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(result.stdout)["equal"])

    @unittest.skipIf(shutil.which("objdump") is None, "no objdump (binutils)")
    def test_its_code_has_none_of_our_wider_registers(self):
        model = self.lenet()
        wider = re.compile(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])")
        for cpu, is_wide in [("haswell", False), ("x86-64-v4", True)]:
            with self.subTest(cpu):
                self.compile(cpu, model, "--emit", "obj", "-o", "lenet.o")
                code = subprocess.run(["objdump", "-d", self.path("lenet.o")], text=True, capture_output=True, check=True).stdout
                self.assertIn("vfmadd", code)
                self.assertEqual(bool(wider.search(code)), is_wide)

    def test_an_executable_says_what_it_needs(self):
        self.assertIn("; haswell, 256-bit vectors", self.compile("haswell"))
        build = json.loads(self.run_program(self.path("small"), "info", "--json").stdout)["build"]
        self.assertEqual((build["cpu"], build["vector_bits"]), ("haswell", 256))
        self.assertEqual(build["needs"], ["avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "popcnt"])
        text = self.run_program(self.path("small"), "info").stdout
        self.assertIn("cpu haswell, 256-bit vectors", text)
        self.assertIn("needs    avx2, fma, f16c, bmi,", text)

    def test_code_that_cannot_run_here_is_refused(self):
        """Its executable still reports its contents."""
        if this_machine_has("avx512vl"):
            self.skipTest("this machine has AVX-512, and runs all code that there is")
        self.compile("skylake-avx512")
        self.assertEqual(self.run_program(self.path("small"), "info").returncode, 0)
        result = self.run_program(self.path("small"), "bench")
        self.assertEqual(result.returncode, UNSUPPORTED, result.stderr)
        self.assertIn("compiled for the CPU 'skylake-avx512', and this machine's is without avx512f", result.stderr)

    def test_bounds_of_kernels_are_those_of_the_code(self):
        """Also on a machine with wider vectors."""
        native = "AVX-512" if this_machine_has("avx512vl") else "AVX2"
        for cpu, vector in (("haswell", "AVX2"), ("native", native)):
            with self.subTest(cpu):
                self.compile(cpu)
                result = self.run_program(self.path("small"), "bench", "--kernels", "--json", "--seconds", "0")
                measured = json.loads(result.stdout)
                self.assertEqual(measured["machine"]["vector"], vector)
                self.assertEqual([kernel["kind"] for kernel in measured["kernels"]], ["einsum"])

    def test_devices_tells_what_native_means(self):
        cpu = next(b for b in json.loads(self.sluice("devices", "--json").stdout)["backends"] if b["name"] == "cpu")
        bits = 512 if this_machine_has("avx512vl") else 256
        self.assertRegex(cpu["description"], rf"code for .+, {bits}-bit vectors \(avx2, fma, ")


if __name__ == "__main__":
    main()
