"""Compares predictions of `sluice scale` with hand calculations from the cluster's file. Also tests the keys that
scripts rely on, the page, and the installed clusters."""

import json
import os
import re

from sluice_cli import BUILD, CliTest, main

CLUSTERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "compiler", "scale", "clusters")

# Two nodes of two accelerators, with round figures.
SMALL = {
    "format": 1,
    "name": "small",
    "nodes": 2,
    "accelerators": 2,
    "device": {"name": "toy", "kernel_time": "0us", "measured": [{"model": "lenet", "batch": 32, "step": "10ms"}]},
    "node_link": {"kind": "pcie", "bandwidth": "1GB/s", "latency": "10us"},
    "network": {"kind": "ethernet", "bandwidth": "100MB/s", "latency": "50us"},
    "all_reduce": {"algorithm": "ring", "base": "0us"},
    "overlap": 0,
    "straggler": 0,
    "contention": 0,
    "copy_bandwidth": "1000GB/s",
}
BYTES = 4 * 129068  # LeNet's gradients
COPY_MS = BYTES / 1e9


def ring_ms(replicas):
    """For LeNet's gradients in one collective: the slowest link's time plus a hop for each step."""
    bandwidth, hops = (1e9, 2 * 10e-6) if replicas == 2 else (1e8, 4 * 50e-6 + 2 * 10e-6)
    return 1e3 * (hops + 2 * (replicas - 1) / replicas * BYTES / bandwidth)


class ScaleTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        program = os.path.join(BUILD, "bin", "models", "lenet")
        self.succeed(program, "--batch", "32", "-o", "lenet.mlir")
        self.write("small.json", json.dumps(SMALL))

    def scale(self, *arguments, cluster="small.json"):
        result = self.sluice("scale", "lenet.mlir", "--cluster", cluster, *arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def report(self, *arguments, **changes):
        self.write("changed.json", json.dumps(SMALL | changes))
        return json.loads(self.scale("--json", *arguments, cluster="changed.json"))

    def test_a_replica_more_costs_what_its_collective_takes(self):
        report = self.report("--replicas", "1,2,4")
        self.assertEqual([point["replicas"] for point in report["points"]], [1, 2, 4])
        for point in report["points"]:
            replicas = point["replicas"]
            exposed = ring_ms(replicas) if replicas > 1 else 0
            step = 10 + (exposed + COPY_MS if replicas > 1 else 0)
            self.assertAlmostEqual(point["exposed_ms"], exposed, places=6)
            self.assertAlmostEqual(point["predicted_ms"], step, places=6)
            self.assertAlmostEqual(point["rows_per_second"], 32e3 * replicas / step, delta=0.01)
            self.assertAlmostEqual(point["efficiency"], 10 / step, places=6)
            self.assertEqual((point["rows"], point["global_rows"]), (32, 32 * replicas))
            self.assertEqual(point["nodes"], 1 if replicas <= 2 else 2)
        self.assertEqual([point["limit"] for point in report["points"]], ["compute", "bandwidth", "bandwidth"])

    def test_strong_scaling_divides_the_batch(self):
        report = self.report("--strong", "--batch", "10", "--replicas", "1,3,4")
        self.assertEqual(report["scaling"], "strong")
        self.assertEqual([point["rows"] for point in report["points"]], [10, 4, 3])  # the largest shards
        self.assertEqual([point["global_rows"] for point in report["points"]], [10, 10, 10])
        alone = 10 * 10 / 32
        for point in report["points"]:
            self.assertAlmostEqual(point["compute_ms"], 10 * point["rows"] / 32, places=6)
            self.assertAlmostEqual(point["efficiency"], alone / point["replicas"] / point["predicted_ms"], places=6)

    def test_small_batches_are_bound_by_their_kernels(self):
        kernels = int(re.search(r"(\d+) launches", self.report(device={"name": "toy"})["compute"])[1])
        device = SMALL["device"] | {"kernel_time": "100us"}
        report = self.report("--strong", "--replicas", "4", device=device, node_link=SMALL["node_link"] | {"bandwidth": "900GB/s"},
                             network=SMALL["network"] | {"bandwidth": "900GB/s"})
        fixed = 0.1 * kernels
        point = report["points"][0]
        self.assertAlmostEqual(point["compute_ms"], fixed + (10 - fixed) / 4, places=6)
        self.assertEqual(point["limit"], "small batch")

    def test_powers_of_two_and_the_whole_cluster_unless_asked(self):
        self.assertEqual([point["replicas"] for point in self.report(nodes=3)["points"]], [1, 2, 4, 6])

    def test_collectives_start_when_their_gradients_are_ready(self):
        report = self.report("--replicas", "2", overlap=1, all_reduce={"algorithm": "ring", "base": "0us", "bucket": "100kB"})
        collectives = report["points"][0]["collectives"]
        self.assertEqual(sum(collective["bytes"] for collective in collectives), BYTES)
        self.assertEqual(sum(collective["gradients"] for collective in collectives), 8)
        self.assertGreater(len(collectives), 1)
        free = 0
        for collective in collectives:
            self.assertAlmostEqual(collective["start_ms"], max(free, collective["ready_ms"]), places=9)
            self.assertAlmostEqual(collective["end_ms"] - collective["start_ms"], 0.02 + collective["bytes"] / 1e6, places=6)
            free = collective["end_ms"]
        ready = [collective["ready_ms"] for collective in collectives]
        self.assertEqual(ready, sorted(set(ready)))
        self.assertLess(ready[0], 9)  # of the dense layers, before the convolutions' backward work
        self.assertAlmostEqual(ready[-1], 10, places=6)
        self.assertAlmostEqual(report["points"][0]["exposed_ms"], free - 10, places=6)

    def test_stragglers_and_contention_slow_all(self):
        calm = self.report("--replicas", "4", overlap=1)["points"][0]
        rough = self.report("--replicas", "4", overlap=1, straggler=0.1, contention=0.5)["points"][0]
        self.assertAlmostEqual(rough["straggler_ms"], 1.029, delta=0.03)  # largest of four: 1.029 deviations
        hidden = rough["communication_ms"] - rough["exposed_ms"]
        self.assertAlmostEqual(rough["contention_ms"], hidden / 2, places=6)
        self.assertGreater(rough["predicted_ms"], calm["predicted_ms"])

    def test_a_device_may_be_described_or_be_the_one_compiled_for(self):
        described = {"name": "toy", "peak_flops": 1e9, "memory_bandwidth": "1000GB/s"}
        report = self.report("--replicas", "1", device=described)
        self.assertIn("at the rates of the cluster's file", report["compute"])
        twice = self.report("--replicas", "1", "--batch", "64", device=described)
        self.assertAlmostEqual(twice["points"][0]["compute_ms"] / report["points"][0]["compute_ms"], 2, delta=0.05)
        own = self.report("--replicas", "1", device={"name": "toy"})
        self.assertIn("of the devices compiled for", own["compute"])
        self.assertGreater(own["points"][0]["compute_ms"], 0)

    def test_the_table_says_what_the_report_says(self):
        report = self.report("--replicas", "1,4")
        lines = self.scale("--replicas", "1,4").splitlines()
        self.assertEqual(lines[0], "lenet, train_step of 32 rows each, on small: 2 nodes of 2 x toy")
        self.assertEqual(lines[1], "  compute: measured with 1 batch")
        self.assertEqual(lines[2], "  gradients: 129068 elements, 516 kB on the wire")
        for line, point in zip(lines[4:], report["points"], strict=True):
            fields = line.split(maxsplit=7)
            self.assertEqual(fields[:2], [str(point["replicas"]), "32"])
            self.assertAlmostEqual(float(fields[2]), point["predicted_ms"], delta=6e-4)
            self.assertAlmostEqual(float(fields[4]), 100 * point["efficiency"], delta=0.06)
            self.assertEqual(fields[7], point["limit"])

    def test_the_page_needs_nothing_else(self):
        self.assertEqual(self.scale("--html", "page.html", "-q"), "")
        with open(self.path("page.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("default-src 'none'", page)
        self.assertNotIn("{{", page)
        links = re.findall(r"(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)", page)
        self.assertEqual(links, [])
        data = re.search(r'id="report-data">(.*?)</script>', page)[1]
        self.assertEqual(json.loads(data), json.loads(self.scale("--json")))

    def test_clusters_that_come_with_it_are_read_and_say_where_each_figure_is_from(self):
        names = sorted(os.listdir(CLUSTERS))
        self.assertGreaterEqual(len(names), 5)
        for name in names:
            with self.subTest(name), open(os.path.join(CLUSTERS, name), encoding="utf-8") as file:
                cluster = json.load(file)
                self.assertEqual(cluster["name"] + ".json", name)
                sources = cluster.pop("sources")
                self.assertTrue(all(sources.values()))
                figures = {"overlap"} | {f"{part}.{field}" for part in ("device", "node_link", "network", "all_reduce")
                                         for field in cluster[part] if field not in ("name", "kind", "algorithm", "wire")}
                self.assertEqual(figures, set(sources))
                report = json.loads(self.scale("--json", cluster=os.path.join(CLUSTERS, name)))
                self.assertEqual(report["points"][-1]["replicas"], cluster["nodes"] * cluster["accelerators"])
                self.assertTrue(all(0 < point["efficiency"] <= 1 + 1e-9 for point in report["points"]))


if __name__ == "__main__":
    main()
