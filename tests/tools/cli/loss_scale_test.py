"""Training in f16 end to end: checkpoints contain the scale, and a resumed run continues with it."""

import json
import os
import re
import struct

from sluice_cli import BUILD, CliTest, main

# So large that the first steps overflow, and small enough soon after to grow.
FIRST = 2.0**30
SCALE = f"loss_scale <init_scale = {FIRST!r} : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 9>"
TRAIN = ("train", "--batch", "50", "--seed", "3", "--checkpoint-every", "1000")


class LossScaleTest(CliTest):
    def setUp(self):
        super().setUp()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "50", "-o", "lenet.mlir")
        with open(self.path("lenet.mlir"), encoding="utf-8") as model:
            text, changed = re.subn(r"(sluice\.minimize .*\]) :", rf"\1 {SCALE} :", model.read())
        self.assertEqual(changed, 1)
        self.write("lenet.mlir", text)
        self.assertEqual(self.sluice("compile", "lenet.mlir", "--precision", "f16", "-q", "-o", "lenet").returncode, 0)

    def train(self, folder, *flags):
        """The states of a run by name, each with type and bytes."""
        result = self.run_program(self.path("lenet"), *TRAIN, "--checkpoint", folder, *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path(f"{folder}/{max(os.listdir(self.path(folder)))}"), "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header, data = json.loads(file.read(size)), file.read()
        header.pop("__metadata__", None)
        return {name: (tensor["dtype"], data[slice(*tensor["data_offsets"])]) for name, tensor in header.items()}

    def test_a_resumed_run_goes_on_with_the_same_bits(self):
        whole = self.train("whole", "--epochs", "2")
        half = self.train("run", "--epochs", "1")
        self.assertNotEqual(half["fc1.weight"], whole["fc1.weight"])
        resumed = self.train("run", "--epochs", "2", "--resume")
        self.assertEqual([name for name in whole | resumed if whole.get(name) != resumed.get(name)], [])
        for states in half, whole:
            (kind, scale), (counts, good) = states["loss_scale"], states["loss_scale.good_steps"]
            self.assertEqual((kind, counts), ("F32", "I32"))
            (scale,), (good,) = struct.unpack("<f", scale), struct.unpack("<i", good)
            self.assertIn(scale, [FIRST / 2**fallen for fallen in range(1, 30)])
            self.assertIn(good, range(9))


if __name__ == "__main__":
    main()
