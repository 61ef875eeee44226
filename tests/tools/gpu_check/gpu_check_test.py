"""tools/gpu_check from its prebuilt files, on the emulated device: gpu_check_test.py SOURCE_ROOT BUILD_ROOT. What holds is
said to hold, every planted fault is named, and the rest goes on. SLUICE_TEST_FULL=1 takes a residual network, too, and
makes the files for devices with the kernels of all models."""

import collections
import gzip
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

BUILD, SOURCE = Path(sys.argv.pop(2)).resolve(), Path(sys.argv.pop(1)).resolve()
TOOL = SOURCE / "tools" / "gpu_check"
FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
MODELS = "lenet,mlp,resnet56" if FULL else "lenet,mlp"  # images of 224 x 224 take an emulated device too long
MOST_BYTES = 64 << 20

# A machine that does other work meanwhile is no fault of what is tested.
PATIENT = ("--seconds", "3000", "--silence", "300", "--limits", "contracts=600,kernels=600,conformance=600,training=600")

Ran = collections.namedtuple("Ran", "code report table log")


class GpuCheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.prepared = Path(cls.root.name) / "prepared"
        command = [sys.executable, "-B", TOOL / "prepare", "--build", BUILD, "--output", cls.prepared, "--models", MODELS, "--emulated"]
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def setUp(self):
        self.folder = Path(self.root.name) / self.id().split(".")[-1]
        shutil.copytree(self.prepared, self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_check(self, *flags, **environment):
        report = self.folder / "report.json"
        done = subprocess.run([str(self.folder / "run"), "--json", str(report), *PATIENT, *flags], text=True, capture_output=True, check=False, timeout=2000,
                              env=dict(os.environ, **environment))
        self.assertTrue(report.exists(), done.stderr)
        return Ran(done.returncode, json.loads(report.read_text()), done.stdout, done.stderr)

    def failed(self, ran):
        return {(row["part"], row["name"]) for row in ran.report["rows"] if row["result"] in ("failed", "contradicted")}

    def count(self, ran, part, *results):
        return sum(row["part"] == part and row["result"] in results for row in ran.report["rows"])

    def count_of(self, pack):
        return len(json.loads((self.folder / "packs" / f"{pack}.json").read_text())["kernels"])

    def wrap_runner(self, script):
        """Puts a script in the runner's place, which finds the runner as $0.real."""
        runner = self.folder / "gpu_check_run"
        runner.rename(self.folder / "gpu_check_run.real")
        self.write_script(runner, script)

    @staticmethod
    def write_script(path, script):
        path.write_text("#!/bin/bash\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def edit_pack(self, model, edit):
        path = self.folder / "packs" / f"{model}.json"
        pack = json.loads(path.read_text())
        name = edit(pack)
        path.write_text(json.dumps(pack))
        return f"{model} {name}"

    # What holds.

    def test_all_of_it_holds(self):
        ran = self.run_check()
        self.assertEqual((ran.code, self.failed(ran)), (0, set()), ran.table)
        packed = sum(self.count_of(path.stem) for path in (self.folder / "packs").glob("*.json"))
        self.assertGreater(packed, 80)
        self.assertGreater(self.count_of("ops"), 40)
        self.assertEqual(self.count(ran, "kernels", "passed"), packed)
        self.assertGreaterEqual(self.count(ran, "contracts", "confirmed"), 60)
        self.assertGreaterEqual(self.count(ran, "conformance", "passed"), 24)
        self.assertEqual(self.count(ran, "training", "passed"), 2)
        self.assertEqual(self.count(ran, "exercises", "passed"), 3)
        self.assertRegex(ran.table, rf"(?m)^  kernels +{packed} +0 +0 +[\d.]+$")
        self.assertIn("everything that was tried holds", ran.table)
        self.assertTrue(ran.report["machine"]["emulated"])
        for row in ran.report["rows"]:
            self.assertTrue(row["result"] != "not tried" or row["detail"], row)

    def test_an_emulated_device_has_no_figures(self):
        ran = self.run_check("--only", "benchmarks")
        self.assertEqual(ran.code, 0, ran.table)
        self.assertIn("not tried     benchmarks: benchmarks: emulated: no figures", ran.table)
        self.assertEqual(self.count(ran, "benchmarks", "measured"), 0)
        self.assertNotIn("TFLOP", ran.table)

    def test_the_files_fit_and_are_stripped(self):
        size = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self.assertLessEqual(size, MOST_BYTES)
        for name in ("gpu_check_run", "backends/sluice_cuda_run.so", "models/lenet_device"):
            symbols = subprocess.run(["nm", self.folder / name], text=True, capture_output=True, check=False)
            self.assertIn("no symbols", symbols.stderr, name)
        self.assertTrue((self.folder / "lib" / "libtbb.so.12").exists())

    def test_one_device_is_enough(self):
        ran = self.run_check("--only", "contracts,conformance", CUDA_EMU_DEVICES="1")
        self.assertEqual(ran.code, 0, ran.table)
        self.assertIn("contracts: context.peer_access_twice and 7 more: there are 1 devices, and it needs 2", ran.table)

    # What does not.

    def test_a_wrong_result_is_named(self):
        def plant(pack):
            self.offset = pack["kernels"][1]["calls"][0]["expected"][0][0]
            return f"1 {pack['kernels'][1]['name']}"
        name = self.edit_pack("lenet", plant)
        path = self.folder / "packs" / "lenet.bin.gz"
        figures = bytearray(gzip.decompress(path.read_bytes()))
        struct.pack_into("<d", figures, self.offset + 16 * 5, 1e6)
        path.write_bytes(gzip.compress(bytes(figures)))
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)
        self.assertRegex(ran.table, r"with 3 rows: result 0: element \d+ is .* instead of 1000000")

    def test_an_overrun_is_named(self):
        def plant(pack):
            pack["kernels"][2]["results"][0]["bytes"] -= 256
            return f"2 {pack['kernels'][2]['name']}"
        name = self.edit_pack("mlp", plant)
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)
        self.assertIn("result 0: bytes behind it were written", ran.table)

    def test_a_kernel_that_cannot_be_launched_is_named(self):
        def plant(pack):
            pack["kernels"][0]["function"] = "nobody"
            return f"0 {pack['kernels'][0]['name']}"
        name = self.edit_pack("mlp", plant)
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)

    def test_a_crashing_part_fails_alone(self):
        self.wrap_runner('[ "$1" = contracts ] && kill -SEGV $$\nexec "$0.real" "$@"\n')
        ran = self.run_check("--only", "contracts,kernels,conformance")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("contracts", "contracts")}), ran.table)
        self.assertIn("crashed (SIGSEGV)", ran.table)
        self.assertGreater(self.count(ran, "kernels", "passed"), 80)

    def test_a_crashing_kernel_fails_alone(self):
        self.wrap_runner('[[ "$1" != kernels || "$*" == *--after* ]] && exec "$0.real" "$@"\n"$0.real" "$@" | head -n 10\nkill -ABRT $$\n')
        ran = self.run_check("--only", "kernels")
        for model in ("lenet", "mlp"):
            kernels = json.loads((self.folder / "packs" / f"{model}.json").read_text())["kernels"]
            expected = {f"{model} {number} {kernel['name']}" for number, kernel in enumerate(kernels)}
            rows = [row["name"] for row in ran.report["rows"] if row["name"].startswith(model)]
            self.assertEqual(sorted(rows), sorted(expected))
            self.assertIn(("kernels", f"{model} 4 {kernels[4]['name']}"), self.failed(ran))
        self.assertEqual(ran.code, 1)

    def test_a_hanging_part_fails_alone(self):
        self.wrap_runner('[ "$1" = conformance ] && sleep 100\nexec "$0.real" "$@"\n')
        ran = self.run_check("--only", "contracts,conformance", "--silence", "3")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("conformance", "conformance")}), ran.table)
        self.assertIn("no answer in 3 s", ran.table)
        self.assertGreater(self.count(ran, "contracts", "confirmed"), 30)

    def test_training_that_differs_is_named(self):
        shutil.copy(self.folder / "models" / "lenet_host", self.folder / "models" / "lenet_other")
        self.write_script(self.folder / "models" / "lenet_split", 'exec "${0%split}other" "$@" --set lr=0.11\n')
        ran = self.run_check("--only", "training")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("training", "lenet_split")}), ran.table)
        self.assertIn("where training changed it by", ran.table)

    def test_a_driver_that_breaks_a_contract_is_found_out(self):
        ran = self.run_check("--only", "contracts", GPU_CHECK_FAULT="misaligned", SLUICE_CUDA_DRIVER=os.environ["GPU_CHECK_FAULTY_DRIVER"])
        self.assertEqual(ran.code, 1, ran.table)
        self.assertIn(("contracts", "memory.aligned"), self.failed(ran))

    def test_what_the_sanitizer_finds_is_told(self):
        tool = self.folder / "compute-sanitizer"
        for script, code, text in (("echo '========= ERROR SUMMARY: 0 errors'\n", 0, "everything that was tried holds"),
                                   ("echo '========= Invalid __global__ write'\necho '========= ERROR SUMMARY: 2 errors'\nexit 9\n", 1,
                                    "ERROR SUMMARY: 2 errors; the first: Invalid __global__ write"),
                                   ("exit 0\n", 1, "the tool ended with code 0"), ("kill -SEGV $$\n", 1, "the tool crashed")):
            self.write_script(tool, script)
            ran = self.run_check("--only", "sanitizer", "--compute-sanitizer", str(tool))
            self.assertEqual(ran.code, code, ran.table)
            self.assertIn(text, ran.table)

    def test_the_time_is_kept(self):
        ran = self.run_check("--seconds", "1.5")
        self.assertLess(ran.report["seconds"], 15)
        self.assertIn("there is no time left", ran.table)

    # Where there is nothing to check.

    def test_a_machine_without_a_device_is_told(self):
        for environment, text in (({"SLUICE_CUDA_DRIVER": "libnowhere.so"}, "there is no driver of CUDA devices here"),
                                  ({"CUDA_EMU_DEVICES": "0"}, "CUDA_ERROR_NO_DEVICE"),
                                  ({"CUDA_EMU_VERSION": "11040"}, "is for CUDA 11.4"),
                                  ({"CUDA_EMU_VERSION": "12040"}, "is for CUDA 12.4, and 13.0 or later is needed: driver 580")):
            ran = self.run_check(**environment)
            self.assertEqual((ran.code, ran.table), (4, ""), ran.log)
            self.assertIn(text, ran.log)
            self.assertIn(text, ran.report["error"])

    def test_a_device_without_code_is_told(self):
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_text())
        self.assertEqual(manifest["architectures"], ["sm_90"])
        path.write_text(json.dumps(manifest | {"architectures": ["sm_80", "sm_100"]}))
        ran = self.run_check()
        self.assertEqual(ran.code, 4)
        self.assertIn("is of compute capability 9.0, and the files have code for sm_80, sm_100", ran.log)

    # The files for devices, which nothing here runs.

    @unittest.skipUnless(FULL, "minutes of NVRTC: only with SLUICE_TEST_FULL=1")
    def test_the_files_for_devices_fit(self):
        output = self.folder / "devices"
        environment = {name: value for name, value in os.environ.items() if name != "SLUICE_NVRTC"}
        command = [sys.executable, "-B", TOOL / "prepare", "--build", BUILD, "--output", output]
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(sum(path.stat().st_size for path in output.rglob("*") if path.is_file()), MOST_BYTES)
        manifest = json.loads((output / "manifest.json").read_text())
        self.assertEqual(manifest["packs"][:3], ["lenet", "mlp", "ops"])
        self.assertEqual(len(manifest["packs"]), 2 * 12 + 1)
        self.assertEqual(len(manifest["benchmarks"]), 12 * 3)
        self.assertEqual(len(manifest["exercises"]["products"]), 4)

    # The benchmarks, with programs that stand in for the device's.

    def test_figures_are_medians_of_alternating_rounds(self):
        sys.path.insert(0, str(self.folder / "checks"))
        import benchmarks  # pylint: disable=import-error,import-outside-toplevel
        log = self.folder / "log"
        self.write_script(self.folder / "models" / "net", f"echo ours >> {log}\necho '{{\"median_ms\": 1.0, \"untimed_ms\": 2.0, \"gflops\": 1000}}'\n")
        self.write_script(self.folder / "gpu_check_run.peaks", "echo '{\"name\": \"peak\", \"result\": \"measured\", \"flops\": 1e12, \"bandwidth\": 2e12, \"upload\": 5e10, \"download\": 5e10}'\n")
        self.write_script(self.folder / "python", f"""[ "$1" = -c ] && {{ [[ "$2" == *jax* ]] && {{ echo 'ModuleNotFoundError: no jax' >&2; exit 1; }}; exit 0; }}
[ "$5" = compile ] && exit 3
echo "$@" >> {log}.asked
echo '{{"ready": true}}'
while read seconds; do echo peer >> {log}; echo '{{"ms": 3.0, "steps": 9}}'; done
""")
        net = {"net": "net", "batch": 8, "length": 16, "precision": "bf16", "program": "net"}
        machine = types.SimpleNamespace(folder=self.folder, python=str(self.folder / "python"), emulated=False, environment=lambda: dict(os.environ),
                                        command=lambda *_: [str(self.folder / "gpu_check_run.peaks")], program=lambda name: self.folder / "models" / name,
                                        nets=[], modes=["infer"], variants=None, rounds=3, ahead=2,
                                        packs=self.folder, manifest={"products": {"bf16": "net"}, "benchmarks": [net, net | {"precision": "f32"}]})
        rows = {row["name"]: row for row in benchmarks.benchmarks(machine, time.monotonic() + 60)}
        label = "net infer 8x16"
        self.assertEqual((rows[f"{label} f32 sluice"]["ms"], rows[f"{label} f32 sluice"]["share"]), (2.0, 0.5))
        self.assertEqual(rows[f"{label} bf16 sluice"]["share"], 1.0)  # of the large product, which is as fast
        self.assertEqual((rows[f"{label} f32 torch eager"]["ms"], rows[f"{label} f32 torch eager"]["ratio"]), (3.0, 1.5))
        self.assertEqual(rows[f"{label} f32 torch compile"]["result"], "not tried")
        self.assertIn("ended with code 3", rows[f"{label} f32 torch compile"]["detail"])
        self.assertEqual(rows["jax"]["detail"], "ModuleNotFoundError: no jax")
        asked = (self.folder / "log.asked").read_text()
        self.assertIn("peer_torch.py net infer 8x16 eager+cl+bf16 cuda\n", asked)
        order = log.read_text().split()
        self.assertEqual(order[order.index("peer") - 1:][:9], ["ours", "peer", "peer"] * 3)

    def test_the_crossover_is_where_the_device_stays_ahead(self):
        sys.path.insert(0, str(self.folder / "checks"))
        import exercises  # pylint: disable=import-error,import-outside-toplevel
        for name, ms in {"h1": 1, "d1": 2, "h2": 9, "d2": 2, "h3": 1, "d3": 2, "h4": 8, "d4": 2, "fused": 1, "apart": 5, "net": 3}.items():
            self.write_script(self.folder / "models" / name, f"[[ \"$*\" == *--no-graphs* ]] && MS=6 || MS={ms}; echo '{{\"median_ms\": 1, \"gflops\": 1, \"untimed_ms\": '$MS'}}'\n")
        machine = types.SimpleNamespace(folder=self.folder, emulated=False, environment=lambda: dict(os.environ),
                                        program=lambda name: self.folder / "models" / name, manifest={"exercises": {
            "products": [[1, "h1", "d1"], [2, "h2", "d2"], [3, "h3", "d3"], [4, "h4", "d4"]], "chain": ["fused", "apart"], "graphs": [["net", "net", "train_step"]]}})
        rows = {row["name"]: row for row in exercises.exercises(machine, time.monotonic() + 60)}
        self.assertEqual((rows["product of 2, host"]["ms"], rows["product of 2, host"]["ratio"]), (2, 4.5))
        self.assertEqual(rows["crossover"]["detail"], "the device is faster from 4 on")
        self.assertEqual(rows["a kernel for each op"]["ratio"], 5)
        self.assertEqual(rows["net, without graphs"]["ratio"], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
