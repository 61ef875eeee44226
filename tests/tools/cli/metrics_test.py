"""Tests reported metrics: means over calls are labeled. A metric in which no label counts is null, with a warning."""

import json
import struct

from sluice_cli import CliTest, main

# w is 0. `largest` is a maximum over rows, and the loss ignores labels of -1.
MODEL = """module {
  sluice.model "figures" format 2 phase "model" capacity 8
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.0 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x2xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<2xf32>
    %all = sluice.expand %w {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %y = sluice.add %x, %all : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %kept = sluice.ignore_index %label {size = 2 : i64, ignored = -1 : i64} : (tensor<?xi32>) -> tensor<?xi32>
    %zero = sluice.full {value = 0.0 : f64, type = tensor<?xi32>} : () -> tensor<?xi32>
    %counts = sluice.compare %kept, %zero {predicate = #sluice<predicate ge>} : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi1>
    %none = sluice.full {value = 0.0 : f64, type = tensor<?xf32>} : () -> tensor<?xf32>
    %each = sluice.softmax_cross_entropy %y, %kept : (tensor<?x2xf32>, tensor<?xi32>) -> tensor<?xf32>
    %counted = sluice.where %counts, %each, %none : (tensor<?xi1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %total = sluice.sum %counted {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %ones = sluice.cast %counts {to = f32} : (tensor<?xi1>) -> tensor<?xf32>
    %count = sluice.sum %ones {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    %loss = sluice.div %total, %count : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %largest = sluice.reduce_max %x {axes = array<i64: 0, 1>} : (tensor<?x2xf32>) -> tensor<f32>
    sluice.metric "largest", %largest : tensor<f32>
    sluice.metric "total", %total : tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""


class MetricsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("figures.mlir", MODEL)
        self.sluice("compile", "figures.mlir", "-o", "figures", "-q")
        self.write_npy("data/x.npy", "<f4", "(6, 2)", struct.pack("<12f", 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 7, 7))
        self.label([-1, -1, -1, 0, 1, 0])
        self.run_program(self.path("figures"), "train", "--data", "data", "--epochs", "0", "--save", "w.safetensors")

    def label(self, labels):
        self.write_npy("data/label.npy", "<i4", "(6,)", struct.pack("<6i", *labels))

    def figures(self, verb, *options):
        its_own = ["--weights", "w.safetensors"] if verb == "eval" else ["--epochs", "1", "--test-data", "data"]
        return self.run_program(self.path("figures"), verb, "--data", "data", *its_own, *options)

    def test_of_labels_that_count(self):
        line = json.loads(self.figures("train", "--json").stdout)
        self.assertEqual(line["mean_over_calls"], ["train_largest", "largest"])
        for batch in ("1", "3", "4"):
            result = self.figures("eval", "--batch", batch, "--json")
            line = json.loads(result.stdout)
            self.assertAlmostEqual(line["loss"], (2 * 0.693147181 + 0.006715348) / 3, places=6)
            self.assertAlmostEqual(line["total"], 2 * 0.693147181 + 0.006715348, places=6)
            self.assertEqual(line["mean_over_calls"], ["largest"])
            self.assertNotIn("loss/0", line)
            self.assertEqual(result.stderr, "")
        self.assertIn("largest 2.3333 (mean over calls)", self.figures("eval", "--batch", "4").stdout)
        self.assertIn("(mean over calls: train_largest, largest)", self.figures("train").stdout)

    def test_of_none(self):
        self.label([-1] * 6)
        result = self.figures("eval", "--json")
        self.assertIsNone(json.loads(result.stdout)["loss"])
        self.assertEqual(result.returncode, 0)
        warning = "warning: loss is null: its formula gives no number for the sums over all rows, such as 0 / 0 where no label counts\n"
        self.assertEqual(result.stderr, warning)


if __name__ == "__main__":
    main()
