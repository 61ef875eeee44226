"""Models compiled for CUDA devices, and run on emulated ones (tests/cuda_emu): what runs there agrees with the reference,
and what is absent is named with its own exit code."""

import os
import re

from sluice_cli import BUILD, MNIST, CliTest, main

DOUBLES = {
    "SLUICE_NVRTC": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_nvrtc.so"),
    "SLUICE_CUDA_DRIVER": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_driver.so"),
}


class CudaTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment() | DOUBLES
        program = os.path.join(BUILD, "bin", "models", "lenet")
        self.succeed(program, "--batch", "2", "-o", "lenet.mlir")

    def run_sluice(self, *arguments, **environment):
        return self.sluice(*arguments, env=self.environment | environment)

    def compile(self, *arguments, **environment):
        arguments = ("lenet.mlir", "--devices", "cpu,cuda:0", "--placement", "auto", *arguments)
        return self.run_sluice("compile", *arguments, **environment)

    def test_kernels_agree_with_the_reference(self):
        for seed, devices in enumerate(("cuda:0", "cpu,cuda:0,cuda:1")):
            arguments = ("lenet.mlir", "--devices", devices, "--placement", "auto", "--rows", "2")
            result = self.run_sluice("verify", *arguments, CUDA_EMU_SEED=str(seed))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("agree with the reference", result.stdout)

    def test_an_executable_copies_what_was_predicted(self):
        result = self.compile("-o", "lenet")
        self.assertEqual(result.returncode, 0, result.stderr)
        command = ("bench", "--seconds", "0.01", "--report", "--seed", "3")
        result = self.run_program(self.path("lenet"), *command, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        totals = re.findall(r"(\d+ / \d+) B {3,}(\d+ / \d+) B {3,}(\d+ / \d+) B$", result.stdout, re.MULTILINE)
        self.assertEqual(len(totals), 2, result.stdout)
        for predicted, executed, counted in totals:
            self.assertEqual(predicted, executed)
            self.assertEqual(executed, counted)

    def test_a_machine_without_a_driver_is_told(self):
        self.assertEqual(self.compile("-o", "lenet").returncode, 0)
        environment = self.environment | {"SLUICE_CUDA_DRIVER": "libnowhere.so"}
        result = self.run_program(self.path("lenet"), "train", "--data", MNIST, env=environment)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("there is no driver of CUDA devices here", result.stderr)

    def test_a_machine_without_nvrtc_is_told(self):
        result = self.compile("-o", "lenet", SLUICE_NVRTC="/nowhere/libnvrtc.so")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("install the CUDA toolkit", result.stderr)
        self.assertNotIn("lenet", self.files())

    def test_devices_are_listed(self):
        result = self.run_sluice("devices", CUDA_EMU_DEVICES="3")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in ("cuda:2    Emulated CUDA device", "code for sm_80, sm_90, sm_100", "compile half: built in"):
            self.assertIn(line, result.stdout)


if __name__ == "__main__":
    main()
