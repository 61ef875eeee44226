"""Row-carried values with data that continues from step to step: a model that adds up its inputs."""

import json
import os
import struct

from sluice_cli import CliTest, main

BATCH, CALLS, LEFT = 4, 5, 2

# For row i: h = h + x, from step to step; y is the expected value.
SUMS = f"""
module @sums {{
  sluice.model "sums" format 2 phase "model" capacity {BATCH}
  sluice.state parameter @w : tensor<f32> = <"constant", 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.0 : f64>
  sluice.state slot @h : tensor<?xf32> = <"constant", 0.0 : f64>
  sluice.graph ["x", "y"] (%x: tensor<?xf32>, %y: tensor<?xf32>) {{
    %w = sluice.get @w : tensor<f32>
    %h = sluice.get @h : tensor<?xf32>
    %sum = sluice.add %h, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    sluice.set @h, %sum : tensor<?xf32>
    %off = sluice.sub %sum, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %square = sluice.mul %off, %off : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %mean = sluice.mean %square {{axes = array<i64: 0>}} : (tensor<?xf32>) -> tensor<f32>
    %loss = sluice.mul %mean, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }}
}}
"""


def streams_of(values):
    """One stream of consecutive values per row of a step."""
    return [values[row * CALLS : (row + 1) * CALLS] for row in range(BATCH)]


class CarriedTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("sums.mlir", SUMS)
        x = [float(3 * i % 7 + i) for i in range(BATCH * CALLS + LEFT)]
        self.write_column("x", x)
        self.write_column("y", [sum(stream[: i + 1]) for stream in streams_of(x) for i in range(CALLS)] + [1e9] * LEFT)

    def write_column(self, name, values):
        self.write_npy(f"data/{name}.npy", "<f4", f"({len(values)},)", struct.pack(f"<{len(values)}f", *values))

    def train(self, program, *flags):
        result = self.run_program(self.path(program), "train", "--data", "data", "--json", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line)["loss"] for line in result.stdout.splitlines() if "loss" in line], result.stderr

    def program(self, name, *flags):
        self.assertEqual(self.sluice("compile", "sums.mlir", "-q", "-o", name, *flags).returncode, 0)
        return name

    def test_a_row_goes_on_with_what_follows(self):
        losses, said = self.train(self.program("one"), "--epochs", "3")
        self.assertEqual(losses, [0, 0, 0])
        self.assertIn(f"the last {LEFT} of {BATCH * CALLS + LEFT} training rows are left out: every call has {BATCH}", said)

    def test_on_replicas_and_in_microbatches(self):
        for name, *flags in (("two", "--replicas", "2"), ("three", "--replicas", "3"), ("cut", "--accumulate", "2")):
            self.assertEqual(self.train(self.program(name, *flags), "--epochs", "2")[0], [0, 0], name)

    def test_a_resumed_run_goes_on_amid_an_epoch(self):
        folder = ("--checkpoint", "run", "--checkpoint-every", "3")
        self.train(self.program("one"), "--epochs", "1", *folder)
        newest = max(os.listdir(self.path("run")), key=lambda name: os.path.getmtime(self.path("run/" + name)))
        os.remove(self.path("run/" + newest))
        losses, said = self.train("one", "--epochs", "2", *folder, "--resume")
        self.assertIn("resumed at step 3, epoch 1", said)
        self.assertEqual(losses, [0, 0])

    def test_fewer_rows_than_a_call_takes(self):
        self.write_column("x", [1.0, 2.0, 3.0])
        self.write_column("y", [1.0, 2.0, 3.0])
        self.assertEqual(self.train(self.program("one"), "--epochs", "2")[0], [0, 0])


if __name__ == "__main__":
    main()
