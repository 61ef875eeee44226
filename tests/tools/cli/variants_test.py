"""Programs for several lists of devices: the list they run on, requested lists, and the errors."""

import json
import re

from cuda_test import DOUBLES
from sluice_cli import CliTest, main


class VariantsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment() | DOUBLES | {"CUDA_EMU_EFFORT": "least"}
        self.without_driver = self.environment | {"SLUICE_CUDA_DRIVER": "libnowhere.so"}

    def compile(self, *arguments, model="small.mlir"):
        result = self.sluice("compile", model, *arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def compile_lists(self, *lists, arguments=()):
        return self.compile(*(flag for devices in lists for flag in ("--devices", devices)), "-o", "small", *arguments)

    def bench(self, *arguments, env=None, program="small"):
        bench = ("bench", "--entry", "predict", "--seconds", "0.01")
        return self.run_program(self.path(program), *bench, *arguments, env=env or self.environment)

    def expect_accelerator(self, text, *arguments, **how):
        result = self.bench(*arguments, **how)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"runs on {text}", result.stderr)

    def expect_refusal(self, code, reason, *arguments, **how):
        result = self.bench(*arguments, **how)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(reason, result.stderr)

    def test_the_first_list_that_is_there_is_taken(self):
        self.compile_lists("cuda:0", "cpu,sim:0", "cpu")
        self.expect_accelerator("gpu(0) (cuda:0), Emulated CUDA device")
        self.expect_accelerator("gpu(0) (sim:0)", env=self.without_driver)
        self.compile_lists("cuda:0", "cpu")
        self.expect_accelerator("the host alone", env=self.without_driver)

    def test_lists_share_kernels(self):
        lists = ("--devices", "cpu", "--devices", "sim:0", "--devices", "sim:1")
        timing = self.sluice("compile", "small.mlir", *lists, "-o", "small", "--timing", env=self.environment)
        self.assertEqual(timing.returncode, 0, timing.stderr)
        kernels = re.search(r"(?m)^reused kernels +(\d+) of (\d+)$", timing.stderr)
        reused, shared = map(int, kernels.groups())
        self.assertEqual(3 * reused, 2 * shared, "the first list makes all of them")
        for device in "cpu", "sim:0", "sim:1":
            self.assertEqual(self.bench("--devices", device).returncode, 0)
        one = self.sluice("compile", "small.mlir", "-o", "one", "--timing", env=self.environment)
        self.assertNotIn("reused kernels", one.stderr)

    def test_what_is_asked_for_is_taken(self):
        self.compile_lists("cuda:0", "cpu,sim:0", "cpu")
        self.expect_accelerator("gpu(0) (sim:0)", "--device", "sim")
        self.expect_accelerator("gpu(0) (sim:0)", "--sim", "seed=3")
        self.expect_accelerator("gpu(0) (sim:1)", "--devices", "sim:1")
        self.expect_accelerator("the host alone", "--device", "cpu")
        self.expect_accelerator("the host alone", "--devices", "cpu")

    def test_nothing_stands_in_for_what_is_asked_for(self):
        self.compile_lists("cuda:0", "cpu")
        self.expect_refusal(4, "there is no driver of CUDA devices here", "--device", "cuda", env=self.without_driver)
        self.expect_refusal(4, "cannot use device 'metal': the model was compiled for cpu, gpu(0) (cuda:0)", "--device", "metal")
        self.expect_refusal(4, "it has variants for cpu,cuda:0 or cpu", "--device", "metal")
        self.expect_refusal(2, "settings for backend 'sim'", "--sim", "seed=3")

    def test_what_all_lists_lack_is_told(self):
        self.compile_lists("cuda:0", "cpu,cuda:1")
        self.expect_refusal(4, "cpu,cuda:1: ", env=self.without_driver)
        one_device = self.environment | {"CUDA_EMU_DEVICES": "1"}
        self.expect_refusal(4, "is not there: cuda has 1 devices", "--devices", "cuda:3", env=one_device)

    def test_each_is_what_is_compiled_alone(self):
        self.model_program("--batch", "4", "--input", "f32", "-o", "mlp.mlir")
        self.write_zeros("data", (8, 784))
        self.compile("--devices", "cpu,sim:0", "--devices", "cpu", "-o", "both", model="mlp.mlir")
        for devices in ("cpu,sim:0", "cpu"):
            self.compile("--devices", devices, "-o", devices, model="mlp.mlir")
            bits = []
            for program, flags in (("both", ("--device", devices.split(":")[0].split(",")[-1])), (devices, ())):
                train = ("train", "--steps", "2", "--data", self.path("data"), "--save", self.path("w.safetensors"))
                result = self.run_program(self.path(program), *train, *flags, env=self.environment)
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(self.path("w.safetensors"), "rb") as file:
                    bits.append(file.read())
            self.assertEqual(*bits)

    def test_settings_are_for_those_that_have_the_backend(self):
        self.compile_lists("cuda:0", "cpu", arguments=("--backend", "cuda=arch=sm_80"))
        self.expect_refusal(4, "the code is for sm_80", "--device", "cuda")
        lists = ("--devices", "cpu,sim:0", "--devices", "cpu")
        result = self.sluice("compile", "small.mlir", *lists, "--backend", "cuda=arch=sm_80", env=self.environment)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("settings for backend 'cuda', but the model has no device of it", result.stderr)

    def test_settings_are_given_once(self):
        self.compile("--devices", "cpu,sim:0", "-o", "small")
        for first in ("--sim", "seed=3"), ("--backend", "sim=seed=4"):
            self.expect_refusal(2, "the settings of 'sim' are given twice", *first, "--backend", "sim=seed=3")

    def test_lists_are_told_of(self):
        summary = json.loads(self.compile_lists("cpu,sim:0", "cpu", arguments=("--json",)))
        devices = [[device["name"] for device in its["devices"]] for its in (summary, *summary["others"])]
        self.assertEqual(devices, [["cpu", "gpu(0)"], ["cpu"]])
        info = self.run_program(self.path("small"), "info", "--json", env=self.environment)
        self.assertEqual(json.loads(info.stdout)["variants"], ["cpu,sim:0", "cpu"])
        info = self.run_program(self.path("small"), "info", "--devices", "cpu", env=self.environment)
        self.assertIn("variants cpu,sim:0 or cpu\n", info.stdout)
        self.assertNotIn("acc0", info.stdout)

    def test_what_is_for_one_list_is_refused_for_several(self):
        for arguments, reason in (
            (("compile", "small.mlir", "--devices", "cpu", "--devices", "cpu", "-o", "small"), "are listed twice"),
            (("compile", "small.mlir", "--devices", "cpu,sim:0", "--devices", "sim", "-o", "small"), "'sim' are listed twice"),
            (("compile", "small.mlir", "--devices", "cpu,sim:0", "--devices", "cpu", "--emit=mlir"), "IR is for one list"),
            (("place", "small.mlir", "--devices", "cpu,sim:0", "--devices", "cpu"), "--devices"),
        ):
            result = self.sluice(*arguments, env=self.environment)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(reason, result.stderr)
            self.assertNotIn("small", self.files())


if __name__ == "__main__":
    main()
