"""One process per CUDA device, on emulated devices (tests/cuda_emu): the results match one process, and all end if
one fails."""

import array
import json
import os
import signal
import struct
import time
import unittest

from cuda_test import DOUBLES
from sluice_cli import BUILD, main
from sluice_processes import HAS_OPEN_MPI, ProcessesTest


class CudaProcessesTest(ProcessesTest):
    DEVICES = "cuda:0"
    TRAIN = ("train", "--data", "data", "--seed", "3", "--set", "lr=0.05", "--json")

    def setUp(self):
        super().setUp()
        self.environment |= DOUBLES | {"CUDA_EMU_EFFORT": "least", "CUDA_EMU_DEVICES": "4"}
        self.write_images("data", 8, 4)

    def mlp(self):
        return self.program("--replicas", "env", rows=4, model="mlp")

    def weights(self, name):
        """By tensor name."""
        content = self.content(name)
        size, = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + size])
        header.pop("__metadata__", None)
        return {tensor: array.array("f", content[8 + size + its["data_offsets"][0]:8 + size + its["data_offsets"][1]])
                for tensor, its in header.items() if its["dtype"] == "F32"}

    def assert_same_weights(self, one, other):
        first, second = self.weights(one), self.weights(other)
        self.assertEqual(first.keys(), second.keys())
        self.assertTrue(first)
        for name, values in first.items():
            worst = max(abs(a - b) for a, b in zip(values, second[name], strict=True))
            self.assertLessEqual(worst, 1e-5, name)


class TrainingTest(CudaProcessesTest):
    def test_they_train_as_one_process(self):
        program = self.program("--replicas", "env", rows=4, hidden=16)
        train = (*self.TRAIN, "--epochs", "1", "--save")
        self.alone(program, *train, "one.safetensors")
        results = self.launch(program, 2, *train, "two.safetensors")
        self.assert_fine(results)
        self.assertIn("rank 0 of 2, local rank 0 of 2, by torchrun, rank 0 at 127.0.0.1:", results[0].stderr)
        self.assertIn("; transport tcp", results[0].stderr)
        self.assert_same_weights("one.safetensors", "two.safetensors")

    def test_another_number_goes_on(self):
        train = (*self.TRAIN, "--checkpoint-every", "1")
        self.alone(self.mlp(), *train, "--epochs", "2", "--save", "one.safetensors")
        self.assert_fine(self.launch(self.mlp(), 4, *train, "--epochs", "1", "--checkpoint", "run"))
        results = self.launch(self.mlp(), 2, *train, "--epochs", "2", "--checkpoint", "run", "--resume", "--save", "both.safetensors")
        self.assert_fine(results)
        self.assertIn("resumed at step", results[0].stderr)
        self.assert_same_weights("one.safetensors", "both.safetensors")

    def test_exchanges_are_counted_by_each(self):
        results = self.launch(self.mlp(), 2, *self.TRAIN, "--epochs", "1", "--report")
        self.assert_fine(results)
        counts, = json.loads(results[0].stdout.splitlines()[-1])["report"]["collectives"]
        self.assertEqual(counts["executed"], counts["engine"])

    def test_they_evaluate_and_predict_as_one_process(self):
        self.alone(self.mlp(), *self.TRAIN, "--epochs", "0", "--save", "w.safetensors")
        arguments = ("eval", "--data", "data", "--weights", "w.safetensors", "--json")
        results = self.launch(self.mlp(), 2, *arguments)
        self.assert_fine(results)
        one, = self.lines(self.alone(self.mlp(), *arguments))
        many, = self.lines(results[0].stdout)
        self.assertAlmostEqual(many["loss"], one["loss"], delta=1e-5)
        self.write_npy("x.npy", "|u1", "(5, 784)", bytes(i * i % 251 for i in range(5 * 784)))
        arguments = ("predict", "--weights", "w.safetensors", "--input", "image=@x.npy", "--json")
        results = self.launch(self.mlp(), 2, *arguments)
        self.assert_fine(results)
        self.assertEqual(results[0].stdout, self.alone(self.mlp(), *arguments))

    def test_they_are_measured_together(self):
        results = self.launch(self.mlp(), 2, "bench", "--seconds", "0.01", "--json", "--entry", "eval_step")
        self.assert_fine(results)
        bench = json.loads(results[0].stdout)
        self.assertEqual((bench["replicas"], bench["rows"]), (2, 4))
        self.assertGreater(bench["communication"]["measured_ms"], 0)

    @unittest.skipUnless(HAS_OPEN_MPI, "there is no mpirun, or the transport openmpi was not built")
    def test_open_mpi_carries_the_id(self):
        train = (*self.TRAIN, "--epochs", "1")
        self.alone(self.mlp(), *train, "--save", "one.safetensors")
        result, = self.wait([self.start_by_mpi(2, self.mlp(), *train, "--save", "two.safetensors")])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rank 0 of 2, local rank 0 of 2, by Open MPI's mpirun; transport openmpi", result.stderr)
        self.assert_same_weights("one.safetensors", "two.safetensors")


