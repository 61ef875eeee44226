"""Invalid requests to `sluice place` and `sluice compile --placement`: a clear error that names the cause, the
documented exit code, and no output."""

import json

from sluice_cli import SMALL_MODEL, CliTest, main

USAGE, INVALID, ABSENT, MEMORY = 2, 3, 4, 5
TWO = ["small.mlir", "--devices", "cpu,sim:0"]


def place(*arguments, model="small.mlir", devices="cpu,sim:0"):
    return ["place", model, "--devices", devices, *arguments, "--save", "saved.json", "--html", "page.html"]


def link(text):
    return place("--link", text)


def capped(devices, model="small.mlir"):
    return place(model=model, devices=devices)


def kept(name):
    return place("--placement", name)


def compiled(*arguments, model="small.mlir"):
    return ["compile", model, *arguments, "-o", "program"]


# Contents of --placement, by file name.
FILES = {
    "deep.json": "[" * 1_000_000,
    "empty.json": "",
    "cut.json": '{"format": 1, "model": "small", "entry": "pre',
    "list.json": "[]",
    "format.json": {"format": 2},
    "text_format.json": {"format": "1"},
    "nothing.json": {"placement": None},
    "no_model.json": {"model": None},
    "model.json": {"model": "lenet"},
    "entry.json": {"entry": "init"},
    "group.json": {"placement": {"einsum_rel": "cpu"}},
    "far_group.json": {"placement": {"frobnicate": "cpu"}},
    "state.json": {"placement": {"w": "cpu"}},
    "device.json": {"placement": {"einsum_relu": "gpu(1)"}},
    "far_device.json": {"placement": {"einsum_relu": "frobnicate"}},
    "number.json": {"placement": {"einsum_relu": 3}},
    "pinned.json": {"placement": {"relu": "cpu"}},
    "refused.json": {"placement": {"relu": "gpu(0)"}},
    "state_cap.json": {"placement": {"state w": "sim:0"}},
}

