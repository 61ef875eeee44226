"""Derived states in the texts and the JSON of `info` and `--report`: casts of weights in mixed precision."""

import json
import math
import os

from sluice_cli import BUILD, CliTest, main

WEIGHTS = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.bias", "fc2.weight", "fc2.bias")  # of at most 64 KiB in bf16


class DerivedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "4", "-o", "model.mlir")
        result = self.sluice("compile", "model.mlir", "--precision", "bf16", "-q", "-o", "program")
        self.assertEqual(result.returncode, 0, result.stderr)

    def output_of(self, *arguments):
        return self.succeed(self.path("program"), *arguments)

    def info(self):
        return json.loads(self.output_of("info", "--json"))

    def test_info_lists_them_with_their_sources(self):
        info = self.info()
        for state in info["derived"]:  # with the padding of panels
            self.assertGreaterEqual(state["bytes"], 2 * math.prod(state["shape"]))
        self.assertEqual([(state["name"], state["dtype"], state["sources"], state["derivation"]) for state in info["derived"]],
                         [(f"{name}.cast", "bf16", [name], "eval_step.derive") for name in WEIGHTS])
        self.assertFalse([state["name"] for state in info["states"] if state["name"].endswith(".cast")])
        text = self.output_of("info")
        self.assertIn("derived states, stale once a state after 'from' is written\n", text)
        self.assertIn("  conv2.weight.cast  bf16[50, 20, 5, 5]  from conv2.weight, by eval_step.derive\n", text)

    def test_info_names_the_derivations_of_entry_points(self):
        entries = {entry["name"]: entry.get("derivations") for entry in self.info()["entries"]}
        self.assertEqual({name for name, derivations in entries.items() if derivations}, {"eval_step", "predict"})
        (derivation,) = entries["predict"]
        self.assertEqual(derivation["name"], "eval_step.derive")
        self.assertIn(f"    first eval_step.derive if derived states are stale: {derivation['launches']} launches\n", self.output_of("info"))

    def test_a_report_counts_their_derivations(self):
        flags = ("bench", "--entry", "eval_step", "--seconds", "0.01", "--report")
        report = json.loads(self.output_of(*flags, "--json").splitlines()[-1])["report"]
        (derivation,) = report["derivations"]
        self.assertEqual((derivation["name"], derivation["calls"], derivation["states"]), ("eval_step.derive", 1, len(WEIGHTS)))
        self.assertIn(f"eval_step.derive: 1 calls; each computes {len(WEIGHTS)} derived states / {derivation['bytes']} B in "
                      f"{derivation['launches']} launches\n", self.output_of(*flags))

    def test_a_report_without_stale_states_has_none(self):
        report = json.loads(self.output_of("bench", "--entry", "train_step", "--seconds", "0.01", "--report", "--json").splitlines()[-1])
        self.assertEqual(report["report"]["derivations"], [])


if __name__ == "__main__":
    main()
