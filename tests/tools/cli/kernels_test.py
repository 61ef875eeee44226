"""The texts of kernels, for reading: `sluice show --phase kernels` and the folder kernels of `--dump-ir`."""

import os
import re

from sluice_cli import BUILD, CliTest, main

DOUBLES = {
    "SLUICE_NVRTC": os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_nvrtc.so"),
    "SLUICE_CUDA_DRIVER": "/nowhere/libcuda.so",
    "CUDA_EMU_EFFORT": "least",
}
# Prints a listing of each kernel in the "cubin", as nvdisasm does.
NVDISASM = """#!/bin/sh
[ "$1" = -c ] || exit 1
grep -a -o 'cuda_emu_launch_k[0-9]*_[a-z0-9_]*' "$2" | sort -u | while read name; do
  printf '\\t.section\\t.text.%s,"ax",@progbits\\n        /*0000*/  NOP.%s ;\\n' "${name#cuda_emu_launch_}" "${name#cuda_emu_launch_}"
done
printf '\\t.section\\t.nv.info,"",@"SHT_CUDA_INFO"\\n'
"""


class KernelsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment() | DOUBLES

    def graph(self, name, *flags):
        self.succeed(os.path.join(BUILD, "bin", "models", name), *flags, "-o", f"{name}.mlir")

    def show(self, *arguments, **environment):
        result = self.sluice("show", *arguments, "--phase", "kernels", env=self.environment | environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pages(self, *arguments, **environment):
        """The page of each kernel: its facts, and its texts by kind."""
        parts = re.split(r"(?m)^==== (\S+) ====\n", self.show(*arguments, **environment))
        self.assertEqual(parts[0], "")
        pages = {}
        for name, page in zip(parts[1::2], parts[2::2]):
            texts = re.split(r"(?m)^---- (\S+) ----\n", page)
            pages[name] = {"facts": texts[0]} | {file.removeprefix(name + "."): text for file, text in zip(texts[1::2], texts[2::2])}
        return pages

    def check_host_code(self, page, kind=r"[a-z]\w*"):
        """Functions have the symbol of the kernel, which does not depend on its name."""
        function = kind + "_[0-9a-f]{16}"
        self.assertRegex(page["mlir"], r"(?m)^sluice\.function @\w+ of \"\w+\"$")
        self.assertTrue(page["vector.mlir"].startswith("module {"), "an invalid module is printed in another form")
        self.assertRegex(page["vector.mlir"], rf"func\.func @{function}\w*\(%arg0: !llvm\.ptr, ")
        self.assertRegex(page["ll"], rf"(?m)^define void @{function}\w*\(ptr .*\{{$")
        self.assertRegex(page["s"], rf"(?m)^{function}\w*:")
        self.assertRegex(page["facts"], r"(?m)^registers: \d+ of (16|32) vector registers; vector spills: \d+, scalar spills: \d+$")

    def test_kernels_of_the_host(self):
        self.graph("lenet", "--batch", "64")
        pages = self.pages("lenet.mlir", "--target-cpu", "haswell")
        for name, page in pages.items():
            with self.subTest(name):
                self.assertEqual(list(page), ["facts", "mlir", "vector.mlir", "ll", "s"])
                self.check_host_code(page)
        convolution = pages["conv2d_add_relu_1"]
        self.check_host_code(convolution, "conv2d")
        self.assertRegex(convolution["facts"], r"(?m)^launches: eval_step 1, predict 1$")
        # 9 x 9 x 50 results of 2 * 5 * 5 * 20 operations and 2 more, from images of 13 x 13 x 20 floats, weights of
        # 5 x 5 x 20 floats for 50 channels, padded to 64, and 50 biases
        operations, numbers = 64 * 9 * 9 * 50 * (2 * 5 * 5 * 20 + 2), 64 * (9 * 9 * 50 + 13 * 13 * 20) + 64 * 5 * 5 * 20 + 50
        self.assertRegex(convolution["facts"], rf"(?m)^cost: {operations} operations, {4 * numbers} bytes with 64 rows; lane utilization: \d+ %$")
        self.assertRegex(convolution["facts"], r"(?m)^bound: compute: its operations take \S+ us at [\d.]+ GFLOP/s, its bytes \S+ us at [\d.]+ GB/s; rates: \w+$")
        self.assertRegex(convolution["facts"], r"(?m)^workspace: \d+ bytes$")
        self.assertRegex(convolution["facts"], r"(?m)^tile: (2 x )?\d+ x \d+(, then \d+ x \d+)? in registers, in conv2d_[0-9a-f]{16}_windows$")
        self.assertRegex(convolution["mlir"], r"(?m)^// conv2d  \S*lenet\.cpp:\d+:\d+")
        self.assertIn("vector.fma", convolution["vector.mlir"])
        self.assertIn("@llvm.fmuladd.v8f32", convolution["ll"])
        self.assertIn("vfmadd", convolution["s"])
        elementwise = pages["avg_pool2d"]
        self.assertRegex(elementwise["facts"], r"(?m)^bound: memory: its bytes take ")
        self.assertNotIn("tile:", elementwise["facts"])

    def test_a_split_model_has_kernels_of_both_devices(self):
        self.graph("lenet", "--batch", "64", "--devices", "cpu,sim:0", "--pin", "conv=gpu:0", "--copies", "insert")
        pages = self.pages("lenet.mlir")
        devices = {name: re.search(r"(?m)^backend: (.*)$", page["facts"]).group(1) for name, page in pages.items()}
        self.assertEqual(set(devices.values()), {"cpu, on cpu", "sim, on gpu(0) (sim:0)"})
        for name, device in devices.items():
            with self.subTest(name):
                self.assertEqual(name.startswith("acc0_"), device.startswith("sim"))
                self.check_host_code(pages[name])
        self.assertIn("conv2d", pages["acc0_conv2d_add_relu_1"]["mlir"])
        self.assertIn("vector.fma", pages["acc0_conv2d_add_relu_1"]["vector.mlir"])

    def test_one_kernel_is_chosen(self):
        self.assertEqual(list(self.pages("small.mlir", "--kernel", "einsum_relu")), ["einsum_relu"])
        self.assertEqual(list(self.pages("small.mlir")), ["einsum_relu", "full"])
        self.assertEqual(self.files(), ["small.mlir"])

    def test_lines_of_the_model_are_shown(self):
        """Those of files in this folder, or below: a model may name any file of the machine."""
        with open(self.path("small.mlir"), encoding="utf-8") as text:
            module = text.read()
        self.write("net.cpp", "\n\n\treturn relu(x); \x01\u00e9 \n")
        for file, line in ("net.cpp", "  return relu(x); ___"), (self.path("net.cpp"), ""), ("../" + os.path.basename(self.folder) + "/net.cpp", ""), ("absent.cpp", ""):
            with self.subTest(file):
                place = f'-> tensor<?x2xf32> loc("{file}":3:10)\n    sluice.output'
                self.write("located.mlir", module.replace("-> tensor<?x2xf32>\n    sluice.output", place))
                body = self.pages("located.mlir")["einsum_relu"]["mlir"]
                self.assertIn(f"// relu  {file}:3:10{line}\n", body)

    def test_a_name_is_no_path(self):
        result = self.sluice("compile", "small.mlir", "-q", "-o", "small", "--dump-ir", "dump")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("dump/07-fused.mlir"), encoding="utf-8") as text:
            fused = text.read()
        self.write("odd.mlir", fused.replace('"einsum_relu"', '"../../a b.c"').replace('"full"', '"______a_b_c"'))
        pages = self.pages("odd.mlir")
        self.assertEqual(len(pages), 2)
        for name, page in pages.items():
            self.assertRegex(name, r"^______a_b_c(_\d+)?$")
            self.assertEqual(list(page), ["facts", "mlir", "vector.mlir", "ll", "s"])

    def test_dumps_have_the_same_texts(self):
        result = self.sluice("compile", "small.mlir", "-q", "-o", "small", "--dump-ir", "dump", "--devices", "cpu", "--devices", "sim:0")
        self.assertEqual(result.returncode, 0, result.stderr)
        pages = {"cpu": self.pages("small.mlir", "--devices", "cpu"), "sim:0": self.pages("small.mlir", "--devices", "sim:0")}
        for devices, expected in pages.items():
            for name, page in expected.items():
                for kind, text in page.items():
                    with open(self.path(f"dump/{devices}/kernels/{name}." + kind.replace("facts", "txt")), encoding="utf-8") as file:
                        self.assertEqual(file.read().rstrip("\n"), text.rstrip("\n"))
        self.sluice("compile", "small.mlir", "-q", "-o", "stopped", "--dump-ir", "early", "--compile-to", "planned")
        self.assertFalse(os.path.exists(self.path("early/kernels")), "there is no code yet")

    def check_executable(self, model, *flags, **environment):
        """It is the same with and without texts."""
        programs = []
        for dump in (), ("--dump-ir", "dump"):
            result = self.sluice("compile", model, "-q", "-o", "program", *flags, *dump, env=self.environment | environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(self.path("program"), "rb") as program:
                programs.append(program.read())
        self.assertTrue(programs[0] == programs[1])

    def test_texts_change_no_executable(self):
        self.graph("lenet", "--batch", "8")
        self.check_executable("lenet.mlir")

    def small_gpt2(self, *arguments, **environment):
        self.graph("gpt2", "--layers", "1", "--width", "64", "--length", "32", "--batch", "2", "--words", "256")
        pages = self.pages("gpt2.mlir", "--devices", "cuda:0", "--precision", "bf16", *arguments, **environment)
        pages.pop("full", None)  # the learning rate, on the host
        return pages

    def test_kernels_of_cuda_devices(self):
        pages = self.small_gpt2("--backend", "cuda=arch=sm_90,library=none", "--entries", "predict", SLUICE_NVRTC=self.pinned_nvrtc(), PATH="/nowhere")
        for name, page in pages.items():
            with self.subTest(name):
                self.assertEqual(list(page), ["facts", "mlir", "cu", "ptx"])
                self.assertRegex(page["facts"], r"(?m)^backend: cuda, on gpu\(0\) \(cuda:0\)$")
                self.assertRegex(page["facts"], r"(?m)^bound: (compute|memory): .*; rates: published$")
                self.assertRegex(page["facts"], r"(?m)^workspace: \d+ bytes$")
                self.assertRegex(page["facts"], r"(?m)^sass: none \(no cubin, or no disassembler on PATH that supports the architecture\)$")
                functions = re.findall(r"(?m)^function: (\w+), [1-9]\d* tasks( per \d+ rows)? of \d+ threads$", page["facts"])
                names = [function for function, _ in functions]
                self.assertEqual(re.findall(r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(", page["cu"]), names)
                self.assertEqual(sorted(re.findall(r"(?m)^\.visible \.entry (\w+)\(", page["ptx"])), sorted(names))
                self.assertRegex(page["ptx"], r"(?m)^\.target sm_90$")
                registers = re.findall(r"(?m)^registers: [1-9]\d* per thread, \d+ bytes spilled, \d+ bytes of shared memory, in (\w+) for sm_90$", page["facts"])
                self.assertEqual(sorted(registers), sorted(names))
        products = [page for page in pages.values() if "sluice.einsum" in page["mlir"]]
        self.assertTrue(products)
        for page in products:
            self.assertRegex(page["facts"], r"(?m)^tile: \d+ x \d+ of a block, \d+ terms per step, on tensor cores$")
            self.assertIn("mma.sync", page["ptx"])
        self.check_executable("small.mlir", "--devices", "cuda:0", "--backend", "cuda=arch=sm_90", SLUICE_NVRTC=self.pinned_nvrtc())
        attention = next(page for page in pages.values() if "sluice.scaled_dot_product_attention" in page["mlir"])
        self.assertRegex(attention["facts"], r"(?m)^tile: \d+ x \d+ scores of a block, ")

    def test_machine_code_comes_from_a_disassembler(self):
        """On emulated devices, which have neither PTX nor registers."""
        os.mkdir(self.path("bin"))
        self.write("bin/nvdisasm", NVDISASM)
        os.chmod(self.path("bin/nvdisasm"), 0o755)
        pages = self.small_gpt2("--backend", "cuda=arch=sm_90,library=none", "--entries", "predict", PATH=self.path("bin") + ":" + os.environ["PATH"])
        for name, page in pages.items():
            with self.subTest(name):
                self.assertEqual(list(page), ["facts", "mlir", "cu", "sass"])
                names = re.findall(r"(?m)^function: (\w+),", page["facts"])
                self.assertEqual(sorted(re.findall(r"NOP\.(\w+) ;", page["sass"])), sorted(names))
                self.assertNotIn(".nv.info", page["sass"])
        result = self.sluice("compile", "small.mlir", "--devices", "cuda:0", "--dump-ir", "dump", "-q", env=self.environment | {"CUDA_EMU_TEXT": "#error refused\n"})
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(os.listdir(self.path("dump/kernels")), [])


if __name__ == "__main__":
    main()