# Arguments, exit code, parts of the message.
TABLE = [
    # Devices and caps.
    (capped("cpu,sim:0,sim:0"), USAGE, ["'sim:0' is listed twice"]),
    (capped("cpu=1GB,cpu"), USAGE, ["'cpu' is listed twice"]),
    (capped("cpu,,sim:0"), USAGE, ["'' names no device"]),
    (capped("cpu,gpu:0"), USAGE, ["'gpu:0' names no backend"]),
    (capped("cpu,simm:0"), ABSENT, ["there is no backend 'simm'"]),
    (capped("=1GB"), USAGE, ["'' names no device"]),
    (capped("cpu,sim:0="), USAGE, ["the memory of sim:0", "16GB"]),
    (capped("cpu,sim:0=16"), USAGE, ["'sim:0=16'", "with a unit"]),
    (capped("cpu,sim:0=-1GB"), USAGE, ["'sim:0=-1GB'", "no positive number of bytes"]),
    (capped("cpu,sim:0=0GB"), USAGE, ["'sim:0=0GB'", "no positive number of bytes"]),
    (capped("cpu,sim:0=999999999999TB"), USAGE, ["'sim:0=999999999999TB'", "too large"]),
    (capped("cpu,sim:0=1GB=2GB"), USAGE, ["'sim:0=1GB=2GB'"]),
    (capped("cpu=10B"), MEMORY, ["no placement fits", "cpu would need 192 bytes and may have 10"]),
    (capped("cpu=10B,sim:0=10B"), MEMORY, ["no placement fits", "all cpu: cpu would need", "all gpu(0): gpu(0) would need"]),
    (capped("cpu,sim:0=10B", "pinned.mlir"), MEMORY, ["no placement fits", "gpu(0) would need 128 bytes and may have 10"]),
    (capped("cpu,sim:0=10B") + ["--placement", "state_cap.json"], MEMORY, ["no placement fits", "gpu(0)", "may have 10"]),
    # Pins.
    (place(model="pinned.mlir", devices="cpu"), ABSENT, ["pinned.mlir:8:10", "'sluice.relu' is to run on gpu(0)", "target cpu"]),
    (place(model="pinned_far.mlir"), ABSENT, ["pinned_far.mlir:8:10", "gpu(7)", "target cpu,sim:0"]),
    (place(model="pinned_state.mlir"), ABSENT, ["pinned_state.mlir:4", "state 'w' is to live on gpu(7)"]),
    (place(model="pinned.mlir", devices="cpu,null:0"), ABSENT, ["no placement is possible", "relu", "null has memory but no kernels"]),
    (place(model="pinned_number.mlir"), INVALID, ["pinned_number.mlir:8:10", "'sluice.pin' must be the name of a device"]),
    # Links.
    (link("sim:0"), USAGE, ["'sim:0'", "sim:0=12GB/s,5us"]),
    (link("sim:0="), USAGE, ["'sim:0='", "no device or no speed"]),
    (link("=1GB/s"), USAGE, ["'=1GB/s'", "no device or no speed"]),
    (link("sim:0=-1GB/s"), USAGE, ["'-1GB/s'", "no positive number of bytes a second"]),
    (link("sim:0=0GB/s"), USAGE, ["'0GB/s'", "no positive number of bytes a second"]),
    (link("sim:0=12GB"), USAGE, ["'12GB'", "no positive number of bytes a second"]),
    (link("sim:0=12"), USAGE, ["'12'", "with a unit"]),
    (link("sim:0=fast"), USAGE, ["'fast'", "no positive number of bytes a second"]),
    (link("sim:0=nanGB/s"), USAGE, ["'nanGB/s'"]),
    (link("sim:0=infGB/s"), USAGE, ["'infGB/s'"]),
    (link("sim:0=1.2.3GB/s"), USAGE, ["'1.2.3GB/s'"]),
    (link("sim:0=0.1B/s"), USAGE, ["'0.1B/s'"]),
    (link("sim:0=99999999999999TB/s"), USAGE, ["'99999999999999TB/s'", "too large"]),
    (link("sim:0=1GB/s,"), USAGE, ["the latency is missing"]),
    (link("sim:0=1GB/s,5"), USAGE, ["'5' is no time"]),
    (link("sim:0=1GB/s,-5us"), USAGE, ["'-5us' is no time"]),
    (link("sim:0=1GB/s,99999999s"), USAGE, ["'99999999s'", "too long"]),
    (link("sim:0=1GB/s,5us,6us"), USAGE, ["'5us,6us' is no time"]),
    (link("sim:1=1GB/s"), ABSENT, ["a link is given for 'sim:1'", "target cpu,sim:0"]),
    (link("cpu=1GB/s"), USAGE, ["a link is between the host and an accelerator"]),
    (place("--link", "sim:0=1GB/s", "--link", "sim:0=2GB/s"), USAGE, ["link of sim:0 is given twice"]),
    (place("--link"), USAGE, ["--link: requires a value: LINK"]),
    # Entry points and ops.
    (place("--place-entry", "predic"), USAGE, ["no entry point 'predic'", "did you mean 'predict'?", "there are predict, init"]),
    (place("--explain", "einsumm"), USAGE, ["unknown group, op, state or line 'einsumm'", "did you mean 'einsum'?"]),
    (place("--explain", "frobnicate"), USAGE, ["unknown group, op, state or line 'frobnicate' in predict"]),
    # Decisions to keep.
    (kept(""), USAGE, ["--placement: expected auto|FILE"]),
    (kept("absent.json"), INVALID, ["absent.json: cannot open: No such file or directory"]),
    (kept("."), INVALID, [".: cannot read: Is a directory"]),
    (kept("empty.json"), INVALID, ["empty.json: not valid JSON: ", "unexpected end of input"]),
    (kept("cut.json"), INVALID, ["cut.json: not valid JSON: parse error at line 1, column"]),
    (kept("deep.json"), INVALID, ["deep.json: nested deeper than 32"]),
    (kept("list.json"), INVALID, ["list.json: is no placement"]),
    (kept("format.json"), INVALID, ["format.json: is no placement"]),
    (kept("text_format.json"), INVALID, ["text_format.json: is no placement"]),
    (kept("nothing.json"), INVALID, ["nothing.json: is no placement"]),
    (kept("no_model.json"), INVALID, ["no_model.json: is no placement"]),
    (kept("model.json"), INVALID, ["model.json: is for the model 'lenet', and this is 'small'"]),
    (kept("entry.json"), INVALID, ["entry.json: is for the entry point 'init', and predict is to be placed"]),
    (kept("group.json"), INVALID, ["'einsum_rel' is no group of predict; did you mean 'einsum_relu'?"]),
    (kept("far_group.json"), INVALID, ["'frobnicate' is no group of predict"]),
    (kept("state.json"), INVALID, ["'w' is no group of predict; did you mean 'state w'?"]),
    (kept("device.json"), ABSENT, ["'einsum_relu' is to go to 'gpu(1)'", "target cpu,sim:0", "did you mean 'gpu(0)'?"]),
    (kept("far_device.json"), ABSENT, ["'einsum_relu' is to go to 'frobnicate'", "target cpu,sim:0"]),
    (kept("number.json"), INVALID, ["'einsum_relu' must be given a device's name"]),
    (place("--placement", "pinned.json", model="pinned.mlir"), INVALID, ["'relu' cannot go to cpu: the model has it on gpu(0) (sim:0)"]),
    (place("--placement", "refused.json", devices="cpu,null:0"), ABSENT, ["'relu' cannot go to gpu(0) (null:0)", "no kernels"]),
    # Other files.
    (place("--measured", "absent.json"), INVALID, ["absent.json: cannot open: No such file or directory"]),
    (place("--measured", "cut.json"), INVALID, ["cut.json: not valid JSON: parse error at line 1, column"]),
    (place("--measured", "deep.json"), INVALID, ["deep.json: nested deeper than 32"]),
    (place("--measured", "format.json"), INVALID, ["format.json: contains no schedule", "bench --json"]),
    (["place", *TWO, "--save", "no/such/s.json", "--html", "page.html"], INVALID, ["no/such/s.json: cannot create: No such file or directory"]),
    (["place", *TWO, "--save", "saved.json", "--html", "no/such/p.html"], INVALID, ["no/such/p.html: cannot create: No such file or directory"]),
    (["place", *TWO, "--save", ".", "--html", "page.html"], INVALID, [".: cannot write: Is a directory"]),
    # Models.
    (place(model="absent.mlir"), INVALID, ["absent.mlir: cannot open: No such file or directory"]),
    (place(model="fused.mlir"), USAGE, ["cannot place a dump of phase 'fused'", "place the original model"]),
    (compiled("--placement", "auto", model="fused.mlir"), USAGE, ["cannot place a dump of phase 'fused'", "place the original model"]),
    (place(model="huge_state.mlir"), INVALID, ["huge_state.mlir:4", "more than 2^40 elements: [30000000, 2000000]"]),
    (place(model="empty_state.mlir"), INVALID, ["empty_state.mlir:4", "an empty dimension"]),
    (place(model="huge_rows.mlir"), INVALID, ["huge_rows.mlir:3", "capacity must be a number of rows"]),
    # compile.
    (compiled("--devices", "sim:0=10B"), MEMORY, ["cannot fit the model into gpu(0) (sim:0): its planned peak memory is ", " bytes, and --devices allows 10", "--placement auto"]),
    (compiled("--devices", "cpu=1GB,sim=10B", "--copies", "insert", model="pinned.mlir"), MEMORY, ["cannot fit the model into gpu(0) (sim:0)"]),
    (compiled("--devices", "cpu=1GB,sim:0-1=10B", "--copies", "insert", model="pinned.mlir"), MEMORY, ["cannot fit the model into gpu(0) (sim:0)"]),
    (compiled("--devices", "cpu=10B", "--devices", "sim:0"), MEMORY, ["cannot fit the model into cpu"]),
    (["show", "small.mlir", "--devices", "cpu,sim:0=1GB"], USAGE, ["cannot check the memory limits in --devices", "after 'model'", "leave out the limits"]),
    (["show", "small.mlir", "--devices", "sim:0=10B", "--phase", "planned"], MEMORY, ["cannot fit the model into gpu(0) (sim:0)"]),
    (["verify", "small.mlir", "--devices", "sim:0=10B"], MEMORY, ["cannot fit the model into gpu(0) (sim:0)"]),
    (compiled("--devices", "cpu,sim:0", "--link", "sim:0=1GB/s"), USAGE, ["--link applies to automatic placement", "--placement auto"]),
    (compiled("--place-entry", "predict"), USAGE, ["--place-entry applies to automatic placement", "--placement auto"]),
    (compiled("--devices", "cpu=10B", "--placement", "auto"), MEMORY, ["no placement fits"]),
    (compiled("--devices", "cpu,sim:0", "--placement", "group.json"), INVALID, ["did you mean 'einsum_relu'?"]),
    (compiled("--devices", "cpu,sim:0", "--placement", "absent.json"), INVALID, ["absent.json: cannot open: No such file or directory"]),
    (compiled("--devices", "cpu", "--placement", "device.json"), ABSENT, ["'gpu(1)', which is no device of the target cpu"]),
]

