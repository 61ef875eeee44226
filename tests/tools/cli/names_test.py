"""Names of inputs, outputs and parameters as other frameworks choose them: through the compiler, files and options."""

import json
import os
import struct
import zipfile

from sluice_cli import CliTest, main

INVALID, USAGE = 3, 2
NAMES = ["387", "serving_default_input_2:0", "/encoder/out", "x y", "a", "a=b", "a=@b", "..", "../../up", "-", "--json", "@w",
         'qu"ote \\ %d', "it's", "ключ", "loss", "n" * 1024]
PARAMETERS = ["onnx::MatMul_123", "/encoder/weight", "..", "--", 'we"ight\\', "add", "вес", "*"]


def quoted(name):
    """The name as a string of the IR."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def model(names, parameters):
    """Outputs 2 x, each with the name of its input; to the first ones a parameter is added."""
    lines = ["module @names {", 'sluice.model "names" format 2 phase "model" capacity 4']
    lines += [f'sluice.state parameter @{quoted(name)} : tensor<f32> = <"constant", 0.5 : f64>' for name in parameters]
    arguments = ", ".join(f"%x{i}: tensor<?x2xf32>" for i in range(len(names)))
    lines += [f"sluice.graph [{', '.join(map(quoted, names))}] ({arguments}) {{"]
    for i, name in enumerate(names):
        lines += [f"%t{i} = sluice.add %x{i}, %x{i} : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>"]
        if i < len(parameters):
            lines += [f"%w{i} = sluice.get @{quoted(parameters[i])} : tensor<f32>",
                      f"%e{i} = sluice.expand %w{i} {{dims = array<i64>, shape = array<i64: ?, 2>}} : (tensor<f32>) -> tensor<?x2xf32>",
                      f"%y{i} = sluice.add %t{i}, %e{i} : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>"]
        lines += [f"sluice.output {quoted(name)}, %{'y' if i < len(parameters) else 't'}{i} : tensor<?x2xf32>"]
    return "\n".join([*lines, "}", "}"])


class NamesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("names.mlir", model(NAMES, PARAMETERS))

    def compiled(self, *flags):
        result = self.sluice("compile", "names.mlir", "-q", "-o", "names", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path("names")

    def expected(self, i, weights):
        return [2 * i + weights[i] if i < len(weights) else 2 * i, 2 * i + 2 + (weights[i] if i < len(weights) else 0)]

    def test_values_go_by_their_names(self):
        program = self.compiled()
        before = self.files()
        weights = [i / 4 for i in range(len(PARAMETERS))]
        header = json.dumps({name: {"dtype": "F32", "shape": [], "data_offsets": [4 * i, 4 * i + 4]}
                             for i, name in enumerate(PARAMETERS)}).encode()
        with open(self.path("w.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(weights)}f", *weights))
        inputs = []
        for i, name in enumerate(NAMES):
            self.write_npy(f"in{i}.npy", "<f4", (1, 2), struct.pack("<2f", i, i + 1))
            inputs.append(f"--input={name}=@in{i}.npy")
        out = json.loads(self.succeed(program, "predict", "--json", "--weights", "w.safetensors", *inputs))
        for i, name in enumerate(NAMES):
            self.assertEqual(out["outputs"][name]["values"], self.expected(i, weights), name)
        outputs = [f"--output={name}=@out{i}.npy" for i, name in enumerate(NAMES)]
        self.succeed(program, "predict", "--weights", "w.safetensors", *inputs, *outputs)
        for i, name in enumerate(NAMES):
            with open(self.path(f"out{i}.npy"), "rb") as file:
                self.assertEqual(list(struct.unpack("<2f", file.read()[-8:])), self.expected(i, weights), name)
        made = {f"{kind}{i}.npy" for kind in ("in", "out") for i in range(len(NAMES))} | {"w.safetensors"}
        self.assertEqual(set(self.files()), set(before) | made)
        self.assertFalse(os.path.exists(self.path("../up")))

    def test_every_command_takes_them(self):
        program = self.compiled("--dump-ir", "dump")
        info = json.loads(self.succeed(program, "info", "--json"))
        predict = next(entry for entry in info["entries"] if entry["name"] == "predict")
        self.assertEqual([value["name"] for value in predict["inputs"]], NAMES)
        self.assertEqual([value["name"] for value in predict["outputs"]], NAMES)
        self.assertEqual([state["name"] for state in info["states"]], PARAMETERS)
        self.assertIn("serving_default_input_2:0: f32", self.succeed(program, "info"))
        self.succeed(program, "bench", "--entry", "predict", "--seconds", "0", "--trace", "trace.json")
        with open(self.path("trace.json"), encoding="utf-8") as file:
            json.load(file)
        for command in (("verify", "names.mlir"), ("show", "names.mlir", "--phase", "lowered"),
                        ("compile", "names.mlir", "--devices", "cpu,sim:0", "-o", "sim"),
                        ("place", "names.mlir", "--devices", "cpu,sim:0", "--link", "sim:0=1GB/s,1us", "--save", "placed.json")):
            result = self.sluice(*command, env=self.placement_environment())
            self.assertEqual(result.returncode, 0, result.stderr)
        result = self.sluice("compile", "names.mlir", "-q", "--devices", "cpu,sim:0", "--placement", "placed.json", "-o", "placed",
                             env=self.placement_environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.write("fused.mlir", self.sluice("show", "names.mlir", "--phase", "fused").stdout)
        resumed = self.sluice("compile", "fused.mlir", "-q", "-o", "resumed")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        dot = self.sluice("show", "names.mlir", "--dot")
        self.assertIn('label="qu\\"ote \\\\ %d"', dot.stdout)

    def test_a_name_that_is_none_is_refused(self):
        for bad in ("two\\0Alines", "escape\\1B[2J", "next\\C2\\85line", "\\FF", ""):
            for place in ("input", "output", "state"):
                with self.subTest(f"{place} {bad}"):
                    text = model(["in"], ["w"])
                    text = {"input": text.replace('graph ["in"]', f'graph ["{bad}"]'),
                            "output": text.replace('output "in"', f'output "{bad}"'),
                            "state": text.replace('@"w"', f'@"{bad}"')}[place]
                    self.write("bad.mlir", text)
                    result = self.sluice("compile", "bad.mlir", "-o", "bad")
                    self.assertEqual(result.returncode, INVALID, result.stderr)
                    self.assertNotRegex(result.stderr, r"[\x1b\x85]")

    def test_unknown_names_are_refused(self):
        self.write("names.mlir", model(NAMES, []))
        program = self.compiled()
        for flags, message in ((["--input", "a=c=@in.npy"], "has no 'a=c'"), (["--input", "b=@in.npy"], "has no 'b'"),
                               (["--input", "a=in.npy"], "expected a=@file.npy"), (["--output", "=@y.npy"], "expected =@file.npy")):
            self.assert_refused(self.run_program(program, "predict", *flags), USAGE, message)

    # y = w * x of the column x, with a loss and an input that nothing reads.
    TRAINED = """