class DevicesTest(CudaProcessesTest):
    """Each process uses the device with its local rank."""

    def launch_with(self, *flags, **environment):
        self.environment |= environment
        return self.launch(self.mlp(), 2, *self.TRAIN, "--epochs", "0", "--deadline", "1000s", *flags)

    def test_fewer_devices_than_processes(self):
        results = self.launch_with(CUDA_EMU_DEVICES="1")
        self.assert_all_refuse(results, 4, "device gpu(0) (cuda:1) is not there: cuda has 1 devices, and 2 processes of this machine need 2")
        self.assertIn("rank 1: device", results[0].stderr)

    def test_a_list_is_that_of_the_machine(self):
        self.assert_fine(self.launch_with("--devices", "cuda:3,cuda:2"))
        results = self.launch_with("--devices", "cuda:0")
        self.assertEqual(results[1].returncode, 2)
        self.assertIn("'cuda:0' has 1 accelerators, and process 1 of this machine needs 1 after those of the 1 before it", results[1].stderr)
        self.assertIn("rank 1", results[0].stderr)

    def test_two_of_one_device(self):
        port = str(self.free_port())
        command = [self.mlp(), *self.TRAIN, "--epochs", "0", "--world-size", "2", "--local-rank", "1", "--address", f"127.0.0.1:{port}"]
        results = self.wait([self.start_alone([*command, "--rank", rank]) for rank in ("0", "1")])
        self.assert_all_refuse(results, 4, "ranks 0 and 1 have one device, gpu(0) (cuda:1): each needs its own")

    def start_on(self, lists, *environments):
        """One process per environment, running a program compiled for these lists of devices."""
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "-o", "mlp.mlir")
        devices = (flag for one in lists for flag in ("--devices", one))
        result = self.sluice("compile", "mlp.mlir", "-q", "--replicas", "env", *devices, "-o", "either", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        port = self.free_port()
        command = [self.path("either"), *self.TRAIN, "--epochs", "0"]
        return self.wait([self.start_alone(command, self.launched(rank, len(environments), port) | environment)
                          for rank, environment in enumerate(environments)])

    def test_who_chooses_another_list_says_why(self):
        no_driver = {"SLUICE_CUDA_DRIVER": "libnowhere.so"}
        results = self.start_on(("cpu,cuda:0", "cpu"), {}, no_driver, {})
        self.assert_all_refuse(results, 3, "the list of devices is not the same in all processes: ranks 0, 2 chose cpu,cuda:0; "
                               "rank 1 chose cpu (cpu,cuda:0: backend 'cuda' does not open: there is no driver of CUDA devices here")
        results = self.start_on(("cpu,cuda:0", "cpu,cuda:1"), {}, no_driver)
        self.assert_all_refuse(results, 4, "rank 0 chose cpu,cuda:0; rank 1 chose none (none of the devices that the model was compiled for")

    def test_no_nccl(self):
        results = self.launch_with(SLUICE_NCCL="/nowhere/libnccl.so")
        self.assert_all_refuse(results, 4, "NCCL, through which CUDA devices exchange, was not found")

    def test_sums_in_a_tree_are_refused_when_they_are_compiled(self):
        self.succeed(os.path.join(BUILD, "bin", "models", "mlp"), "--batch", "4", "-o", "mlp.mlir")
        for flags, code in ((("--replicas", "2", "--devices", "cuda:0-1"), 4), (("--replicas", "2", "--devices", "cpu"), 0), (("--devices", "cuda:0"), 0)):
            result = self.sluice("compile", "mlp.mlir", "-q", "--deterministic", "4", *flags, "-o", "tree", env=self.environment)
            self.assertEqual(result.returncode, code, result.stderr)
            if code:
                self.assertIn("cannot apply --deterministic to replicas on cuda: NCCL does not add in a fixed order", result.stderr)

    def test_strangers_are_kept_out(self):
        port = str(self.free_port())
        command = [self.mlp(), *self.TRAIN, "--deadline", "3s", "--world-size", "2", "--address", f"127.0.0.1:{port}"]
        processes = [self.start_alone([*command, "--rank", str(rank)], self.environment | {"SLUICE_SECRET": f"word {rank}"}) for rank in (0, 1)]
        results = self.wait(processes)
        self.assertEqual([result.returncode for result in results], [6, 3], [result.stderr for result in results])
        self.assertIn("is of another run: it has another secret", results[1].stderr)


class LostTest(CudaProcessesTest):
    def lose(self, signal_number, codes):
        processes = self.start([[self.mlp(), *self.TRAIN, "--epochs", "1000", "--deadline", "4s", "--checkpoint", "run", "--checkpoint-every", "1"]] * 2)
        end = time.monotonic() + 60
        while not os.path.isdir(self.path("run")) or not any(name.endswith(".safetensors") for name in os.listdir(self.path("run"))):
            self.assertLess(time.monotonic(), end, "there is no checkpoint")
            time.sleep(0.01)
        processes[1].send_signal(signal_number)
        begin = time.monotonic()
        result, = self.wait(processes[:1])
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn(result.returncode, codes, result.stderr)
        self.assertRegex(result.stderr, r"\brank 1\b")

    def test_one_is_killed(self):
        self.lose(signal.SIGKILL, (5, 6))

    def test_one_is_stopped(self):
        self.lose(signal.SIGSTOP, (6,))


if __name__ == "__main__":
    main()
