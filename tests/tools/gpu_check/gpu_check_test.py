"""Runs tools/gpu_check from its prebuilt files on the emulated device: gpu_check_test.py SOURCE_ROOT BUILD_ROOT.
Working parts pass, every planted fault is named, and the other parts continue. SLUICE_TEST_FULL=1 adds a residual
network, and prepares the files for devices with the kernels of all models."""

import collections
import importlib
import json
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

BUILD, SOURCE = Path(sys.argv.pop(2)).resolve(), Path(sys.argv.pop(1)).resolve()
TOOL = SOURCE / "tools" / "gpu_check"
FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
MODELS = "lenet,mlp,resnet56" if FULL else "lenet,mlp"  # images of 224 x 224 take too long on an emulated device
MOST_BYTES = 64 << 20

# A busy machine must not cause failures.
PATIENT = ("--seconds", "3000", "--silence", "300", "--limits", "contracts=600,kernels=600,conformance=600,training=600,exercises=600")

Ran = collections.namedtuple("Ran", "code report table log")


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class GpuCheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.prepared = Path(cls.root.name) / "prepared"
        done = cls.prepare(cls.prepared)
        assert done.returncode == 0, done.stderr
        cls.told = done.stderr

    @staticmethod
    def prepare(output, *flags):
        command = [sys.executable, "-B", TOOL / "prepare", "--build", BUILD, "--output", output, "--models", MODELS, "--emulated", *flags]
        return subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False)

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
        """Replaces the runner by a script, which can call the runner as $0.real."""
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

    def edit_manifest(self, **changes):
        path = self.folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def take_packs(self, *packs):
        """Restricts the kernels to these."""
        self.edit_manifest(packs=packs)

    def take_program(self, name):
        """Extracts a program from the archive to the path that is searched first."""
        with tarfile.open(self.folder / "models" / "programs.tar.xz") as archive:
            archive.extract(name, self.folder / "models")
        return self.folder / "models" / name

    def checks(self, name):
        """Imports a module from the files."""
        sys.path.insert(0, str(self.folder / "checks"))
        return importlib.import_module(name)

    # Cases without faults.

    def test_all_of_it_holds(self):
        ran = self.run_check()
        self.assertEqual((ran.code, self.failed(ran)), (0, set()), ran.table)
        packed = sum(self.count_of(path.stem) for path in (self.folder / "packs").glob("*.json"))
        self.assertGreater(packed, 80)
        self.assertGreater(self.count_of("ops"), 40)
        own = sum(row["name"].endswith(", own product") for row in ran.report["rows"])
        self.assertEqual(self.count(ran, "kernels", "passed"), packed + own)
        self.assertGreaterEqual(self.count(ran, "contracts", "confirmed"), 60)
        self.assertGreaterEqual(self.count(ran, "conformance", "passed"), 24)
        self.assertEqual(self.count(ran, "training", "passed"), 2)
        self.assertEqual(self.count(ran, "exercises", "passed"), 7)
        self.assertRegex(ran.table, rf"(?m)^  kernels +{packed + own} +0 +0 +[\d.]+$")
        self.assertIn("everything that was tried holds", ran.table)
        self.assertTrue(ran.report["machine"]["emulated"])
        for row in ran.report["rows"]:
            self.assertTrue(row["result"] != "not tried" or row["detail"], row)

    def test_an_emulated_device_has_no_figures(self):
        ran = self.run_check("--only", "benchmarks")
        self.assertEqual(ran.code, 0, ran.table)
        self.assertIn("not tried     benchmarks: benchmarks: emulated: no figures", ran.table)
        self.assertEqual([(row["name"], row["detail"]) for row in ran.report["rows"] if row["result"] == "passed"],
                         [("peak", "emulated: kernels and copies run, and there are no figures")])
        self.assertEqual(self.count(ran, "benchmarks", "measured"), 0)
        self.assertNotIn("TFLOP", ran.table)

    def test_the_files_fit_and_are_stripped(self):
        self.assertLessEqual(bytes_of(self.folder), MOST_BYTES)
        for name in (self.folder / "gpu_check_run", self.folder / "backends/sluice_cuda_run.so", self.take_program("lenet_device")):
            symbols = subprocess.run(["nm", name], text=True, capture_output=True, check=False)
            self.assertIn("no symbols", symbols.stderr, name)
        self.assertTrue((self.folder / "lib" / "libtbb.so.12").exists())

    def test_the_last_kernels_are_left_out_where_there_is_no_room(self):
        packs = json.loads((self.folder / "manifest.json").read_text())["packs"]
        sizes = {pack: sum(path.stat().st_size for path in (self.folder / "packs").glob(f"{pack}.*")) for pack in packs[-2:]}
        most = bytes_of(self.folder) - sum(sizes.values()) + (64 << 10) + sizes[packs[-2]] // 2
        smaller = self.folder / "smaller"
        done = self.prepare(smaller, "--bytes", most)
        self.assertEqual(done.returncode, 0, done.stderr)
        without = [line for line in done.stderr.splitlines() if "no room" in line]
        self.assertEqual(without, [f"prepare: no room for the kernels of {pack}" for pack in reversed(packs[-2:])])
        self.assertLessEqual(bytes_of(smaller), most)
        manifest = json.loads((smaller / "manifest.json").read_text())
        self.assertEqual(manifest["packs"], packs[:-2])
        self.assertEqual({path.name.split(".json")[0] for path in (smaller / "packs").glob("*.json")}, set(packs[:-2]))
        self.assertTrue((smaller / "packs" / "own.image").exists())
        self.assertEqual(manifest["sanitized"], packs[:2])
        self.folder, whole = smaller, self.folder
        ran = self.run_check("--only", "contracts")
        self.folder = whole
        self.assertEqual(ran.code, 0, ran.table)

    def test_a_folder_without_room_for_programs_is_an_error(self):
        done = self.prepare(self.folder / "smaller", "--bytes", "1000000", "--models", "mlp")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("and 1000000 may be carried to a machine: name fewer --benchmarks", done.stderr)

    def test_what_is_made_is_told_meanwhile(self):
        packs = json.loads((self.folder / "manifest.json").read_text())["packs"]
        begun = re.findall(r"(?m)^prepare: packing (.+), (\d+) of (\d+)(, about \S+ (?:s|min) left)?$", self.told)
        self.assertEqual(sorted(name for name, *_ in begun), sorted(["own kernels", *packs]))
        self.assertEqual([(int(number), int(count)) for _, number, count, _ in begun], [(i + 1, len(packs) + 1) for i in range(len(packs) + 1)])
        self.assertEqual([bool(left) for *_, left in (begun[0], begun[-1])], [False, True])
        self.assertRegex(self.told, r"(?m)^prepare: compiling lenet_device, \d of \d+")
        self.assertEqual(re.findall(r"(?m)^prepare: (\w+) \d+ took [\d.]+ (?:s|min)$", self.told), ["packing", "compiling", "compressing"])

    def test_progress_takes_one_line_of_a_terminal(self):
        script = "import progress\np = progress.Progress('packing', 2)\nfor name in 'ab':\n p.begin(name)\n p.end()\np.close()"
        try:
            reader, terminal = os.openpty()
        except OSError as error:
            self.skipTest(f"this machine gives no terminal: {error}")
        subprocess.run([sys.executable, "-B", "-c", script], stderr=terminal, cwd=TOOL, check=True)
        told = os.read(reader, 10000).decode()
        os.close(reader)
        os.close(terminal)
        lines = ["prepare: packing a, 1 of 2", "prepare: packing b, 2 of 2, about 0.0 s left", "prepare: packing 2 took 0.0 s\r\n"]
        self.assertEqual(told, "".join(f"\r\x1b[K{line}" for line in lines))

    def test_the_time_left_is_told_of_a_quarter_on(self):
        sys.path.insert(0, str(TOOL))
        progress = importlib.import_module("progress")
        with mock.patch.object(progress.time, "monotonic", return_value=1000):
            of_eight = progress.Progress("packing", 8)
        told = []
        for _ in range(3):
            with mock.patch.object(progress.time, "monotonic", return_value=1090):
                told.append(of_eight.left())
            of_eight.end()
        self.assertEqual(told, ["", "", ", about 4.5 min left"])

    def test_nothing_begins_behind_a_failure(self):
        build, log = self.folder / "build", self.folder / "log"
        (build / "bin").mkdir(parents=True)
        for place in ("lib", "bin/models", "bin/gpu_check_run"):
            (build / place).symlink_to(BUILD / place)
        # Fails once a concurrent item has begun.
        self.write_script(build / "bin/gpu_check_pack", f"echo \"$3\" >> {log}\n[[ \"$3\" == mlp=* ]] || exec sleep 2\n"
                          f"until grep -q ops {log}; do sleep 0.1; done\necho broken >&2\nexit 3\n")
        done = self.prepare(self.folder / "output", "--build", build)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"prepare: \S+/gpu_check_pack .* gives 3:\nbroken\n$")
        self.assertEqual(sorted(line.split("=")[0] for line in log.read_text().splitlines()), ["", "lenet", "mlp", "ops"])

    def test_one_device_is_enough(self):
        ran = self.run_check("--only", "contracts,conformance,exercises", CUDA_EMU_DEVICES="1")
        self.assertEqual(ran.code, 0, ran.table)
        self.assertIn("contracts: context.peer_access_twice and 7 more: there are 1 devices, and it needs 2", ran.table)
        self.assertIn("exercises: two products, on one device: there is one device, and it needs two", ran.table)

    def test_code_is_for_devices_that_are_no_older(self):
        machine = self.checks("machine").Machine
        for architectures, capability, is_for_it in ((("sm_80", "sm_90"), (8, 6), True), (("sm_90",), (8, 0), False), (("sm_90",), (10, 0), False),
                                                     (("sm_90", "compute_80"), (10, 0), True), (("compute_90",), (8, 0), False),
                                                     (("sm_100",), (10, 3), True)):
            files = types.SimpleNamespace(manifest={"architectures": architectures})
            self.assertEqual(machine.has_code_for(files, *capability), is_for_it, (architectures, capability))

    def test_products_are_tried_in_both_ways(self):
        names = [kernel["name"] for kernel in json.loads((self.folder / "packs" / "mlp.bf16.json").read_text())["kernels"]]
        self.take_packs("mlp.bf16")
        ran = self.run_check("--only", "kernels")
        own = [row["name"] for row in ran.report["rows"] if row["name"].endswith(", own product")]
        self.assertGreater(len(own), 5)
        self.assertEqual(self.count(ran, "kernels", "passed"), len(names) + len(own), ran.table)

    def test_bare_kernels_find_memory_as_the_driver_gives_it(self):
        tool, log = self.folder / "compute-sanitizer", self.folder / "log"
        self.write_script(tool, 'shift 4\n"$@" || exit\necho "========= ERROR SUMMARY: 0 errors"\n')
        self.edit_manifest(sanitized=["mlp"])
        ran = self.run_check("--only", "sanitizer", "--compute-sanitizer", str(tool), GPU_CHECK_MEMORY=str(log),
                             SLUICE_CUDA_DRIVER=os.environ["GPU_CHECK_FAULTY_DRIVER"])
        self.assertEqual((ran.code, self.count(ran, "sanitizer", "passed")), (0, 3), ran.table)
        expected = collections.Counter()
        for kernel in json.loads((self.folder / "packs" / "mlp.json").read_text())["kernels"]:
            for size in [result["bytes"] for result in kernel["results"]] + [kernel["workspace"]]:
                expected[size] += 3 * len(kernel["calls"]) if size else 0
        unwritten = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("unwritten")]
        self.assertEqual(collections.Counter(map(int, unwritten)), expected)

    def test_libraries_are_found_in_a_python(self):
        packages = self.folder / "site-packages"
        for library in ("cu13/lib/libcublasLt.so.13", "nccl/lib/libnccl.so.2"):
            (packages / "nvidia" / library).parent.mkdir(parents=True)
            (packages / "nvidia" / library).symlink_to(os.environ["SLUICE_CUDA_DRIVER"])
        self.write_script(self.folder / "python", f"echo {packages}\n")
        self.wrap_runner(f'echo "$1 $SLUICE_CUBLASLT $SLUICE_NCCL" >> {self.folder}/told\nexec "$0.real" "$@"\n')
        ran = self.run_check("--only", "libraries,contracts", "--python", self.folder / "python", SLUICE_CUBLASLT="", SLUICE_NCCL="")
        libraries = self.checks("libraries")
        found = {row["name"]: row["detail"].rpartition(", version ")[0] for row in ran.report["rows"] if row["part"] == "libraries"}
        places = {library.variable: list(libraries.places_of(library.files, [packages])) for library in libraries.LIBRARIES.values()}
        self.assertEqual(places["SLUICE_CUBLASLT"][-1], str(packages / "nvidia/cu13/lib/libcublasLt.so.13"))
        self.assertEqual(places["SLUICE_NCCL"][-1], str(packages / "nvidia/nccl/lib/libnccl.so.2"))
        self.assertIn(found["nccl"], places["SLUICE_NCCL"])
        self.assertIn(f"contracts {found['cublasLt']} {found['nccl']}", (self.folder / "told").read_text().splitlines())

    def test_a_library_that_is_named_must_be_one(self):
        ran = self.run_check("--only", "libraries", SLUICE_NCCL="/nowhere/libnccl.so")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("libraries", "nccl")}), ran.table)
        self.assertIn("SLUICE_NCCL names /nowhere/libnccl.so, which cannot be loaded", ran.table)

    # Cases with faults.

    def test_a_wrong_result_is_named(self):
        def plant(pack):
            self.offset = pack["kernels"][1]["calls"][0]["expected"][0][0]
            return f"1 {pack['kernels'][1]['name']}"
        name = self.edit_pack("lenet", plant)
        path = self.folder / "packs" / "lenet.bin.xz"
        figures = bytearray(lzma.decompress(path.read_bytes()))
        struct.pack_into("<d", figures, self.offset + 16 * 5, 1e6)
        path.write_bytes(lzma.compress(bytes(figures), preset=1))
        self.take_packs("lenet")
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)
        self.assertRegex(ran.table, r"with 3 rows: result 0: element \d+ is .* instead of 1000000")

    def test_an_overrun_is_named(self):
        def plant(pack):
            pack["kernels"][2]["results"][0]["bytes"] -= 256
            return f"2 {pack['kernels'][2]['name']}"
        name = self.edit_pack("mlp", plant)
        self.take_packs("mlp")
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)
        self.assertIn("result 0: bytes behind it were written", ran.table)

    def test_a_kernel_that_cannot_be_launched_is_named(self):
        def plant(pack):
            pack["kernels"][0]["function"] = "nobody"
            return f"0 {pack['kernels'][0]['name']}"
        name = self.edit_pack("mlp", plant)
        self.take_packs("mlp")
        ran = self.run_check("--only", "kernels")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("kernels", name)}), ran.table)

    def test_a_crashing_part_fails_alone(self):
        self.wrap_runner('[ "$1" = contracts ] && kill -SEGV $$\nexec "$0.real" "$@"\n')
        self.take_packs("mlp")
        ran = self.run_check("--only", "contracts,kernels,conformance")
        self.assertEqual((ran.code, self.failed(ran)), (1, {("contracts", "contracts")}), ran.table)
        self.assertIn("crashed (SIGSEGV)", ran.table)
        self.assertEqual(self.count(ran, "kernels", "passed"), self.count_of("mlp"))

    def test_a_crashing_kernel_fails_alone(self):
        self.wrap_runner('[[ "$1" != kernels || "$*" == *--after* ]] && exec "$0.real" "$@"\n"$0.real" "$@" | head -n 10\nkill -ABRT $$\n')
        models = ("lenet", "mlp") if FULL else ("mlp",)
        self.take_packs(*models)
        ran = self.run_check("--only", "kernels")
        for model in models:
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
        self.take_program("lenet_host").rename(self.folder / "models" / "lenet_other")
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

    # Cases without a device to check.

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
        self.assertEqual(json.loads((self.folder / "manifest.json").read_text())["architectures"], ["sm_90"])
        self.edit_manifest(architectures=["sm_80", "sm_100"])
        ran = self.run_check()
        self.assertEqual(ran.code, 4)
        self.assertIn("is of compute capability 9.0, and the files have code for sm_80, sm_100", ran.log)

    # The files for devices, which no test here runs.

    @unittest.skipUnless(FULL, "minutes of NVRTC: only with SLUICE_TEST_FULL=1")
    def test_the_files_for_devices_fit(self):
        output = self.folder / "devices"
        environment = {name: value for name, value in os.environ.items() if name != "SLUICE_NVRTC"}
        command = [sys.executable, "-B", TOOL / "prepare", "--build", BUILD, "--output", output]
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(bytes_of(output), MOST_BYTES)
        manifest = json.loads((output / "manifest.json").read_text())
        self.assertEqual(manifest["packs"][:4], ["lenet", "mlp", "ops", "ops.library"])
        left_out = [line.rpartition(" ")[2] for line in done.stderr.splitlines() if "no room for the kernels of" in line]
        self.assertEqual(len(manifest["packs"]) + len(left_out), 2 * 16 + 2 + 2)
        self.assertEqual(manifest["architectures"], ["sm_80", "sm_90", "sm_100", "compute_80"])
        self.assertEqual(manifest["sanitized"], ["lenet", "mlp", "gpt2.bf16"])
        self.assertEqual(len(manifest["benchmarks"]), 17 * 3)
        self.assertEqual(len(manifest["exercises"]["products"]), 4)

    # The benchmarks, with substitutes for the device's programs.

    def test_every_network_has_its_peers(self):
        nets = re.findall(r'(?m)^    "(\w+)": Model\(', (TOOL / "prepare").read_text())
        self.assertGreater(len(nets), 16)
        for file in ("nets_torch.py", "nets_jax.py"):
            peers = re.findall(r'(?m)^    "(\w+)": ', (TOOL / "peers" / file).read_text())
            self.assertEqual(sorted(peers), sorted(nets), file)

    def test_figures_are_medians_of_alternating_rounds(self):
        benchmarks = self.checks("benchmarks")
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
        self.assertEqual(order[order.index("peer") - 1:][:15], ["ours", "peer"] * 3 + ["ours", "peer", "peer"] * 3)

    def test_every_network_is_measured_before_any_slow_peer(self):
        benchmarks = self.checks("benchmarks")
        nets = [{"net": net, "batch": 8, "precision": precision, "program": net} for net in ("a", "b") for precision in ("f32", "tf32", "bf16")]
        machine = types.SimpleNamespace(emulated=False, nets=[], modes=["train", "infer"], variants=None, rounds=1, ahead=2, manifest={"benchmarks": nets})
        peer = mock.Mock(side_effect=lambda *_: types.SimpleNamespace(why="", times=[3.0], try_to=lambda *_: None, close=lambda: None))
        with mock.patch.multiple(benchmarks, Peer=peer, bench=lambda *_: {"ms": 1.0, "gflops": 1.0}, peaks=lambda *_: {"name": "peak"}, most_of=lambda *_: 1e9,
                                 frameworks=lambda *_: [("torch", ""), ("jax", "")]):
            rows = [row["name"].split(" ", 4) for row in benchmarks.benchmarks(machine, time.monotonic() + 60)][1:]
        ours = [(net, mode, precision) for net, mode, _, precision, name in rows[:12] if name == "sluice"]
        self.assertEqual(ours, [(net, mode, precision) for mode, precision in (("train", "bf16"), ("train", "f32"), ("infer", "bf16"), ("infer", "f32"),
                                                                               ("train", "tf32"), ("infer", "tf32")) for net in "ab"])
        slow = ["compile" in name for *_, name in rows[12:]]
        self.assertEqual(slow, sorted(slow))
        self.assertEqual(slow.count(False), 28)
        for of_stage in (rows[12:40], rows[40:]):
            self.assertEqual(list(dict.fromkeys((net, mode, precision) for net, mode, _, precision, _ in of_stage)), ours)

    def test_the_crossover_is_where_the_device_stays_ahead(self):
        exercises = self.checks("exercises")
        for name, ms in {"h1": 1, "d1": 2, "h2": 9, "d2": 2, "h3": 1, "d3": 2, "h4": 8, "d4": 2, "fused": 1, "apart": 5, "net": 3, "both": 2, "one": 3}.items():
            outputs = '{\\"returned_ms\\": 0.5, \\"done_ms\\": 2, \\"unread_ms\\": 3, \\"read_ms\\": $READ, \\"kept_ms\\": 4}'
            self.write_script(self.folder / "models" / name, f"""[[ "$*" == *--no-graphs* ]] && MS=6 READ=16 || MS={ms} READ=8
[[ "$*" == *--outputs* ]] && OUTPUTS=", \\"outputs\\": {outputs}"
echo "{{\\"median_ms\\": 1, \\"gflops\\": 1, \\"untimed_ms\\": $MS$OUTPUTS}}"
""")
        machine = types.SimpleNamespace(folder=self.folder, emulated=False, environment=lambda: dict(os.environ), devices=["a", "b"],
                                        program=lambda name: self.folder / "models" / name, manifest={"exercises": {
            "products": [[1, "h1", "d1"], [2, "h2", "d2"], [3, "h3", "d3"], [4, "h4", "d4"]], "chain": ["fused", "apart"], "graphs": [["net", "net", "train_step"]], "two": ["both", "one"]}})
        rows = {row["name"]: row for row in exercises.exercises(machine, time.monotonic() + 60)}
        self.assertEqual((rows["product of 2, host"]["ms"], rows["product of 2, host"]["ratio"]), (2, 4.5))
        self.assertEqual(rows["crossover"]["detail"], "the device is faster from 4 on")
        self.assertEqual(rows["a kernel for each op"]["ratio"], 5)
        self.assertEqual(rows["net, without graphs"]["ratio"], 2)
        self.assertEqual([(rows[f"net, {what}"]["ms"], rows[f"net, {what}"]["ratio"])
                          for what in ("done beside returned", "results read beside kept", "calls and reads beside graphs")], [(0.5, 4), (4, 2), (4, 4)])
        self.assertEqual(rows["two products, on one device"]["ratio"], 1.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
