"""`compile --entries`: the selected entry points give the bits of the whole program, without the states of others."""

import json
import math
import os
import pathlib
import struct

from sluice_cli import BUILD, CliTest, main

FULL = os.environ.get("SLUICE_TEST_FULL") == "1"
USAGE = 2
MODELS = sorted(os.listdir(os.path.join(BUILD, "bin", "models")))
# Options of models whose full size takes minutes, and the models that run without SLUICE_TEST_FULL.
SMALL = {
    "gpt2": ("--layers", "1", "--width", "64", "--length", "32", "--batch", "2", "--words", "256"),
    "lstm_lm": ("--batch", "2"),
}
QUICK = ("gpt2", "lenet", "mlp")


def state_bytes(info):
    return next(arena["bytes"] for arena in info["arenas"] if arena["name"] == "state")


class EntriesTest(CliTest):
    def graph(self, name):
        self.succeed(os.path.join(BUILD, "bin", "models", name), *SMALL.get(name, ("--batch", "2")), "-o", "model.mlir")

    def compiled(self, name, *options):
        result = self.sluice("compile", "model.mlir", "-q", "-o", name, *options, timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(self.succeed(self.path(name), "info", "--json"))

    def write_weights(self, info):
        """A file with all parameters and statistics of a program: 1009 positive numbers, again and again."""
        numbers = struct.pack("<1009f", *(0.001 * (1 + number % 97) for number in range(1009)))
        header, data = {}, []
        for state in info["states"]:
            if state["kind"] in ("parameter", "statistic"):
                begin, size = sum(map(len, data)), 4 * math.prod(state["shape"])
                data.append((numbers * (size // len(numbers) + 1))[:size])
                header[state["name"]] = {"dtype": "F32", "shape": state["shape"], "data_offsets": [begin, begin + size]}
        text = json.dumps(header).encode()
        with open(self.path("w.safetensors"), "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text + b"".join(data))

    def outputs(self, program, info, entry):
        """The bytes of all outputs of an entry point for the weights and inputs of small numbers."""
        inputs, outputs = next((each["inputs"], each["outputs"]) for each in info["entries"] if each["name"] == entry)
        flags = []
        for each in inputs:
            descr, code = {"i32": ("<i4", "i"), "u8": ("|u1", "B"), "f32": ("<f4", "f")}[each["dtype"]]
            count = math.prod(each["shape"])
            self.write_npy(each["name"] + ".npy", descr, f"({''.join(f'{size}, ' for size in each['shape'])})",
                           struct.pack(f"<{count}{code}", *(number % 2 for number in range(count))))
            flags += ["--input", f"{each['name']}=@{each['name']}.npy"]
        for each in outputs:
            flags += ["--output", f"{each['name']}=@{program}.{each['name']}.npy"]
        self.succeed(self.path(program), "predict", "--entry", entry, "--weights", "w.safetensors", "-q", *flags)
        return [pathlib.Path(self.path(f"{program}.{each['name']}.npy")).read_bytes() for each in outputs]

    def test_weights_of_16_bits_are_for_inference(self):
        self.graph("gpt2")
        result = self.sluice("compile", "model.mlir", "--weights-type", "bf16", "-o", "model")
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot store weights in 'bf16': 'train_step' updates 'wte.weight'; compile entry points for inference only", result.stderr)
        info = self.compiled("narrow", "--entries", "predict", "--weights-type", "bf16")
        types = {state["name"]: state["dtype"] for state in info["states"]}
        self.assertEqual((types["wte.weight"], types["wpe.weight"]), ("bf16", "f32"))
        self.assertIn("weights_type bf16", self.succeed(self.path("narrow"), "info"))

    def test_weights_of_8_bits_are_for_inference(self):
        self.graph("gpt2")
        result = self.sluice("compile", "model.mlir", "--weights-type", "q8_0", "-o", "model")
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot store weights in 'q8_0': 'train_step' updates 'wte.weight'; compile entry points for inference only", result.stderr)
        info = self.compiled("bytes", "--entries", "predict", "--weights-type", "q8_0")
        states = {state["name"]: (state["kind"], state["dtype"]) for state in info["states"]}
        self.assertEqual(states["wte.weight"], ("parameter", "u8"))
        self.assertEqual(states["wte.weight.scales"], ("scales", "f16"))
        self.assertEqual(states["wpe.weight"], ("parameter", "f32"))
        self.assertIn("weights_type q8_0", self.succeed(self.path("bytes"), "info"))

    def test_states_of_training_are_left_out(self):
        self.graph("gpt2")
        whole, generating = self.compiled("whole"), self.compiled("generating", "--entries", "decode,prefill")
        self.assertEqual([entry["name"] for entry in generating["entries"]], ["decode", "prefill", "init"])
        self.assertIn("slot", {state["kind"] for state in whole["states"]})
        self.assertEqual({state["kind"] for state in generating["states"]}, {"parameter"})
        self.assertLess(2 * state_bytes(generating), state_bytes(whole))

    def test_the_bits_are_those_of_the_whole_program(self):
        for name in MODELS if FULL else QUICK:
            self.graph(name)
            whole = self.compiled("whole")
            names = [entry["name"] for entry in whole["entries"]]
            self.write_weights(whole)
            for selected in ("predict", "predict,eval_step", "decode,prefill"):
                if not set(selected.split(",")) <= set(names):
                    continue
                with self.subTest(name=name, entries=selected):
                    info = self.compiled("part", "--entries", selected)
                    kept = [entry["name"] for entry in info["entries"] if entry["name"] not in ("init", "metrics")]
                    self.assertEqual(sorted(kept), sorted(selected.split(",")))
                    for entry in kept:
                        self.assertEqual(self.outputs("part", info, entry), self.outputs("whole", whole, entry), entry)

    def test_names_of_none_are_refused(self):
        for arguments, words in (
            (("--entries", "predic"), ["no entry point 'predic'", "did you mean 'predict'?", "it has predict"]),
            (("--entries", "train_step"), ["no entry point 'train_step'", "it has predict"]),
            (("--entries", "init"), ["no entry point 'init'"]),
            (("--entries", ""), ["no entry point ''"]),
        ):
            self.assert_refused(self.sluice("compile", "small.mlir", "-o", "small", *arguments), USAGE, *words)
        self.succeed(os.path.join(BUILD, "bin", "sluice"), "compile", "small.mlir", "--compile-to", "train", "-o", "train.mlir")
        self.assert_refused(
            self.sluice("compile", "train.mlir", "-o", "small", "--entries", "predict"), USAGE, "a dump of phase 'train' has its entry points already")


    # y = 2 x for vectors of 4 and of 6 numbers, as Graph::sizes builds it.
    SIZED = """
module @sized {
  sluice.model "sized" format 2 phase "model"
  sluice.graph ["x", "x"] (%a: tensor<4xf32>, %b: tensor<6xf32>) {
    %y = sluice.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sluice.output "y", %y in "predict-T4" : tensor<4xf32>
    %z = sluice.add %b, %b : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    sluice.output "y", %z in "predict-T6" : tensor<6xf32>
  }
}
"""

    def test_predict_takes_the_size_that_fits(self):
        self.write("sized.mlir", self.SIZED)
        compiled = self.sluice("compile", "sized.mlir", "-q", "-o", "sized")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        program = self.path("sized")
        for size in (4, 5, 6):
            self.write_npy(f"x{size}.npy", "<f4", (size,), struct.pack(f"<{size}f", *range(size)))
        for size in (4, 6):
            out = json.loads(self.succeed(program, "predict", "--json", "--input", f"x=@x{size}.npy"))
            self.assertEqual(out["outputs"]["y"]["values"], [2 * i for i in range(size)])
        piped = self.succeed("sh", "-c", f"{program} predict --json --input x=@- < x6.npy")
        self.assertEqual(json.loads(piped)["outputs"]["y"]["values"], [0, 2, 4, 6, 8, 10])
        self.assert_refused(self.run_program(program, "predict", "--input", "x=@x5.npy"), 2,
                            "no size of 'predict' takes x: f32[5]; it has: predict-T4 (x: f32[4]), predict-T6 (x: f32[6])")
        self.assert_refused(self.run_program(program, "predict"), 2, "several sizes of 'predict' take no inputs")
        self.assert_refused(self.run_program(program, "predict", "--input", "z=@x4.npy"), 2, "has no 'z'")
        self.assert_refused(self.run_program(program, "predict", "--entry", "predict-T6", "--input", "x=@x4.npy"), 3,
                            "x4.npy: is f32[4], but input 'x' is f32[6]")


if __name__ == "__main__":
    main()
