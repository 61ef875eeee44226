"""The notebook's LeNet on several devices, a graph that trains without an optimizer, end to end: training, resuming,
evaluation, measurement; and the errors for calls with a fixed number of rows."""

import json
import os
import struct

from sluice_cli import BUILD, CliTest, main

FULL = os.environ.get("SLUICE_TEST_FULL") == "1"
EMULATED = {name: os.path.join(BUILD, "tests", "cuda_emu", f"sluice_cuda_emu_{library}.so") for name, library in
            (("SLUICE_NVRTC", "nvrtc"), ("SLUICE_CUDA_DRIVER", "driver"), ("SLUICE_CUBLASLT", "driver"), ("SLUICE_NCCL", "driver"))}


class DataParallelTest(CliTest):
    environment = os.environ | EMULATED | {"CUDA_EMU_EFFORT": "least"}

    def program(self, devices, *arguments, batch="50"):
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet_data_parallel"), "--batch", batch, "--devices", devices, "-o", "dp.mlir")
        name = "on " + devices
        result = self.sluice("compile", "dp.mlir", "-q", "-o", name, *arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path(name)

    def run_here(self, *command):
        result = self.run_program(*command, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def epochs(self, *command):
        return [json.loads(line) for line in self.run_here(*command, "--json").stdout.splitlines()]

    def few_rows(self, rows):
        """Random images as digits, with labels from 0 to 9."""
        for part in ("train", "test"):
            images = bytes((17 * i + i // 784) % 251 for i in range(784 * rows))
            self.write_npy(f"few/{part}/image.npy", "|u1", (rows, 1, 28, 28), images)
            self.write_npy(f"few/{part}/label.npy", "<i4", (rows,), b"".join((i % 10).to_bytes(4, "little") for i in range(rows)))
        return self.path("few")

    def test_it_learns_the_digits(self):
        program, epochs = self.program("cpu", batch="50" if FULL else "25"), "10" if FULL else "4"
        for seed in ("1", "2", "3") if FULL else ("1",):  # which leave the plateau of small weights after 800 to 1100 steps
            last = self.epochs(program, "train", "--epochs", epochs, "--seed", seed)[-1]
            print("seed", seed, "test accuracy", last["accuracy"], flush=True)
            self.assertGreaterEqual(last["accuracy"], 0.78)

    def test_devices_train_as_one(self):
        train = ("train", "--data", self.few_rows(14), "--epochs", "2", "--seed", "3")
        one = self.epochs(self.program("sim:0", batch="7"), *train)
        self.assertEqual([line["step"] for line in one], [2, 4])
        self.assertIn("train_accuracy", one[0])
        for devices in ("cpu", "sim:0-2", "cuda:0,sim:0", *(("cuda:0-1",) if FULL else ())):
            for mine, theirs in zip(self.epochs(self.program(devices, batch="7"), *train), one):
                self.assertAlmostEqual(mine["loss"], theirs["loss"], delta=1e-5, msg=devices)
                self.assertAlmostEqual(mine["test_loss"], theirs["test_loss"], delta=1e-5, msg=devices)

    def test_a_run_is_resumed_to_the_same_bits(self):
        program, data = self.program("sim:0-1"), self.few_rows(100)
        train = (program, "train", "--data", data, "--seed", "3")
        whole = self.epochs(*train, "--epochs", "2", "--save", self.path("whole"))
        flags = ("--checkpoint", self.path("folder"))
        self.epochs(*train, "--epochs", "1", *flags)
        rest = self.epochs(*train, "--epochs", "2", *flags, "--resume", "--save", self.path("resumed"))
        self.assertEqual(rest[-1]["loss"], whole[-1]["loss"])
        with open(self.path("whole"), "rb") as one, open(self.path("resumed"), "rb") as other:
            self.assertEqual(one.read(), other.read())
        tested = self.epochs(program, "eval", "--data", data, "--weights", self.path("whole"))[-1]
        self.assertEqual(tested, self.epochs(program, "eval", "--data", data, "--weights", self.path("resumed"))[-1])
        self.assertEqual((tested["loss"], tested["images"]), (whole[-1]["test_loss"], 100))

    def test_the_rate_is_set(self):
        program, data = self.program("sim:0-1"), self.few_rows(50)
        train = (program, "train", "--data", data, "--epochs", "3", "--seed", "3")
        still = self.epochs(*train, "--set", "lr=0")
        self.assertEqual(still[0]["test_loss"], still[2]["test_loss"])
        moving = self.epochs(*train)
        self.assertNotEqual(moving[0]["test_loss"], moving[2]["test_loss"])
        self.assert_refused(self.run_program(*train, "--set", "rate=1"), 2, "the model has no setting 'rate'", "(settings: lr)")

    def test_it_is_measured(self):
        result = self.run_here(self.program("sim:0-1"), "bench", "--seconds", "0.01")
        self.assertIn("train_step, 50 rows", result.stdout)

    def test_rows_behind_the_last_call_are_left_out(self):
        program, data = self.program("cpu", batch="64"), self.few_rows(150)
        result = self.run_here(program, "train", "--data", data, "--epochs", "1", "--save", self.path("weights"))
        for rows in ("training", "test"):
            self.assertIn(f"the last 22 of 150 {rows} rows are left out: every call has 64", result.stderr)
        result = self.run_here(program, "eval", "--data", data, "--weights", self.path("weights"))
        self.assertIn("the last 22 of 150 rows are left out: every call has 64", result.stderr)
        self.assertIn("(128 rows)", result.stdout)
        quiet = self.run_here(program, "train", "--data", data, "--epochs", "1", "--quiet")
        self.assertEqual(quiet.stderr, "")

    # A loss that depends on row positions: (x - [1, 2, 4, 8])^2, which is 0 only for rows in data order.
    PLACES = """
module @places {{
  sluice.model "places" format 2 phase "model"{shuffle}
  sluice.state parameter @w : tensor<4xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.0 : f64>
  sluice.graph ["x"] (%x: tensor<4xf32>) {{
    %w = sluice.get @w : tensor<4xf32>
    %c = "sluice.constant"() {{value = dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>}} : () -> tensor<4xf32>
    %a = sluice.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = sluice.sub %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = sluice.mul %d, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %l = sluice.sum %s {{axes = array<i64: 0>}} : (tensor<4xf32>) -> tensor<f32>
    sluice.minimize %l, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }}
}}
"""

    def losses_of_places(self, shuffle, *flags):
        self.write("places.mlir", self.PLACES.format(shuffle=shuffle))
        result = self.sluice("compile", "places.mlir", "-q", "-o", "places")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.write_npy("rows/x.npy", "<f4", (12,), struct.pack("<12f", *[1, 2, 4, 8] * 3))
        return [line["loss"] for line in self.epochs(self.path("places"), "train", "--data", self.path("rows"), "--epochs", "2", *flags)]

    def test_rows_of_static_shapes_keep_their_places(self):
        self.assertEqual(self.losses_of_places(""), [0, 0])
        self.assertEqual(self.losses_of_places(" {sluice.shuffle = false}"), [0, 0])
        self.assertEqual(self.losses_of_places(" {sluice.shuffle = true}", "--no-shuffle"), [0, 0])
        for loss in self.losses_of_places(" {sluice.shuffle = true}"):
            self.assertGreater(loss, 0)
        self.write("places.mlir", self.PLACES.format(shuffle=" {sluice.shuffle = 1}"))
        self.assert_refused(self.sluice("compile", "places.mlir"), 3, "sluice.shuffle, which must be true or false, but is 1 : i64")

    def test_rows_of_any_number_keep_their_order_when_asked(self):
        program = os.path.join(BUILD, "tests", "logreg")
        for name, rows in (("both", 130), ("first", 65)):  # one class, followed by another
            self.write_npy(f"{name}/image.npy", "|u1", (rows, 1, 28, 28), bytes(784 * rows))
            self.write_npy(f"{name}/label.npy", "<i4", (rows,), b"".join((i // 65).to_bytes(4, "little") for i in range(rows)))
        train = (program, "train", "--batch", "13", "--steps", "5", "--data")
        first = self.epochs(*train, self.path("first"))[-1]["loss"]
        self.assertEqual(self.epochs(*train, self.path("both"), "--no-shuffle")[-1]["loss"], first)
        self.assertNotEqual(self.epochs(*train, self.path("both"))[-1]["loss"], first)

    def test_a_run_is_resumed_in_its_order(self):
        program, data, flags = os.path.join(BUILD, "tests", "logreg"), self.few_rows(64), ("--checkpoint", self.path("ordered"))
        train = (program, "train", "--data", data, "--seed", "3", *flags)
        self.epochs(*train, "--epochs", "1", "--no-shuffle")
        self.assert_refused(self.run_program(*train, "--epochs", "2", "--resume"), 2,
                            "--resume: rows are shuffled, but the checkpoint", "was made with rows that are not")
        self.epochs(*train, "--epochs", "2", "--resume", "--no-shuffle")

    def test_other_calls_are_refused(self):
        program = self.program("cpu", batch="64")
        result = self.run_program(program, "train", "--data", self.few_rows(70), "--batch", "32")
        self.assert_refused(result, 2, "--batch: 32 rows, and every call of the model has 64")
        result = self.run_program(program, "train", "--data", self.few_rows(50))
        self.assert_refused(result, 3, "has 50 rows, and every call has 64")


if __name__ == "__main__":
    main()