module @trained {
  sluice.model "trained" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<f32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.5 : f64>
  sluice.graph ["x=1", "spare"] (%x: tensor<?xf32>, %spare: tensor<?x3xi32>) {
    %w = sluice.get @w : tensor<f32>
    %e = sluice.expand %w {dims = array<i64>, shape = array<i64: ?>} : (tensor<f32>) -> tensor<?xf32>
    %y = sluice.mul %x, %e : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %loss = sluice.mean %y {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.output "y", %y : tensor<?xf32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""

    def trained(self):
        self.write("trained.mlir", self.TRAINED)
        result = self.sluice("compile", "trained.mlir", "-q", "-o", "trained")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.write_npy("train/k=v.npy", "<f4", (4,), struct.pack("<4f", 1, 2, 3, 4))
        return self.path("trained")

    def test_a_column_is_found_by_the_longest_name_of_an_input(self):
        program = self.trained()
        with zipfile.ZipFile(self.path("data.npz"), "w") as archive:
            archive.write(self.path("train/k=v.npy"), "k=v.npy")
        self.succeed(program, "train", "--data", "data.npz", "--column", "x=1=k=v", "--epochs", "1", "--save", "w.safetensors")
        with open(self.path("w.safetensors"), "rb") as file:
            self.assertEqual(struct.unpack("<f", file.read()[-4:]), (1 - 0.5 * 2.5,))
        self.assert_refused(self.run_program(program, "train", "--data", "data.npz", "--column", "x=2=k=v"), USAGE, "has no input 'x'")

    def test_an_input_that_nothing_reads_is_checked_and_not_needed(self):
        program = self.trained()
        info = json.loads(self.succeed(program, "info", "--json"))
        inputs = {entry["name"]: [(value["name"], value.get("unread", False)) for value in entry["inputs"]] for entry in info["entries"]}
        self.assertEqual(inputs["predict"], [("x=1", False), ("spare", True)])
        self.assertEqual(inputs["train_step"], [("x=1", False)])  # data needs no column for it
        self.assertRegex(self.succeed(program, "info"), r"spare: i32\[4, 3\] \(rows: dimension 0, up to 4\) \(not used\)")
        header = json.dumps({"w": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}).encode()
        with open(self.path("w.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 3))
        self.write_npy("x.npy", "<f4", (5,), struct.pack("<5f", *range(5)))
        self.write_npy("spare.npy", "<i4", (5, 3), bytes(60))
        self.write_npy("rows.npy", "<i4", (4, 3), bytes(48))
        self.write_npy("floats.npy", "<f4", (5, 3), bytes(60))
        command = (program, "predict", "--json", "--weights", "w.safetensors", "--input", "x=1=@x.npy")
        for flags in ((), ("--input", "spare=@spare.npy")):
            self.assertEqual(json.loads(self.succeed(*command, *flags))["outputs"]["y"]["values"], [0, 3, 6, 9, 12])
        self.assert_refused(self.run_program(*command, "--input", "spare=@rows.npy"), INVALID, "has 4 rows, but x.npy has 5")
        self.assert_refused(self.run_program(*command, "--input", "spare=@floats.npy"), INVALID, "is f32[5, 3], but input 'spare' is i32")
        self.succeed(program, "bench", "--entry", "predict", "--seconds", "0")
        self.assertEqual(self.sluice("verify", "trained.mlir").returncode, 0)

    def test_an_input_that_nothing_reads_is_not_copied(self):
        self.write("trained.mlir", self.TRAINED)
        result = self.sluice("compile", "trained.mlir", "-q", "--devices", "sim:0", "-o", "trained")
        self.assertEqual(result.returncode, 0, result.stderr)
        info = json.loads(self.succeed(self.path("trained"), "info", "--json"))
        predict = next(entry for entry in info["entries"] if entry["name"] == "predict")
        self.assertEqual([value["name"] for value in predict["inputs"]], ["x=1", "spare"])
        self.assertEqual([copy["value"] for copy in predict["copies"] if copy["reason"] == "input"], ["x=1"])

    def test_an_imported_model_says_what_it_is_from(self):
        text = model(["x"], []).replace("capacity 4", 'capacity 4 {sluice.imported_from = {"doc string" = "two\\0Alines \\1B[2J", '
                                        'opset = "17", producer = "pytorch"}}')
        self.write("imported.mlir", text)
        result = self.sluice("compile", "imported.mlir", "-q", "-o", "imported")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("imported from\n  doc string  two\\x0alines \\x1b[2J\n  opset  17\n  producer  pytorch\n",
                      self.succeed(self.path("imported"), "info"))
        self.assertEqual(json.loads(self.succeed(self.path("imported"), "info", "--json"))["imported_from"],
                         {"doc string": "two\nlines \x1b[2J", "opset": "17", "producer": "pytorch"})
        for wrong in ('"17"', "{opset = 17}", '{opset = "' + "v" * 4097 + '"}', '{opset = "\\FF"}'):
            self.write("wrong.mlir", model(["x"], []).replace("capacity 4", "capacity 4 {sluice.imported_from = " + wrong + "}"))
            self.assert_refused(self.sluice("compile", "wrong.mlir", "-o", "wrong"), INVALID, "sluice.imported_from")


if __name__ == "__main__":
    main()
