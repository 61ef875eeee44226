"""Runs each contract of tools/gpu_check on the doubles: contracts_test.py SOURCE_ROOT BUILD_ROOT. Each testable
contract is shown to fail with a faulty driver or modified kernels, and each is in the list of the doubles'
assumptions."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCE = Path(sys.argv.pop(2)).resolve(), Path(sys.argv.pop(1)).resolve()
LIST = SOURCE / "tests/cuda_emu/CONTRACTS.md"
RUNNER, PLUGIN = BUILD / "bin/gpu_check_run", BUILD / "lib/sluice/backends/sluice_cuda_run.so"
ARCHITECTURES = "arch=sm_90+compute_80"

# Not testable on doubles.
NOT_TRIED = {"event.idle_streams", "launch.faults_lose_the_device", "module.older_minor_runs", "module.other_major_does_not"}

# Faults of the driver, and the contracts that must fail.
FAULTS = {
    "misaligned": {"memory.aligned"},
    "hasty_events": {"event.host_waits"},
    "other_seconds": {"event.times"},
    "careless_times": {"event.times_of_what_is_done", "event.times_of_timed_events", "event.times_of_one_device"},
    "deaf_functions": {"launch.shared_bytes"},
    "lost_waits": {"stream.waits_for_events", "event.wait_means_the_last_record", "event.destroyed_is_waited_for", "event.waits_across_contexts",
                   "graph.events_behind"},
    "lost_numbers": {"stream.waits_for_numbers"},
    "hasty_functions": {"stream.host_functions_keep_their_place"},
    "eager_captures": {"graph.capture_does_nothing", "graph.waiting_spoils_it", "graph.allocating_spoils_it"},
    "relaxed_captures": {"graph.allocating_spoils_it"},
    "lost_graphs": {"blas.captured", "graph.pinned_copies", "graph.order", "graph.arguments_are_kept", "graph.other_streams", "graph.launches_follow_each_other", "graph.events_behind",
                    "graph.destroyed_early"},
    "kept_context": {"context.is_needed"},
    "lost_exchanges": {"exchange.alone", "exchange.order", "exchange.two_devices"},
    "forgotten_errors": {"exchange.errors_stay"},
    "endless_communicators": {"exchange.abort"},
    "forgotten_peers": {"context.peer_access_twice"},
    "credulous_modules": {"module.later_ptx_is_refused", "module.ptx_for_newer_devices_is_refused"},
    "lost_launches": {"module.ptx_runs", "launch.places"},
    "dense_layouts": {"blas.leading_dimensions"},
    "dense_batches": {"blas.batches"},
    "plain_operands": {"blas.transposes"},
    "plain_epilogues": {"blas.bias", "blas.beta_1", "blas.gelu", "blas.gelu_gradient", "blas.gelu_gradient_tf32", "blas.operand_sums", "blas.operand_sums_tf32",
                        "blas.operand_sums_of_halves", "blas.relu_keeps_nan"},
    "deaf_preferences": {"blas.alignment"},
    "greedy_algorithms": {"blas.workspace_bound"},
    "credulous_heuristics": {"blas.sizes_must_fit"},
    "refusing_checks": {"blas.check"},
    "read_results": {"blas.beta_0"},
    "forgotten_results": {"blas.beta_1"},
    "every_other_product": {"blas.repeats_its_bits", "blas.fewer_columns", "blas.operand_sums_repeat"},
    "rough_products": {"blas.gelu", "blas.gelu_gradient", "blas.gelu_gradient_tf32", "blas.sums_f32", "blas.sums_tf32", "blas.sums_of_halves"},
    "swallowed_refusals": {"blas.workspace_too_small"},
    "products_elsewhere": {"blas.order"},
    "late_products": {"blas.descriptions_are_read_at_once"},
}

# Prefixes of the kernels that emulate a different device, and the contracts that must fail.
OTHER_KERNELS = (("""
#define __shfl_sync(mask, value, from, width) __shfl_sync(mask, value, (from) + 1, width)
#define __syncthreads() ((void)0)
template <int bytes> void copyOnes(void *to, const void *from, bool exists) {
  alignas(16) static const unsigned char ones[16] = {1};
  beginCopy<bytes>(to, exists ? from : ones, true);
}
#define beginCopy copyOnes
#define fma(a, b, c) ((a) * (b) + (c))
#define pairOfBF16(low, high) (pairOfBF16(low, high) ^ 1)
#define exp(x) (exp(x) * 1.00001f)
#define multiplyTf32(c0, c1, c2, c3, a, b) multiplyTf32(c0, c2, c1, c3, a, b)
#define multiplyF16(c0, c1, c2, c3, a, b0, b1) multiplyF16(c0, c1, c2, c3, a, b1, b0)
template <bool transposed, class Half> void loadCrosswise(unsigned (&to)[4], const Half *row) { loadMatrices<!transposed>(to, row); }
#define loadMatrices loadCrosswise
inline float cutToTf32(float x) { return __int_as_float(__float_as_int(x) & ~0x1fff); }
#define roundToTf32 cutToTf32
#define powerOfTwo(x) (powerOfTwo(x) * 1.000001f)
""", {"language.shuffle", "language.shuffle_of_half_a_warp", "language.barrier", "language.copies", "language.small_copies", "language.rounding_f32",
      "language.rounding_f64", "language.halves", "language.functions_f32", "tensor.fragments_tf32", "tensor.fragments_of_halves", "tensor.matrices",
      "tensor.matrices_transposed", "tensor.rounds_to_tf32", "tensor.power_of_two"}),
    ("""
