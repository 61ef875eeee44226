"""Places LeNet for three speeds of a link, on a machine whose accelerator is described as ten times as fast as its
host. placement_sweep_test.py SWEEP BUILD"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SWEEP, BUILD = map(os.path.abspath, (sys.argv.pop(1), sys.argv.pop(1)))
BIN = os.path.join(BUILD, "bin")
BACKENDS = os.path.join(BUILD, "lib", "sluice", "backends")


def run(*command, **environment):
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def calibration():
    """A calibration of this machine by the simulator's clock, with one kernel bound by arithmetic and one by memory."""
    devices = json.loads(run(os.path.join(BIN, "sluice"), "devices", "--json", SLUICE_BACKEND_PATH=BACKENDS))["devices"]
    host = next(device for device in devices if device["backend"] == "cpu")

    def kernels(seconds):
        samples = [{"flops": 1e9, "bytes": 1e6, "seconds": seconds}, {"flops": 1e6, "bytes": 1e8, "seconds": seconds}]
        return {"any": samples}

    clock = {
        "clock": "sim",
        "machine": f"{host['name']}, {host['cores']} threads",
        "devices": [{"device": "cpu", "kinds": kernels(0.01)}, {"device": "sim:0", "kinds": kernels(0.001)}],
        "links": [],
    }
    return {"format": 1, "clocks": [clock]}


class CalibratedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.environment = {"SLUICE_BACKEND_PATH": BACKENDS, "SLUICE_CALIBRATION": cls.path("calibration.json")}
        with open(cls.path("calibration.json"), "w", encoding="utf-8") as out:
            json.dump(calibration(), out)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)


class CapTest(CalibratedTest):
    def test_more_memory_is_no_slower(self):
        run(os.path.join(BIN, "models", "lenet"), "--batch", "64", "-o", self.path("lenet.mlir"))
        times = []
        for cap in ("2MB", "4MB", "6MB"):
            placed = run(os.path.join(BIN, "sluice"), "place", self.path("lenet.mlir"), "--devices", "cpu,sim:0=" + cap,
                         "--link", "sim:0=100GB/s,5us", "--json", **self.environment)
            times.append(json.loads(placed)["predicted_ms"])
        self.assertEqual(times, sorted(times, reverse=True))


class PlacementSweepTest(CalibratedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        plot = cls.path("plot.svg")
        printed = run(SWEEP, "--build", BUILD, "--model", "lenet", "--from", "100kB/s", "--to", "100GB/s", "--points", "3",
                      "--precision", "0.5", "--no-cuts", "--plot", plot, "--json", **cls.environment)
        cls.free, cls.capped = json.loads(printed)["sweeps"]
        cls.plot = xml.etree.ElementTree.parse(plot).getroot()

    def test_a_slow_link_keeps_everything_on_the_host(self):
        for sweep in (self.free, self.capped):
            slowest = sweep["points"][0]
            self.assertEqual(slowest["choice"], "all cpu")
            self.assertEqual(slowest["groups"]["sim:0"], 0)
            self.assertEqual(slowest["state_bytes"]["sim:0"], 0)
            self.assertEqual(slowest["copied_bytes"], 0)

    def test_a_fast_link_leaves_the_host_what_it_can_do_meanwhile(self):
        fastest = self.free["points"][-1]
        self.assertGreater(fastest["groups"]["sim:0"], 2 * fastest["groups"]["cpu"])
        self.assertLess(fastest["state_bytes"]["cpu"], 0.05 * fastest["state_bytes"]["sim:0"])
        self.assertLessEqual(fastest["predicted_ms"], fastest["lines_ms"]["all sim:0"])
        self.assertGreaterEqual(fastest["copied_bytes"], 256 * (28 * 28 + 4))  # images and labels

    def test_a_cap_splits_the_model(self):
        fastest = self.capped["points"][-1]
        self.assertEqual(fastest["choice"], "split")
        self.assertIsNone(fastest["lines_ms"]["all sim:0"])

    def test_no_choice_is_slower_than_everything_on_one_device(self):
        for sweep in (self.free, self.capped):
            for point in sweep["points"]:
                whole = [ms for ms in point["lines_ms"].values() if ms is not None]
                self.assertLessEqual(point["predicted_ms"], min(whole) * (1 + 1e-9))

    def test_a_faster_link_is_no_slower(self):
        for sweep in (self.free, self.capped):
            times = [point["predicted_ms"] for point in sweep["points"]]
            for slower, faster in zip(times, times[1:]):
                self.assertLessEqual(faster, slower * (1 + 1e-9))  # times of different placements of equal length

    def test_crossovers_lie_between_what_they_part(self):
        crossovers = self.free["crossovers"]
        self.assertEqual(crossovers[0]["from"], "all cpu")
        for before, after in zip(crossovers, crossovers[1:]):
            self.assertEqual(before["to"], after["from"])
            self.assertLess(before["bytes_per_second"], after["bytes_per_second"])
        self.assertNotEqual(crossovers[-1]["to"], "all cpu")
        for crossover in crossovers:
            self.assertTrue(1e5 < crossover["bytes_per_second"] < 1e11)

    def test_the_plot_has_a_panel_for_each_sweep(self):
        headings = [text.text for text in self.plot.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "heading"]
        self.assertEqual(len(headings), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
