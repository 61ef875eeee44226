"""The list of `sluice devices`: the host, the backends of the installation and of SLUICE_BACKEND_PATH, and the
rejected files."""

import json
import os
import shutil

from sluice_cli import BUILD, CliTest, main

BAD = {
    "WrongMajor": "version 3.8, and this Sluice needs 2.x",
    "LongTable": "says that it has",
    "LyingHalf": "its compile half says that it has 4096 bytes",
    "NoSymbol": "does not export sluice_backend_query",
    "Crash": "crashed in its first call",
}


class DevicesTest(CliTest):
    def devices(self, *folders, text=False):
        environment = dict(os.environ, SLUICE_BACKEND_PATH=":".join(folders))
        result = self.sluice("devices", *([] if text else ["--json"]), env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout if text else json.loads(result.stdout)

    def plugin(self, name):
        return os.path.join(BUILD, "tests", "backends", name)

    def test_checklist_08_a_device_tells_what_it_is(self):
        for device in self.devices()["devices"]:
            if device["backend"] not in ("cpu", "sim"):
                continue
            with self.subTest(device["device"]):
                self.assertTrue(device["name"])
                for field in ("cores", "clock_hz", "peak_flops", "memory_bytes"):
                    self.assertGreater(device[field], 0, field)
                self.assertLess(device["used_bytes"], device["memory_bytes"])

    def test_the_host_is_first_and_virtual_accelerators_follow(self):
        devices = [device["device"] for device in self.devices()["devices"]]
        self.assertEqual(devices[0], "cpu:0")
        self.assertEqual([name for name in devices if name.startswith("sim")], ["sim:0", "sim:1", "sim:2", "sim:3"])

    def test_both_halves_of_a_backend_are_named(self):
        backends = {backend["name"]: backend for backend in self.devices()["backends"]}
        self.assertEqual(backends["sim"]["compile"], os.path.join(BUILD, "lib/sluice/backends/sluice_sim_compile.so"))
        self.assertEqual(backends["sim"]["run"], os.path.join(BUILD, "lib/sluice/backends/sluice_sim_run.so"))
        self.assertIsNone(backends["sim"]["compile_unavailable"])

    def test_bad_plugins_are_refused_and_good_ones_go_on(self):
        listed = self.devices(*map(self.plugin, BAD), self.plugin("Good"))
        refused = {os.path.basename(file["file"]): file["reason"] for file in listed["refused"]}
        for name, reason in BAD.items():
            with self.subTest(name):
                self.assertIn(reason, refused[name + ".so"])
        self.assertIn("testing", [backend["name"] for backend in listed["backends"]])

    def test_a_truncated_plugin_is_refused(self):
        good = os.path.join(self.plugin("Good"), "Good.so")
        shutil.copy(good, self.path("page.so"))
        os.truncate(self.path("page.so"), 4096)  # one page of several
        self.assertEqual(len(self.devices(self.folder)["refused"]), 1)

    def test_people_read_the_same(self):
        text = self.devices(self.plugin("Crash"), "/nowhere", text=True)
        self.assertRegex(text, r"(?m)^cpu:0 +\S.* cores? at .*GHz, .*FLOP/s, .*B of memory, .* of it used$")
        self.assertRegex(text, r"(?m)^sim:3 ")
        self.assertRegex(text, r"(?m)^refused +.*Crash\.so\n +crashed in its first call")
        self.assertIn("there is no such folder", text)

    def test_compiling_goes_on_beside_bad_plugins(self):
        environment = dict(os.environ, SLUICE_BACKEND_PATH=self.plugin("Crash"))
        self.assertEqual(self.sluice("compile", "small.mlir", "-o", "small", env=environment).returncode, 0)


if __name__ == "__main__":
    main()
