"""Placement and reports for CUDA devices, emulated and absent: published peaks, given memory and links."""

import json
import os
import re

from sluice_cli import BUILD, CliTest, main

DOUBLES = os.path.join(BUILD, "tests", "cuda_emu", "sluice_cuda_emu_")
NO_DRIVER = {"SLUICE_NVRTC": DOUBLES + "nvrtc.so", "SLUICE_CUDA_DRIVER": "/nowhere/libcuda.so"}
EMULATED = NO_DRIVER | {"SLUICE_CUDA_DRIVER": DOUBLES + "driver.so", "SLUICE_CUBLASLT": DOUBLES + "driver.so"}

# y = x w of TYPE, 2 * 4096 * 4096 operations per row.
PRODUCT = """
module @product {
  sluice.model "product" format 2 phase "model" capacity 4096
  sluice.state parameter @w : tensor<4096x4096xTYPE> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x4096xTYPE>) {
    %w = sluice.get @w : tensor<4096x4096xTYPE>
    %y = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x4096xTYPE>, tensor<4096x4096xTYPE>) -> tensor<?x4096xTYPE>
    sluice.output "y", %y : tensor<?x4096xTYPE>
  }
}
"""
FLOPS = 2 * 4096**3


class CudaPlacementTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment() | NO_DRIVER

    def run_sluice(self, *arguments, **environment):
        result = self.sluice(*arguments, env=self.environment | environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def place(self, model, *arguments, devices="cpu,cuda:0", **environment):
        return json.loads(self.run_sluice("place", model, "--devices", devices, "--json", *arguments, **environment))

    def place_product(self, element, settings, math="strict", **environment):
        self.write("product.mlir", PRODUCT.replace("TYPE", element))
        return self.place("product.mlir", "--backend", "cuda=" + settings, "--math", math, "--link", "cuda:0=50GB/s,5us", **environment)

    def test_a_device_that_is_not_here_has_its_published_peak(self):
        for element, settings, math, kind, peak in (
            ("f32", "arch=sm_90", "strict", "einsum", 67e12),
            ("f32", "arch=sm_90", "tf32-convolutions", "einsum", 67e12),
            ("f32", "arch=sm_90", "tf32", "einsum_tf32", 494.7e12),
            ("f32", "arch=sm_90", "fast", "einsum_tf32", 494.7e12),
            ("bf16", "arch=sm_90", "strict", "einsum_bf16", 989.4e12),
            ("f16", "arch=sm_100", "strict", "einsum_f16", 2250e12),
            ("bf16", "arch=sm_80+sm_90+compute_80", "strict", "einsum_bf16", 312e12),  # the slowest of them
        ):
            report = self.place_product(element, settings, math)
            group = report["groups"][0]
            self.assertEqual((group["device"], group["kind"]), ("cuda:0", kind), settings)
            self.assertAlmostEqual(group["ms"]["cuda:0"], 0.005 + 1e3 * FLOPS / peak, delta=0.002)
            device = report["devices"][1]
            self.assertEqual((device["costs"], device["architecture"]), ("published", re.search(r"sm_\d+", settings).group()))

    def test_where_rates_come_from_is_said(self):
        self.write("product.mlir", PRODUCT.replace("TYPE", "bf16"))
        arguments = ("place", "product.mlir", "--devices", "cpu,cuda:0", "--backend", "cuda=arch=sm_90")
        self.assertRegex(self.run_sluice(*arguments), r"(?m)^  gpu\(0\) \(cuda:0\) .*; costs from the published peak of sm_90, not measured$")
        explained = self.run_sluice(*arguments, "--explain", "einsum")
        self.assertIn("\n  gpu(0) (cuda:0): costs from the published peak of sm_90, not measured\n", explained)

    def test_a_device_that_is_here_tells_its_own(self):
        kinds = {}
        for element in "f32", "bf16":
            report = self.place_product(element, "arch=sm_90", **EMULATED)
            self.assertEqual(report["devices"][1]["costs"], "roofline")
            kinds[element] = report["groups"][0]["ms"]["cuda:0"]
        self.assertAlmostEqual((kinds["f32"] - 0.005) / (kinds["bf16"] - 0.005), 989.4 / 67, delta=0.5)

    def test_given_memory_decides_without_a_driver(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--input", "f32", "--batch", "32", "-o", "lenet.mlir")
        link = ("--link", "cuda:0=500MB/s,5us", "--backend", "cuda=arch=sm_90")
        free = self.place("lenet.mlir", *link, devices="cpu,cuda:0=80GB")
        self.assertEqual(free["devices"][1]["cap_bytes"], 80_000_000_000)
        self.assertGreater(free["peak_bytes"]["cuda:0"], 1_000_000)
        tight = self.place("lenet.mlir", *link, devices="cpu,cuda:0=1MB")
        self.assertLessEqual(tight["peak_bytes"]["cuda:0"], 1_000_000)
        self.assertIn("1000000", tight["obstacles"]["all cuda:0"])
        reasons = [item["reason"] for kind in ("groups", "states") for item in tight[kind] if item["device"] == "cpu"]
        self.assertTrue([reason for reason in reasons if "gpu(0) may have 1000000 bytes" in reason], reasons)

    # Equal figures give both the same groups, unless two devices are nearly as fast: the simulator runs the host's
    # work by its own clock, so other work overlaps.
    def test_what_was_measured_decides_as_on_the_simulator(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--input", "f32", "--batch", "32", "-o", "mlp.mlir")
        samples = [{"flops": flops, "bytes": size, "seconds": 1e-5 + flops / 1e11 + size / 1e10}
                   for flops in (0, 1e6, 1e8) for size in (1e4, 1e6)]
        machine = json.loads(self.run_sluice("devices", "--json"))["devices"][0]
        devices = {"cpu": [dict(one, seconds=5 * one["seconds"]) for one in samples], "cuda:0": samples, "sim:0": samples}
        clocks = [
            {"clock": clock, "machine": f"{machine['name']}, {machine['cores']} threads", "links": [],
             "devices": [{"device": name, "kinds": {"elementwise": devices[name]}} for name in ("cpu", accelerator)]}
            for clock, accelerator in (("cpu", "cuda:0"), ("sim", "sim:0"))]
        self.write("calibration.json", json.dumps({"format": 1, "clocks": clocks}))
        for speed in "1GB/s", "20MB/s":
            placed = {}
            for name in "cuda:0", "sim:0":
                report = self.place("mlp.mlir", "--link", f"{name}={speed},5us", "--no-fuse", devices=f"cpu,{name}=500kB")
                self.assertEqual([device["costs"] for device in report["devices"]], ["measured", "measured"])
                self.assertLessEqual(report["peak_bytes"][name], 500_000)
                placed[name] = {group["name"]: group["device"] == name for group in report["groups"]}
            self.assertEqual(placed["cuda:0"], placed["sim:0"])
            self.assertEqual(set(placed["sim:0"].values()), {False, True})

    # Products reach 67e11 operations per second in f32 and 989.4e11 in bf16: like other kinds, a tenth of sm_90's peaks.
    def test_kinds_that_were_not_measured_go_by_published_peaks(self):
        machine = json.loads(self.run_sluice("devices", "--json"))["devices"][0]
        works = ((FLOPS, 1e6), (1, 1e9), (1, 1))
        kinds = {kind: [{"flops": flops, "bytes": size, "seconds": 1e-6 + max(flops / rate, size / 1e12)} for flops, size in works]
                 for kind, rate in (("einsum", 67e11), ("einsum_bf16", 989.4e11))}
        self.write("calibration.json", json.dumps({"format": 1, "clocks": [
            {"clock": "cpu", "machine": f"{machine['name']}, {machine['cores']} threads", "links": [],
             "devices": [{"device": "cuda:0", "kinds": kinds}]}]}))
        for element, math, kind, rate, like in (
            ("f32", "strict", "einsum", 67e11, None),
            ("bf16", "strict", "einsum_bf16", 989.4e11, None),
            ("f16", "strict", "einsum_f16", 989.4e11, "einsum_bf16"),
            ("f32", "tf32", "einsum_tf32", 494.7e11, "einsum_bf16"),
        ):
            for environment in {}, EMULATED:
                report = self.place_product(element, "arch=sm_90", math, **environment)
                self.assertEqual(report["groups"][0]["kind"], kind)
                self.assertAlmostEqual(report["groups"][0]["ms"]["cuda:0"], 1e3 * FLOPS / rate, delta=0.05 * 1e3 * FLOPS / rate)
                device = report["devices"][1]
                self.assertEqual((device["costs"], device["estimated"]), ("measured", {kind: like} if like else {}))
        arguments = ("place", "product.mlir", "--devices", "cpu,cuda:0", "--backend", "cuda=arch=sm_90", "--math", "tf32")
        said = "; einsum_tf32 not measured: estimated from einsum_bf16 by the published peaks of sm_90\n"
        self.assertIn("; costs measured" + said, self.run_sluice(*arguments))
        self.assertIn("  gpu(0) (cuda:0): costs measured" + said, self.run_sluice(*arguments, "--explain", "einsum"))

    def test_capability_and_links_are_listed(self):
        text = self.run_sluice("devices", **EMULATED, CUDA_EMU_DEVICES="3")
        self.assertRegex(text, r"(?m)^cuda:1 .*, compute capability \d+\.\d+, direct links to cuda:0, cuda:2$")
        devices = {one["device"]: one for one in json.loads(self.run_sluice("devices", "--json", **EMULATED))["devices"]}
        self.assertRegex(devices["cuda:0"]["compute_capability"], r"^\d+\.\d+$")
        self.assertEqual(devices["cuda:0"]["direct_links"], ["cuda:1"])
        self.assertIsNone(devices["cpu:0"]["compute_capability"])
        self.assertEqual(devices["cpu:0"]["direct_links"], [])


if __name__ == "__main__":
    main()
