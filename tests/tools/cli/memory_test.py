"""The resident memory of executables compared with the plan: states are in memory once."""

import json
import os
import subprocess

from sluice_cli import CliTest, main, measures_memory

FACTOR, MARGIN = 1.1, 20_000_000

# A perceptron whose states dominate the memory: 784 to 8192, 8192 to 2048, 2048 to 10.
WIDTHS = (784, 8192, 2048, 10)


def model():
    states, body, parameters, last = [], [], [], "%x"
    for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        weight = f"tensor<{outputs}x{inputs}xf32>"
        y = f"tensor<?x{outputs}xf32>"
        states.append(f'  sluice.state parameter @w{i} : {weight} = <"uniform", -0.02 : f64, 0.02 : f64>')
        parameters.append(f"@w{i}")
        body.append(f"    %w{i} = sluice.get @w{i} : {weight}")
        body.append(f"    %y{i} = sluice.einsum \"ab,cb->ac\" %{'x' if i == 0 else f'y{i - 1}'}, %w{i} : (tensor<?x{inputs}xf32>, {weight}) -> {y}")
        last = f"%y{i}"
    return f"""
module @wide {{
  sluice.model "wide" format 2 phase "model" capacity 16
{os.linesep.join(states)}
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.0e-4 : f64>
  sluice.graph ["image", "label"] (%x: tensor<?x784xf32>, %label: tensor<?xi32>) {{
{os.linesep.join(body)}
    sluice.output "logits", {last} : tensor<?x10xf32>
    %each = sluice.softmax_cross_entropy {last}, %label : (tensor<?x10xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %each {{axes = array<i64: 0>}} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [{", ".join(parameters)}] : tensor<f32>
  }}
}}
"""


@measures_memory
class MemoryTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("wide.mlir", model())
        result = self.sluice("compile", "wide.mlir", "-o", "wide", "-q")
        self.assertEqual(result.returncode, 0, result.stderr)

    def resident(self, *command):
        """The peak resident memory of one run in bytes, and its output."""
        with open(self.path("out"), "w+", encoding="utf-8") as out:
            process = subprocess.Popen(["./wide", *command], cwd=self.folder, stdout=out, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        self.assertEqual(process.returncode, 0, text)
        return usage.ru_maxrss * 1024, text

    def bench(self, entry):
        resident, text = self.resident("bench", "--entry", entry, "--seconds", "0.1", "--json")
        result = json.loads(text.splitlines()[-1])
        self.assertLessEqual(result["rss_bytes"], resident)
        return result

    def assert_fits(self, resident, planned):
        print(f"{self.id()}: planned {planned / 1e6:.1f} MB, resident {resident / 1e6:.1f} MB")
        self.assertTrue(resident <= FACTOR * planned + MARGIN, f"resident {resident}, planned {planned}")

    def test_bench_keeps_no_second_copy_of_states(self):
        for entry in ("train_step", "predict"):
            with self.subTest(entry):
                result = self.bench(entry)
                self.assert_fits(result["rss_bytes"], result["peak_bytes"])

    def test_loading_and_saving_keep_no_second_copy_of_states(self):
        self.write_zeros("data", (32, 784))
        planned = {entry: self.bench(entry)["peak_bytes"] for entry in ("train_step", "predict")}
        train = ("train", "--data", "data", "--quiet", "--epochs")
        with self.subTest("train and save"):
            self.assert_fits(self.resident(*train, "1", "--save", "wide.safetensors", "--checkpoint", "checkpoints")[0], planned["train_step"])
        with self.subTest("resume"):
            self.assert_fits(self.resident(*train, "2", "--checkpoint", "checkpoints", "--resume")[0], planned["train_step"])
        with self.subTest("load, train and save"):
            self.assert_fits(self.resident(*train, "1", "--weights", "wide.safetensors")[0], planned["train_step"])
        with self.subTest("predict"):
            self.write_npy("image.npy", "<f4", (4, 784), bytes(4 * 784 * 4))
            run = self.resident("predict", "--weights", "wide.safetensors", "--input", "image=@image.npy", "--output", "logits=@logits.npy")
            self.assert_fits(run[0], planned["predict"])


if __name__ == "__main__":
    main()
