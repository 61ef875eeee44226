"""Models compiled for CUDA devices, and run on emulated ones (tests/cuda_emu): results agree with the reference, and
absent components have their own error and exit code."""

import glob
import json
import os
import re

from sluice_cli import BUILD, CliTest, main

DOUBLES = {
    "SLUICE_NVRTC": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_nvrtc.so"),
    "SLUICE_CUDA_DRIVER": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_driver.so"),
    "SLUICE_CUBLASLT": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_driver.so"),
    "SLUICE_NCCL": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_driver.so"),
}


# Constants of several elements: boolean and numeric attention masks, a matrix of a product, and convolution weights.
# The product has a gradient.
CONSTANT_OPERANDS = """
module @constants {
  sluice.model "constants" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<4xf32> = <"uniform", -0.5 : f64, 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "image"] (%x: tensor<?x1x2x4xf32>, %image: tensor<?x1x3x3xf32>) {
    %w = sluice.get @w : tensor<4xf32>
    %visible = sluice.constant {value = dense<[[[[true, false], [true, true]]]]> : tensor<1x1x2x2xi1>} : () -> tensor<1x1x2x2xi1>
    %flat = sluice.constant {value = dense<[[0.0, -1.0], [2.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %bias = sluice.reshape %flat {shape = array<i64: 1, 1, 2, 2>} : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %matrix = sluice.constant {value = dense<[[1.0, 2.0, -1.0, 0.5], [0.0, 1.0, 3.0, -2.0]]> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
    %filter = sluice.constant {value = dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
    %e = sluice.expand %w {dims = array<i64: 3>, shape = array<i64: ?, 1, 2, 4>} : (tensor<4xf32>) -> tensor<?x1x2x4xf32>
    %q = sluice.mul %x, %e : (tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>) -> tensor<?x1x2x4xf32>
    %a, %l = sluice.scaled_dot_product_attention %q, %x, %x, %visible {scale = 0.5 : f64} : (tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>, tensor<1x1x2x2xi1>) -> (tensor<?x1x2x4xf32>, tensor<?x1x2xf32>)
    %b, %m = sluice.scaled_dot_product_attention %a, %x, %x, %bias {scale = 0.5 : f64} : (tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>, tensor<?x1x2x4xf32>, tensor<1x1x2x2xf32>) -> (tensor<?x1x2x4xf32>, tensor<?x1x2xf32>)
    %p = sluice.einsum "abcd,ed->abce" %b, %matrix : (tensor<?x1x2x4xf32>, tensor<2x4xf32>) -> tensor<?x1x2x2xf32>
    %c = sluice.conv2d %image, %filter {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<?x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<?x1x2x2xf32>
    %y = sluice.add %p, %c : (tensor<?x1x2x2xf32>, tensor<?x1x2x2xf32>) -> tensor<?x1x2x2xf32>
    sluice.output "y", %y : tensor<?x1x2x2xf32>
    %loss = sluice.mean %y {axes = array<i64: 0, 1, 2, 3>} : (tensor<?x1x2x2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""


class CudaTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment() | DOUBLES

    def run_sluice(self, *arguments, **environment):
        return self.sluice(*arguments, env=self.environment | environment)

    def compile(self, *arguments, **environment):
        return self.run_sluice("compile", "small.mlir", "--devices", "cuda:0", "-q", *arguments, **environment)

    def bench(self, program, *arguments, **environment):
        return self.run_program(
            self.path(program), "bench", "--seconds", "0.01", *arguments, env=self.environment | environment)

    def test_kernels_agree_with_the_reference(self):
        for seed in range(2):  # without --placement all of it is on the first device
            arguments = ("small.mlir", "--devices", "cuda:0", "--rows", "3")
            result = self.run_sluice("verify", *arguments, CUDA_EMU_SEED=str(seed))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("agree with the reference", result.stdout)

    def test_constants_are_operands_of_attention_products_and_convolutions(self):
        self.write("constants.mlir", CONSTANT_OPERANDS)
        for flags in (), ("--no-fuse",):
            result = self.run_sluice("verify", "constants.mlir", "--devices", "cuda:0", *flags, CUDA_EMU_EFFORT="least")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("launches of init, train_step, eval_step, predict agree with the reference", result.stdout)

    def test_an_executable_copies_what_was_predicted(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "2", "-o", "lenet.mlir")
        arguments = ("--devices", "cpu,cuda:0", "--placement", "auto", "-o", "lenet")
        result = self.run_sluice("compile", "lenet.mlir", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.bench("lenet", "--report", "--seed", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        totals = re.findall(r"(\d+ / \d+) B {3,}(\d+ / \d+) B {3,}(\d+ / \d+) B$", result.stdout, re.MULTILINE)
        self.assertEqual(len(totals), 2, result.stdout)
        for predicted, executed, counted in totals:
            self.assertEqual(predicted, executed)
            self.assertEqual(executed, counted)

    def spans(self, trace, clock):
        """Start and end in microseconds of a trace's items by the host's or the devices' clock: lists by track."""
        with open(self.path(trace), encoding="utf-8") as text:
            events = json.load(text)["traceEvents"]
        processes = {event["pid"] for event in events if event["args"].get("name", "").endswith(f", by the {clock} clock")}
        spans = {}
        for event in events:
            if event["ph"] == "X" and event["pid"] in processes:
                spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
        return spans

    def test_times_are_those_of_the_devices(self):
        for devices, pins, host in (("cuda:0", (), False), ("cpu,cuda:0", ("--pin", "fc1=gpu:0"), True)):
            self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "--devices", devices, *pins, "-o", "mlp.mlir")
            result = self.run_sluice("compile", "mlp.mlir", "--copies", "insert", "-q", "-o", "mlp")
            self.assertEqual(result.returncode, 0, result.stderr)
            result = self.bench("mlp", "--json", "--trace", "trace.json")
            self.assertEqual(result.returncode, 0, result.stderr)
            bench = json.loads(result.stdout)
            self.assertEqual(bench["schedule"]["clock"], "devices")
            steps = bench["steps"] * bench["median_ms"] * 1e3
            spans = self.spans("trace.json", "devices'")
            self.assertEqual(bool(self.spans("trace.json", "host's")), host)
            self.assertGreater(len(spans), 1)
            for track in spans.values():
                self.assertTrue(all(start <= end for start, end in track))
                # The host may be delayed while it reads its clock.
                self.assertTrue(all(before[1] <= behind[0] + 1000 for before, behind in zip(track, track[1:])), track)
            whole = max(track[-1][1] for track in spans.values())
            self.assertTrue(steps / 20 < whole < 20 * steps, (steps, whole))

    def test_nobody_times_what_is_not_asked_for(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "--input", "f32", "-o", "mlp.mlir")
        result = self.run_sluice("compile", "mlp.mlir", "--devices", "cuda:0", "-q", "-o", "mlp", CUDA_EMU_EFFORT="least")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.write_zeros("data", (8, 784))
        train = (self.path("mlp"), "train", "--epochs", "1", "--data", self.path("data"))
        for flags, code in (((), 0), (("--trace", "trace.json"), 70)):
            result = self.run_program(*train, *flags, env=self.environment | {"CUDA_EMU_TIMELESS": "1"})
            self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("an event with times", result.stderr)

    def test_a_machine_without_a_driver_is_told(self):
        self.assertEqual(self.compile("-o", "small").returncode, 0)
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "--devices", "cpu,cuda:0", "--pin", "fc1=gpu:0",
                     "-o", "mlp.mlir")
        result = self.run_sluice("compile", "mlp.mlir", "--copies", "insert", "-q", "-o", "mlp", CUDA_EMU_EFFORT="least")
        self.assertEqual(result.returncode, 0, result.stderr)
        for program in "small", "mlp":
            for device in (), ("--device", "cuda"), ("--device", "cuda:0"):
                result = self.bench(program, "--entry", "predict", *device, SLUICE_CUDA_DRIVER="libnowhere.so")
                self.assert_refused(result, 4, "there is no driver of CUDA devices here", "libnowhere.so")

    def test_what_is_wrong_with_a_driver_is_told(self):
        self.assertEqual(self.compile("-o", "small").returncode, 0)
        for environment, code, *why in (
            ({"SLUICE_CUDA_DRIVER": "libm.so.6"}, 4, "libm.so.6 has no cuInit"),
            ({"CUDA_EMU_VERSION": "11040"}, 4, "is for CUDA 11.4, and 12.0 or later is needed"),
            ({"CUDA_EMU_DEVICES": "0"}, 4, "CUDA_ERROR_NO_DEVICE"),
            ({"CUDA_EMU_MEMORY": "100"}, 5, "out of memory: gpu(0) (cuda:0)", "(768 for transient, 256 for state) needs 4352 bytes", "4352 bytes were asked for, ", " are free"),
        ):
            for device in (), ("--device", "cuda"):
                self.assert_refused(self.bench("small", "--entry", "predict", *device, **environment), code, *why)

    def test_a_machine_without_nvrtc_is_told(self):
        result = self.compile("-o", "small", SLUICE_NVRTC="/nowhere/libnvrtc.so")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("install the CUDA toolkit", result.stderr)
        self.assertNotIn("small", self.files())

    def without_nvrtc(self):
        """Hides the loader's libraries: files with their names that are not libraries."""
        for name in "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so":
            self.write(name, "")
        absent = {"SLUICE_NVRTC": "", "CUDA_HOME": "/nowhere", "VIRTUAL_ENV": "/nowhere", "CONDA_PREFIX": "", "HOME": "/nowhere"}
        return absent | {"LD_LIBRARY_PATH": self.folder, "CUDA_EMU_NVRTC_LOG": self.path("nvrtc.log")}

    def link_nvrtc(self, *folders):
        folder = self.path(os.path.join(*folders))
        os.makedirs(folder)
        os.symlink(DOUBLES["SLUICE_NVRTC"], os.path.join(folder, "libnvrtc.so.13"))

    def test_nvrtc_is_found_in_a_toolkit(self):
        self.link_nvrtc("cuda", "lib64")
        result = self.compile("-o", "small", **self.without_nvrtc() | {"CUDA_HOME": self.path("cuda")})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nvrtc.log", self.files())

    def test_nvrtc_is_found_in_an_environment_of_python(self):
        if glob.glob("/usr/local/cuda/lib64/libnvrtc.so*"):
            self.skipTest("the toolkit's is found first")
        self.link_nvrtc("venv", "lib", "python3.99", "site-packages", "nvidia", "cu13", "lib")
        for variable, root in ("VIRTUAL_ENV", "venv"), ("CONDA_PREFIX", "venv"):
            self.assertFalse(os.path.exists(self.path("nvrtc.log")))
            result = self.compile("-o", "small", **self.without_nvrtc() | {variable: self.path(root)})
            self.assertEqual(result.returncode, 0, result.stderr)
            os.remove(self.path("nvrtc.log"))
        self.pinned_nvrtc()
        venv = {"VIRTUAL_ENV": os.path.join(BUILD, "..", "venv")}
        result = self.compile("-o", "small", "--json", "--backend", "cuda=arch=sm_90", **self.without_nvrtc() | venv)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(result.stdout)["functions"])  # the double has none

    def test_nvrtc_gets_many_kernels_at_once(self):
        kernels_of_unit = 16
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "2", "-o", "lenet.mlir")
        log = self.path("nvrtc.log")
        result = self.run_sluice("compile", "lenet.mlir", "--devices", "cuda:0", "-q", "-o", "lenet", "--backend",
                                 "cuda=arch=sm_90", "--dump-ir", "dump", CUDA_EMU_EFFORT="least", CUDA_EMU_NVRTC_LOG=log)
        self.assertEqual(result.returncode, 0, result.stderr)
        kernels = set()
        for name in glob.glob(self.path("dump/kernels/*.cu")):
            with open(name) as text:
                kernels.update(re.findall(r"__global__ void (k\d+)_", text.read()))
        with open(log) as text:
            at_once = [int(line.split()[1]) for line in text]
        self.assertGreater(len(kernels), kernels_of_unit)
        units = -(-len(kernels) // kernels_of_unit)
        has_threads = len(os.sched_getaffinity(0)) > 1
        self.assertEqual((len(at_once), max(at_once) > 1), (units, has_threads))

    def test_architectures_are_asked_for(self):
        for architectures in ("sm_90", "sm_80"):
            result = self.compile("--backend", f"cuda=arch={architectures}", "-o", architectures)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.compile("-o", "all").returncode, 0)
        self.assertLess(os.path.getsize(self.path("sm_90")), os.path.getsize(self.path("all")))
        self.assertEqual(self.bench("sm_90", "--entry", "predict").returncode, 0)
        result = self.bench("sm_80", "--entry", "predict")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("has architecture sm_90, and the code is for sm_80", result.stderr)

    def test_ptx_is_for_what_is_newer(self):
        for architecture, runs in (("compute_80", True), ("compute_90", True), ("compute_100", False)):
            self.assertEqual(self.compile("--backend", f"cuda=arch={architecture}", "-o", architecture).returncode, 0)
            result = self.bench(architecture, "--entry", "predict")
            self.assertEqual(result.returncode, 0 if runs else 4, result.stderr)
        self.assertIn("has architecture sm_90, and the code is for compute_100", result.stderr)

    def test_machine_code_is_taken_before_ptx(self):
        for architectures, runs in (("compute_90+sm_90", True), ("compute_90", False)):
            self.assertEqual(self.compile("--backend", f"cuda=arch={architectures}", "-o", "small").returncode, 0)
            result = self.bench("small", "--entry", "predict", CUDA_EMU_OLD_PTX="1")
            self.assertEqual(result.returncode, 0 if runs else 4, result.stderr)
        self.assertIn("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", result.stderr)

    def test_products_are_left_to_a_library(self):
        for settings, behaviour, agrees in (
            ("cuda=library=all", "", True),
            ("cuda=library=all", "wrong", False),  # the library computes them
            ("cuda=library=all", "none", True),  # without an algorithm, Sluice's own kernels are used
            ("cuda=library=large", "wrong", True),  # small products use own kernels
            ("cuda=library=none", "wrong", True),
        ):
            arguments = ("small.mlir", "--devices", "cuda:0", "--rows", "3", "--backend", settings)
            result = self.run_sluice("verify", *arguments, CUDA_EMU_BLAS=behaviour)
            self.assertEqual(result.returncode, 0 if agrees else 1, (settings, behaviour, result.stderr))

    def test_a_library_does_what_follows_its_products(self):
        model = """
module @biased {
  sluice.model "biased" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<9x8xTYPE> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @b : tensor<8xTYPE> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x9xTYPE>) {
    %w = sluice.get @w : tensor<9x8xTYPE>
    %b = sluice.get @b : tensor<8xTYPE>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x9xTYPE>, tensor<9x8xTYPE>) -> tensor<?x8xTYPE>
    %e = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 8>} : (tensor<8xTYPE>) -> tensor<?x8xTYPE>
    %s = sluice.add %p, %e : (tensor<?x8xTYPE>, tensor<?x8xTYPE>) -> tensor<?x8xTYPE>
    %y = sluice.ACTIVATION : (tensor<?x8xTYPE>) -> tensor<?x8xTYPE>
    sluice.output "y", %y : tensor<?x8xTYPE>
  }
}
"""
        relu, gelu = "relu %s", "gelu %s {tanh}"
        for element, activation, setting, kernels in (
            ("f32", relu, "", 1),
            ("f32", gelu, "", 1),
            ("bf16", relu, "", 2),  # two-byte floats are rounded in between
            ("f16", relu, "", 2),
            ("bf16", gelu, ",algorithms=timed", 1),  # which this setting permits
            ("f64", relu, ",algorithms=timed", 2),
        ):
            self.write("biased.mlir", model.replace("TYPE", element).replace("ACTIVATION", activation))
            arguments = ("biased.mlir", "--devices", "cuda:0", "--backend", "cuda=library=all" + setting)
            result = self.run_sluice("compile", *arguments, "-o", "biased")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"predict ({kernels} launch", result.stdout + result.stderr)
            for behaviour, agrees in (("", True), ("wrong", False), ("none", True)):
                result = self.run_sluice("verify", *arguments, "--rows", "3", CUDA_EMU_BLAS=behaviour)
                self.assertEqual(result.returncode, 0 if agrees else 1, (element, behaviour, result.stderr))

    def test_a_library_does_gradients_of_gelus(self):
        model = """
module @gelus {
  sluice.model "gelus" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<9xWIDTHxf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @v : tensor<WIDTHx3xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x9xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<9xWIDTHxf32>
    %v = sluice.get @v : tensor<WIDTHx3xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x9xf32>, tensor<9xWIDTHxf32>) -> tensor<?xWIDTHxf32>
    %g = sluice.gelu %pFORM : (tensor<?xWIDTHxf32>) -> tensor<?xWIDTHxf32>
    %y = sluice.einsum "ab,bc->ac" %g, %v : (tensor<?xWIDTHxf32>, tensor<WIDTHx3xf32>) -> tensor<?x3xf32>
    %losses = sluice.softmax_cross_entropy %y, %label : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @v] : tensor<f32>
  }
}
"""
        # The library's behavior, and whether the kernels agree with the reference, depending on the factor's implementation.
        own = (("wrong-input", True), ("no-input", True), ("none", True))
        taken = (("", True), ("wrong", False), ("wrong-input", False), ("no-input", True), ("none", True))
        for width, form, math, behaviours in (
            ("16", " {tanh}", "strict", taken),
            ("16", " {tanh}", "tf32", taken[:-1]),  # own kernels would round operands
            ("18", " {tanh}", "strict", own),  # the column stride is 18 elements
            ("16", "", "strict", own),  # erf
        ):
            self.write("gelus.mlir", model.replace("WIDTH", width).replace("FORM", form))
            arguments = ("gelus.mlir", "--devices", "cuda:0", "--rows", "3", "--backend", "cuda=library=all", "--math", math)
            for behaviour, agrees in behaviours:
                result = self.run_sluice("verify", *arguments, CUDA_EMU_BLAS=behaviour)
                self.assertEqual(result.returncode, 0 if agrees else 1, (width, form, math, behaviour, result.stderr))

    def test_a_library_sums_operands_beside_its_products(self):
        model = """
module @biases {
  sluice.model "biases" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<WEIGHTxf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @b : tensor<16xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @v : tensor<16x3xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x9xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<WEIGHTxf32>
    %b = sluice.get @b : tensor<16xf32>
    %v = sluice.get @v : tensor<16x3xf32>
    %p = sluice.einsum "EQUATION" %x, %w : (tensor<?x9xf32>, tensor<WEIGHTxf32>) -> tensor<?x16xf32>
    %e = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 16>} : (tensor<16xf32>) -> tensor<?x16xf32>
    %s = sluice.add %p, %e : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
    %y = sluice.einsum "ab,bc->ac" %s, %v : (tensor<?x16xf32>, tensor<16x3xf32>) -> tensor<?x3xf32>
    %losses = sluice.softmax_cross_entropy %y, %label : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w, @b, @v] : tensor<f32>
  }
}
"""
        # The library's behavior, and whether the kernels agree with the reference, depending on the sum's implementation.
        taken = (("", True), ("wrong", False), ("wrong-sums", False), ("no-sums", True), ("none", True))
        for weight, equation, library, math, behaviours in (
            ("9x16", "ab,bc->ac", "all", "strict", taken),  # the gradient's columns are the bias's elements
            ("16x9", "ab,cb->ac", "all", "strict", taken),  # or its rows
            ("9x16", "ab,bc->ac", "all", "tf32", taken[:-1]),  # own kernels would round operands
            ("9x16", "ab,bc->ac", "large", "strict", (("wrong-sums", True),)),
        ):
            self.write("biases.mlir", model.replace("WEIGHT", weight).replace("EQUATION", equation))
            arguments = ("biases.mlir", "--devices", "cuda:0", "--rows", "3", "--backend", "cuda=library=" + library, "--math", math)
            for behaviour, agrees in behaviours:
                result = self.run_sluice("verify", *arguments, CUDA_EMU_BLAS=behaviour)
                self.assertEqual(result.returncode, 0 if agrees else 1, (weight, library, math, behaviour, result.stderr))

    def test_a_library_does_wide_products_in_parts(self):
        model = """
module @wide {
  sluice.model "wide" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<16x1001xTYPE> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @v : tensor<16x1001xTYPE> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x16xTYPE>) {
    %w = sluice.get @w : tensor<16x1001xTYPE>
    %v = sluice.get @v : tensor<16x1001xTYPE>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x16xTYPE>, tensor<16x1001xTYPE>) -> tensor<?x1001xTYPE>
    %r = sluice.relu %p : (tensor<?x1001xTYPE>) -> tensor<?x1001xTYPE>
    %y = sluice.einsum "ab,cb->ac" %r, %v : (tensor<?x1001xTYPE>, tensor<16x1001xTYPE>) -> tensor<?x16xTYPE>
    sluice.output "y", %y : tensor<?x16xTYPE>
  }
}
"""
        for element, math in (("bf16", "strict"), ("f32", "tf32")):
            self.write("wide.mlir", model.replace("TYPE", element))
            arguments = ("wide.mlir", "--devices", "cuda:0", "--rows", "3", "--backend", "cuda=library=all", "--math", math)
            for behaviour, agrees in (("uneven", True), ("wrong", False)):
                result = self.run_sluice("verify", *arguments, CUDA_EMU_BLAS=behaviour)
                self.assertEqual(result.returncode, 0 if agrees else 1, (element, behaviour, result.stderr))

    def test_heads_of_attention_are_read_where_they_lie(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "gpt2"), "--batch", "2", "--layers", "1", "--width", "128",
                     "--length", "32", "--words", "50", "-o", "gpt2.mlir")
        for products in "all", "none":  # of the library
            result = self.run_sluice("compile", "gpt2.mlir", "--devices", "cuda:0", "--precision", "bf16", "--emit", "mlir",
                                     "--backend", f"cuda=arch=sm_90,library={products}", "-o", "-", "-q")
            self.assertEqual(result.returncode, 0, result.stderr)
            step = result.stdout[result.stdout.index("sluice.entry @train_step"):].split("sluice.entry @")[1]
            launches = re.findall(r'sluice.launch "(\w+)"', step)
            self.assertIn("acc0_scaled_dot_product_attention", launches)
            self.assertEqual([name for name in launches if re.match("acc0_(transpose|reshape|slice)", name)], [])

    def test_three_channels_of_halves_lie_as_four(self):
        for model, precision, layout in (
            (("resnet56", "--batch", "2"), "bf16", "aBcd4b"),
            (("resnet56", "--batch", "2"), "f32", "acdb"),
            (("vit_s", "--batch", "2", "--layers", "1"), "bf16", "acdb"),  # patches begin and end at packs
        ):
            self.succeed(os.path.join(BUILD, "bin", "models", model[0]), *model[1:], "-o", "image.mlir")
            result = self.run_sluice("show", "image.mlir", "--devices", "cuda:0", "--precision", precision, "--phase", "fused",
                                     "--backend", "cuda=arch=sm_90")
            self.assertEqual(result.returncode, 0, result.stderr)
            image = re.search(r"sluice.conv2d %\w+, %\w+ .* : \(tensor<\?x3x\d+x\d+x\w+, #acc0_(\w+)>, tensor<\d+x3x\d+x\d+x\w+, #acc0_(\w+)>",
                              result.stdout)
            self.assertEqual(image.groups(), (layout, layout), (model, precision))

    def test_who_makes_products_is_said(self):
        self.assertEqual(self.compile("--backend", "cuda=library=all", "-o", "small").returncode, 0)
        absent, unfit = {"SLUICE_CUBLASLT": "/nowhere/libcublasLt.so"}, {"CUDA_EMU_BLAS": "unfit"}
        for setting, environment, code, why in (
            ("products=library", {}, 0, ""),
            ("products=own", absent, 0, ""),
            ("products=library", absent, 4, "SLUICE_CUBLASLT: /nowhere/libcublasLt.so"),
            ("products=library", unfit, 4, "cublasLt 13.1.0 does not begin, and products=own does without it: CUBLAS_STATUS_NOT_INITIALIZED"),
            ("products=own", unfit, 0, ""),
            ("products=best", {}, 2, "cuda has no setting 'products=best'"),
        ):
            result = self.bench("small", "--entry", "predict", "--backend", f"cuda={setting}", **environment)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(why, result.stderr)

    def test_tensor_cores_are_asked_for(self):
        for name, math in (("strict", "strict"), ("rounded", "tf32")):
            result = self.compile("--backend", "cuda=arch=sm_90", "--math", math, "-o", name)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.bench(name).returncode, 0)
            text = self.succeed(self.path(name), "info")
            self.assertIn(", compiled with arch=sm_90\n", text)
            self.assertIn(f", math {math}, ", text)
            info = json.loads(self.succeed(self.path(name), "info", "--json"))
            self.assertEqual([device["settings"] for device in info["devices"]], ["", "arch=sm_90"])
            self.assertEqual(info["build"]["math"], math)
            self.assertEqual(info["build"]["options"].get("math", "strict"), math)
        with open(self.path("strict"), "rb") as strict, open(self.path("rounded"), "rb") as rounded:
            self.assertNotEqual(strict.read(), rounded.read())


    def test_shared_memory_that_launches_give_is_reported(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "64", "-o", "mlp.mlir")
        result = self.run_sluice("compile", "mlp.mlir", "--devices", "cuda:0", "--precision", "bf16", "-o", "mlp", "--json",
                                 "--backend", "cuda=arch=sm_90,library=none", "--dump-ir", "dump", SLUICE_NVRTC=self.pinned_nvrtc())
        self.assertEqual(result.returncode, 0, result.stderr)
        reported = {one["function"]: one["shared_bytes"] for one in json.loads(result.stdout)["functions"]}
        text = ""
        for name in glob.glob(self.path("dump/kernels/*.cu")):
            with open(name) as file:
                text += file.read()
        given = re.findall(r"__global__ void (\w+)\([^{]*\{[^{}]*SHARED_BYTES\(stages, (\d+)\)", text)
        self.assertTrue(given)
        for name, count in given:
            self.assertEqual(reported[name], int(count))

    def test_what_functions_need_is_reported(self):
        nvrtc = self.pinned_nvrtc()
        arguments = ("compile", "small.mlir", "--devices", "cuda:0", "--backend", "cuda=arch=sm_80+sm_90+compute_90")
        result = self.run_sluice(*arguments, "-o", "small", "--json", SLUICE_NVRTC=nvrtc)
        self.assertEqual(result.returncode, 0, result.stderr)
        functions = json.loads(result.stdout)["functions"]
        self.assertEqual({function["target"] for function in functions}, {"sm_80", "sm_90"})  # PTX has no registers yet
        self.assertTrue(all(function["backend"] == "cuda" and function["registers"] > 0 for function in functions))
        result = self.run_sluice(*arguments, "-o", "small", SLUICE_NVRTC=nvrtc)
        self.assertRegex(result.stdout + result.stderr, r"\n  sm_90 +\d+ functions; at most \d+ registers of a thread and .* of a block's shared memory; nothing spilled\n")
        result = self.compile("-o", "small", "--json")  # the double has no assembler
        self.assertEqual(json.loads(result.stdout)["functions"], [])

    def test_wrong_settings_are_named(self):
        for setting, why in (
            ("cuda=arch=sm_42", "has no architecture 'sm_42'; it has sm_75"),
            ("cuda=arch=compute_42", "has no architecture 'compute_42'; it has sm_75"),
            ("cuda=speed=high", "there is no setting 'speed=high'"),
            ("cuda=library=some", "there is no setting 'library=some'"),
            ("cuda=arch=sm_90,speed=high", "there is no setting 'speed=high'; there are arch=sm_80+sm_90, library=all and algorithms=timed"),
            ("cuda=dump=kernels", "there is no setting 'dump=kernels'"),
            ("cuda=arch", "there is no setting 'arch'"),
            ("cuda=arch=sm_90,", "there is no setting ''"),
            ("cuda=arch=sm_90,arch=sm_80", "the setting 'arch' is given twice"),
            ("cuda=library=all,library=none", "the setting 'library' is given twice"),
            ("cuda=arch=sm_80+sm_80", "the architecture 'sm_80' is given twice"),
            ("cuda=algorithms=best", "there is no setting 'algorithms=best'"),
            ("cuda=tf32=on", "there is no setting 'tf32=on'"),
            ("sim=seed=1", "the model has no device of it"),
            ("cuda", "is not NAME=SETTINGS"),
        ):
            result = self.compile("--backend", setting, "-o", "small")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(why, result.stderr)

    def test_tf32_needs_tensor_cores(self):
        for math in "tf32-convolutions", "tf32", "fast":
            result = self.compile("--backend", "cuda=arch=sm_75", "--math", math, "-o", "small")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("architecture sm_75 has no TF32 tensor cores; use --math strict", result.stderr)
        self.assertEqual(self.compile("--backend", "cuda=arch=sm_75", "-o", "small").returncode, 0)

    # A network with convolutions and products: its kernels on tensor cores, by their CUDA C++.
    def test_tf32_convolutions_leave_other_products(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "8", "-o", "lenet.mlir")
        rounded = {}
        for math in "strict", "tf32-convolutions", "tf32":
            result = self.run_sluice("compile", "lenet.mlir", "--devices", "cuda:0", "--math", math, "--backend", "cuda=arch=sm_90,library=none",
                                     "--dump-ir", math, "-o", "lenet", "-q")
            self.assertEqual(result.returncode, 0, result.stderr)
            names = [os.path.basename(path).split(".")[0] for path in glob.glob(self.path(f"{math}/kernels/*.cu"))]
            texts = {}
            for name in names:
                with open(self.path(f"{math}/kernels/{name}.cu")) as file:
                    texts[name] = file.read()
            rounded[math] = {name for name, text in texts.items() if "Tf32" in text}
        self.assertEqual(rounded["strict"], set())
        self.assertTrue(rounded["tf32-convolutions"])
        self.assertTrue(all("conv2d" in name for name in rounded["tf32-convolutions"]), rounded)
        self.assertGreater(rounded["tf32"], rounded["tf32-convolutions"])
        self.assertTrue(any("einsum" in name or "linear" in name for name in rounded["tf32"]), rounded)

    def test_replicas_need_nccl(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "-o", "mlp.mlir")
        result = self.run_sluice("compile", "mlp.mlir", "--replicas", "2", "--devices", "cuda:0-1", "-q", "-o", "mlp")
        self.assertEqual(result.returncode, 0, result.stderr)
        for library, code, why in (
            (DOUBLES["SLUICE_NCCL"], 0, ""),
            ("/nowhere/libnccl.so", 4, "NCCL, through which CUDA devices exchange, was not found (looked for /nowhere/libnccl.so)"),
        ):
            result = self.bench("mlp", SLUICE_NCCL=library)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(why, result.stderr)

    def test_devices_are_listed(self):
        result = self.run_sluice("devices", CUDA_EMU_DEVICES="3")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in ("cuda:2    Emulated CUDA device", "code for sm_80, sm_90, sm_100, compute_80", "compile half: built in"):
            self.assertIn(line, result.stdout)


if __name__ == "__main__":
    main()