CALIBRATIONS = {
    "empty": "",
    "not JSON": "{",
    "a list": "[]",
    "of another format": '{"format": 99, "clocks": []}',
    "without clocks": '{"format": 1}',
    "with a rate that is text": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "links": [], '
    '"devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": "many", "bytes": 1, "seconds": 1}]}}]}]}',
    "with a kernel of no time": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "links": [], '
    '"devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": 1, "bytes": 1, "seconds": 0}]}}]}]}',
    "with a kernel of endless time": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "links": [], '
    '"devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": 1, "bytes": 1, "seconds": 1e308}]}}]}]}',
    "with a kernel of endless work": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "links": [], '
    '"devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": 1e308, "bytes": 1, "seconds": 1}]}}]}]}',
    "with a kernel of next to no time": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "links": [], '
    '"devices": [{"device": "cpu", "kinds": {"einsum": [{"flops": 1, "bytes": 1, "seconds": 5e-324}]}}]}]}',
    "with a link of endless latency": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "devices": [], '
    '"links": [{"from": "cpu", "to": "sim:0", "bytes_per_second": 1, "latency_s": 1e308}]}]}',
    "nested without end": "[" * 1_000_000,
    "with a link of negative speed": '{"format": 1, "clocks": [{"clock": "cpu", "machine": "m", "devices": [], '
    '"links": [{"from": "cpu", "to": "sim:0", "bytes_per_second": -1, "latency_s": 0}]}]}',
}


class PlaceUsageTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        for name, content in FILES.items():
            if isinstance(content, dict):
                content = json.dumps({"format": 1, "model": "small", "entry": "predict", "placement": {}} | content)
            self.write(name, content)
        self.write_models()

    def write_models(self):
        def on_relu(attribute):
            return SMALL_MODEL.replace("relu %p", "relu %p {" + attribute + "}")

        self.write("pinned.mlir", on_relu('sluice.pin = "acc0"'))
        self.write("pinned_far.mlir", on_relu('sluice.pin = "acc7"'))
        self.write("pinned_number.mlir", on_relu("sluice.pin = 7"))
        initial = '<"constant", 1.0 : f64>'
        physical = initial + ' {physical = tensor<3x2xf32, #sluice.at<device = "acc7">>}'
        self.write("pinned_state.mlir", SMALL_MODEL.replace(initial, physical))
        huge = SMALL_MODEL.replace("3x2x", "30000000x2000000x").replace("?x3x", "?x30000000x").replace("?x2x", "?x2000000x")
        self.write("huge_state.mlir", huge)
        self.write("empty_state.mlir", SMALL_MODEL.replace("3x2x", "0x2x").replace("?x3x", "?x0x"))
        self.write("huge_rows.mlir", SMALL_MODEL.replace("capacity 4", "capacity 4611686018427387904"))
        self.write("fused.mlir", SMALL_MODEL.replace('phase "model"', 'phase "fused"'))

    def expect_refused(self, arguments, code, parts):
        before = self.files()
        result = self.sluice(*arguments, env=self.environment)
        self.assertEqual(result.returncode, code, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(self.files(), before)

    def test_each_is_refused(self):
        for arguments, code, parts in TABLE:
            with self.subTest(" ".join(arguments)):
                self.expect_refused(arguments, code, parts)

    def test_a_damaged_calibration_is_named(self):
        for what, content in CALIBRATIONS.items():
            with self.subTest(what):
                self.write("calibration.json", content)
                self.expect_refused(place(), INVALID, ["calibration.json: ", "sluice devices --measure"])


if __name__ == "__main__":
    main()
