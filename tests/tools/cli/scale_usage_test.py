"""Invalid requests to `sluice scale`: a clear error that names the file, the field and the value, the documented
exit code, and no output."""

import json
import os

from sluice_cli import BUILD, CliTest, main

USAGE, INVALID, ABSENT = 2, 3, 4

GOOD = {
    "format": 1,
    "name": "good",
    "nodes": 2,
    "accelerators": 2,
    "device": {"name": "toy", "peak_flops": 1e12, "memory_bandwidth": "100GB/s", "kernel_time": "5us"},
    "node_link": {"kind": "pcie", "bandwidth": "10GB/s", "latency": "5us"},
    "network": {"kind": "ethernet", "bandwidth": "1GB/s", "latency": "50us"},
    "all_reduce": {"algorithm": "ring", "base": "5us"},
    "overlap": 1,
}
GONE = object()


def changed(path, value):
    """The valid cluster with one field changed; `GONE` removes it."""
    cluster = json.loads(json.dumps(GOOD))
    *parents, field = path.split(".")
    inner = cluster
    for parent in parents:
        inner = inner[parent]
    if value is GONE:
        del inner[field]
    else:
        inner[field] = value
    return cluster


STEP = {"model": "lenet", "batch": 8, "step": "1ms"}

# Errors in a cluster, and the expected message after the file's name.
BAD = [
    ("", ["not valid JSON: ", "unexpected end of input"]),
    ("{", ["parse error at line 1, column 2", "object key"]),
    ("[" * 1_000_000, ["nested deeper than 32"]),
    ('{"format": 1, "format": 1}', ["the key 'format' appears twice in one object"]),
    ([], ["the file is [], not an object"]),
    (7, ["the file is 7, not an object"]),
    (changed("format", GONE), ["'format' is missing"]),
    (changed("format", 2), ["'format' is 2, not a whole number from 1 to 1"]),
    (changed("format", "1"), ["'format' is \"1\", not a whole number"]),
    (changed("name", GONE), ["'name' is missing"]),
    (changed("name", 7), ["'name' is 7, not a text"]),
    (changed("name", ""), ["'name' is \"\", not a text"]),
    (changed("nodes", GONE), ["'nodes' is missing"]),
    (changed("nodes", 0), ["'nodes' is 0, not a whole number from 1 to 1000000"]),
    (changed("nodes", -8), ["'nodes' is -8"]),
    (changed("nodes", 2.5), ["'nodes' is 2.5, not a whole number"]),
    (changed("nodes", 10**7), ["'nodes' is 10000000"]),
    (changed("nodes", 10**30), ["'nodes' is 1"]),
    (changed("nodes", "many"), ["'nodes' is \"many\""]),
    (changed("nodes", None), ["'nodes' is null"]),
    (changed("accelerators", 0), ["'accelerators' is 0, not a whole number from 1 to 1024"]),
    (changed("accelerators", 1025), ["'accelerators' is 1025"]),
    (changed("acelerators", 2), ["'acelerators' is no field; did you mean 'accelerators'?"]),
    (changed("frobnicate", 2), ["'frobnicate' is no field"]),
    (changed("device", GONE), ["'device' is missing"]),
    (changed("device", []), ["'device' is [], not an object"]),
    (changed("device.name", GONE), ["'device.name' is missing"]),
    (changed("device.peak_flops", GONE), ["'device.peak_flops' is missing"]),
    (changed("device.memory_bandwidth", GONE), ["'device.memory_bandwidth' is missing"]),
    (changed("device.peak_flops", 0), ["'device.peak_flops' is 0, not a number from 1 to 1e+18"]),
    (changed("device.peak_flops", -1e12), ["'device.peak_flops' is -1"]),
    (changed("device.peak_flops", 1e19), ["'device.peak_flops' is 1e+19"]),
    (changed("device.peak_flops", "1e12"), ["'device.peak_flops' is \"1e12\", not a number"]),
    (changed("device.efficiency", 0), ["'device.efficiency' is 0, not a number from 0.001 to 1"]),
    (changed("device.efficiency", 1.5), ["'device.efficiency' is 1.5"]),
    (changed("device.memory_bandwidth", "100"), ["'device.memory_bandwidth' is \"100\"", "with a unit", "\"300GB/s\""]),
    (changed("device.memory_bandwidth", 100), ["'device.memory_bandwidth' is 100"]),
    (changed("device.memory_bandwidth", "-1GB/s"), ["'device.memory_bandwidth' is \"-1GB/s\""]),
    (changed("device.memory_bandwidth", "0GB/s"), ["'device.memory_bandwidth' is \"0GB/s\""]),
    (changed("device.memory_bandwidth", "99999999999TB/s"), ["is \"99999999999TB/s\"", "out of range"]),
    (changed("device.kernel_time", "5"), ["'device.kernel_time' is \"5\", not a time with a unit"]),
    (changed("device.kernel_time", "99999999s"), ["'device.kernel_time' is \"99999999s\""]),
    (changed("device.kernal_time", "5us"), ["'device.kernal_time' is no field; did you mean 'kernel_time'?"]),
    (changed("device.measured", {}), ["'device.measured' is {}, not a list"]),
    (changed("device.measured", [7]), ["'device.measured[0]' is 7, not an object"]),
    (changed("device.measured", [STEP | {"batch": 0}]), ["'device.measured[0].batch' is 0"]),
    (changed("device.measured", [STEP | {"step": "0us"}]), ["'device.measured[0].step' is 0, and no step takes no time"]),
    (changed("device.measured", [STEP | {"step": 5}]), ["'device.measured[0].step' is 5, not a time"]),
    (changed("device.measured", [STEP, STEP]), ["'device.measured[1].batch' is 8 twice for lenet"]),
    (changed("device.measured", [STEP | {"rows": 8}]), ["'device.measured[0].rows' is no field"]),
    (changed("node_link", GONE), ["'node_link' is missing"]),
    (changed("network", GONE), ["'network' is missing"]),
    (changed("network", "fast"), ["'network' is \"fast\", not an object"]),
    (changed("network.kind", GONE), ["'network.kind' is missing"]),
    (changed("network.bandwidth", "1GB"), ["'network.bandwidth' is \"1GB\""]),
    (changed("network.bandwidth", "nanGB/s"), ["'network.bandwidth' is \"nanGB/s\""]),
    (changed("network.latency", "-5us"), ["'network.latency' is \"-5us\", not a time"]),
    (changed("network.latency", GONE), ["'network.latency' is missing"]),
    (changed("network.per_node", 0), ["'network.per_node' is 0, not a whole number from 1 to 1024"]),
    (changed("network.speed", "1GB/s"), ["'network.speed' is no field"]),
    (changed("all_reduce", GONE), ["'all_reduce' is missing"]),
    (changed("all_reduce.algorithm", "rings"), ["'all_reduce.algorithm' is \"rings\", none of fastest, ring, tree, hierarchical", "'ring'?"]),
    (changed("all_reduce.algorithm", 1), ["'all_reduce.algorithm' is 1"]),
    (changed("all_reduce.base", GONE), ["'all_reduce.base' is missing"]),
    (changed("all_reduce.bucket", "25"), ["'all_reduce.bucket' is \"25\", not a positive number of bytes with a unit"]),
    (changed("all_reduce.bucket", "0MiB"), ["'all_reduce.bucket' is \"0MiB\""]),
    (changed("all_reduce.wire", "f8"), ["'all_reduce.wire' is \"f8\", none of f32, f16, bf16"]),
    (changed("overlap", GONE), ["'overlap' is missing"]),
    (changed("overlap", 1.1), ["'overlap' is 1.1", "not a number from 0 to 1"]),
    (changed("overlap", True), ["'overlap' is true"]),
    (changed("straggler", -0.1), ["'straggler' is -0.1"]),
    (changed("contention", 11), ["'contention' is 11, not a number from 0 to 10"]),
    (changed("copy_bandwidth", "fast"), ["'copy_bandwidth' is \"fast\""]),
    (changed("sources", 7), ["'sources' is 7, not an object"]),
    (changed("sources", {"overlap": 7}), ["'sources.overlap' is 7, not a text"]),
    (changed("name", "x" * 10_000 + "\u0000") | {"nodes": "y" * 10_000}, ["'nodes' is \"yyyy", "..., not a whole number"]),
]