#define multiplyF16(c0, c1, c2, c3, a, b0, b1) (multiplyF16(c0, c1, c2, c3, a, b0, b1), c0 = roundToTf32(c0)) // of 11 bits
""", {"tensor.sums"}))


class ContractsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.folder = cls.pack("sound")
        cls.sound = cls.results()

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    @classmethod
    def pack(cls, name, **environment):
        folder = Path(cls.root.name) / name
        folder.mkdir()
        command = [str(BUILD / "bin/gpu_check_pack"), str(folder), ARCHITECTURES]
        done = subprocess.run(command, text=True, capture_output=True, check=False, env=dict(os.environ, CUDA_EMU_EFFORT="least", **environment))
        assert done.returncode == 0, done.stderr
        return folder

    @classmethod
    def run_part(cls, part, *flags, **environment):
        done = subprocess.run([str(RUNNER), part, str(PLUGIN), *map(str, flags)], text=True, capture_output=True, check=False, timeout=600,
                              env=dict(os.environ, **environment))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    @classmethod
    def results(cls, names=(), folder=None, **environment):
        only = ("--only", ",".join(sorted(names))) if names else ()
        lines = cls.run_part("contracts", "--folder", folder or cls.folder, *only, **environment)
        return {line["name"]: line["result"] for line in lines}

    def tried(self, names):
        return {name for name in names if self.sound[name] != "not tried"}

    def expect_contradicted(self, names, **more):
        names = self.tried(names)
        self.assertEqual(self.results(names, **more), dict.fromkeys(names, "contradicted"))

    def test_the_doubles_keep_them(self):
        not_tried = {name for name, result in self.sound.items() if result == "not tried"}
        self.assertLessEqual(NOT_TRIED, not_tried)
        self.assertLessEqual(not_tried, NOT_TRIED | {"blas.gelu"})
        self.assertEqual({result for name, result in self.sound.items() if name not in not_tried}, {"confirmed"}, self.sound)

    def test_a_faulty_driver_is_found_out(self):
        driver = os.environ["GPU_CHECK_FAULTY_DRIVER"]
        doubles = {"SLUICE_CUBLASLT": driver, "SLUICE_CUDA_DRIVER": driver, "SLUICE_NCCL": driver}
        self.assertEqual(self.results(**doubles), self.sound)
        for fault, names in FAULTS.items():
            with self.subTest(fault):
                self.expect_contradicted(names, GPU_CHECK_FAULT=fault, **doubles)

    def test_a_device_that_does_otherwise_is_found_out(self):
        for number, (text, names) in enumerate(OTHER_KERNELS):
            with self.subTest(text):
                self.expect_contradicted(names, folder=self.pack(f"other{number}", CUDA_EMU_TEXT=text))

    def test_ptx_for_another_device_is_found_out(self):
        self.expect_contradicted({"module.ptx_runs"}, folder=self.pack("newer", CUDA_EMU_PTX="compute_121"))

    def test_without_a_library_its_contracts_are_not_tried(self):
        for family, variable in (("blas.", "SLUICE_CUBLASLT"), ("exchange.", "SLUICE_NCCL")):
            names = {name for name in self.sound if name.startswith(family)}
            self.assertEqual(self.results(names, **{variable: "libnowhere.so"}), dict.fromkeys(names, "not tried"))

    def test_the_list_has_them_all(self):
        rows = re.findall(r"^\| `([\w.]+)` \| .+ \| .+ \| (.+) \|$", LIST.read_text(encoding="utf-8"), re.MULTILINE)
        listed = [name for name, device in rows if not device.startswith("none: ")]
        named = [line["name"] for line in self.run_part("names")]
        self.assertEqual(sorted(listed), sorted(named))
        self.assertEqual(len(rows), len({name for name, _ in rows}))
        self.assertGreater(len(rows), len(named))


if __name__ == "__main__":
    unittest.main(verbosity=2)