# Arguments after the model and the valid cluster.
REFUSED = [
    (["--replicas", "0"], ["--replicas", "'0' is not a number of replicas"]),
    (["--replicas", "-2"], ["'-2' is not a number of replicas"]),
    (["--replicas", "two"], ["'two' is not a number of replicas"]),
    (["--replicas", ""], ["--replicas"]),
    (["--replicas", "1,,4"], ["'' is not a number of replicas"]),
    (["--replicas", "1.5"], ["'1.5' is not a number of replicas"]),
    (["--replicas", "99999999999999999999"], ["is not a number of replicas"]),
    (["--replicas", "4,2"], ["each number must be larger than the one before"]),
    (["--replicas", "2,2"], ["each number must be larger than the one before"]),
    (["--replicas", "8"], ["8 replicas: good has 4 accelerators"]),
    (["--batch", "0"], ["--batch"]),
    (["--batch", "-1"], ["--batch"]),
    (["--batch", "99999999999"], ["--batch"]),
    (["--strong", "--weak"], ["cannot combine --strong with --weak; give one of them"]),
    (["--clusters", "x"], ["unknown option '--clusters'; did you mean '--cluster'?"]),
    (["--frobnicate"], ["unknown option '--frobnicate'"]),
    (["--precision", "f8"], ["--precision: 'f8' is none of f32, bf16, f16"]),
]


class ScaleUsageTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "8", "-o", "lenet.mlir")
        self.write("good.json", json.dumps(GOOD))

    def expect_refused(self, arguments, code, parts):
        before = self.files()
        result = self.sluice("scale", *arguments, env=self.environment)
        self.assertEqual(result.returncode, code, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(self.files(), before)

    def test_the_good_one_is_good(self):
        result = self.sluice("scale", "lenet.mlir", "--cluster", "good.json", env=self.environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_bad_clusters(self):
        for cluster, parts in BAD:
            with self.subTest(parts[0]):
                self.write("bad.json", cluster if isinstance(cluster, str) else json.dumps(cluster))
                self.expect_refused(["lenet.mlir", "--cluster", "bad.json", "--html", "page.html"], INVALID, ["bad.json: ", *parts])

    def test_bad_requests(self):
        for arguments, parts in REFUSED:
            with self.subTest(" ".join(arguments)):
                self.expect_refused(["lenet.mlir", "--cluster", "good.json", "--html", "page.html", *arguments], USAGE, parts)

    def test_files_that_are_not_there(self):
        missing = "cannot open: No such file or directory"
        self.expect_refused(["lenet.mlir", "--cluster", "absent.json"], INVALID, ["absent.json: " + missing])
        self.expect_refused(["lenet.mlir", "--cluster", "."], INVALID, [".: cannot read: Is a directory"])
        self.expect_refused(["absent.mlir", "--cluster", "good.json"], INVALID, ["absent.mlir: " + missing])
        self.expect_refused(["lenet.mlir"], USAGE, ["--cluster is required"])
        self.expect_refused(["lenet.mlir", "--cluster", "good.json", "--html", "no/such/p.html"], INVALID, ["no/such/p.html: cannot create"])
        self.expect_refused(["lenet.mlir", "--cluster", "good.json", "--devices", "simm:0"], ABSENT, ["there is no backend 'simm'"])

    def test_a_model_without_training_has_nothing_to_reduce(self):
        self.expect_refused(["small.mlir", "--cluster", "good.json"], USAGE, ["small has no train_step to replicate", "predict, init"])

    def test_errors_are_objects_with_json(self):
        result = self.sluice("scale", "lenet.mlir", "--cluster", "absent.json", "--json", env=self.environment)
        self.assertEqual(result.returncode, INVALID)
        self.assertEqual(json.loads(result.stdout)["code"], INVALID)


if __name__ == "__main__":
    main()
