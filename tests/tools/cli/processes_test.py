"""One process per replica: the same results as in one process, and the errors."""

import json
import os
import unittest

from sluice_cli import MNIST, main
from sluice_processes import HAS_OPEN_MPI, ProcessesTest


class TrainingTest(ProcessesTest):
    def assert_train_alike(self, count, *flags):
        program = self.replicas(count)
        one = self.alone(program, *self.TRAIN, *flags, "--save", "one.safetensors")
        results = self.launch(program, count, *self.TRAIN, *flags, "--save", "many.safetensors")
        self.assert_fine(results)
        self.assertEqual(self.lines(results[0].stdout), self.lines(one))
        self.assertEqual(self.content("many.safetensors"), self.content("one.safetensors"))
        return results

    def test_checklist_49_loopback_processes_train_as_one(self):
        for count in (2, 3, 4):
            with self.subTest(count=count):
                results = self.assert_train_alike(count)
                self.assertIn(f"rank 0 of {count}, local rank 0 of {count}, by torchrun, rank 0 at 127.0.0.1:", results[0].stderr)
                self.assertIn("; transport tcp", results[0].stderr)

    def test_shares_may_be_uneven_or_empty(self):
        self.assert_train_alike(4, "--batch", "7")
        self.assert_train_alike(4, "--batch", "3")

    def test_any_number_of_them_leaves_the_same_bits_of_logical_shards(self):
        for rows in ("24", "7"):
            flags = (*self.TRAIN, "--batch", rows)
            one = self.lines(self.alone(self.program("--deterministic", "4"), *flags, "--save", "one.safetensors"))
            for count in (2, 4):
                program = self.program("--deterministic", "4", "--replicas", str(count))
                results = self.launch(program, count, *flags, "--save", "many.safetensors")
                self.assert_fine(results)
                self.assertEqual(self.lines(results[0].stdout), one)
                self.assertEqual(self.content("many.safetensors"), self.content("one.safetensors"))

    def test_as_many_as_are_launched(self):
        program = self.program("--replicas", "env")
        for count in (1, 2, 3):
            results = self.launch(program, count, *self.TRAIN, "--save", "env.safetensors")
            self.assert_fine(results)
            losses = [line["loss"] for line in self.lines(results[0].stdout)]
            expected = [line["loss"] for line in self.lines(self.alone(program, *self.TRAIN))]
            for loss, other in zip(losses, expected, strict=True):
                self.assertTrue(abs(loss - other) <= 1e-4 * abs(other), (losses, expected))

    def test_all_of_them_may_be_in_one_process(self):
        (result,) = self.launch(self.replicas(2), 1, *self.TRAIN)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.lines(result.stdout), self.lines(self.alone(self.replicas(2), *self.TRAIN)))

    def test_flags_go_before_the_environment(self):
        port = str(self.free_port())
        program = self.replicas(2)
        flags = ["--world-size", "2", "--address", f"127.0.0.1:{port}"]
        results = self.wait(self.start([[program, *self.TRAIN, *flags, "--rank", rank] for rank in ("1", "0")]))
        self.assertEqual([result.returncode for result in results], [0, 0], results[0].stderr + results[1].stderr)
        self.assertEqual(results[0].stdout, "")
        self.assertIn(f"rank 0 of 2, by flags, rank 0 at 127.0.0.1:{port}; transport tcp", results[1].stderr)

    def test_only_the_first_writes(self):
        program = self.replicas(2)
        results = self.launch(
            program, 2, *self.TRAIN, "--save", "w.safetensors", "--log", "log", "--trace", "trace", "--checkpoint", "run", "--checkpoint-every", "3", "--report")
        self.assert_fine(results)
        with open(self.path("log"), encoding="utf-8") as log:
            self.assertEqual(len(log.readlines()), 2)
        self.assertEqual(len(os.listdir(self.path("run"))), 3)
        with open(self.path("trace"), encoding="utf-8") as trace:
            json.load(trace)
        report = json.loads(results[0].stdout.splitlines()[-1])["report"]
        (counts,) = report["collectives"]
        self.assertEqual(counts["executed"], counts["engine"])

    def test_two_runs_do_not_meet(self):
        program = self.replicas(2)
        wanted = [[seed if word == "3" else word for word in self.TRAIN] for seed in ("1", "2")]
        runs = [self.start([[program, *words]] * 2) for words in wanted]
        outputs = [self.wait(run)[0].stdout for run in runs]
        for words, output in zip(wanted, outputs):
            self.assertEqual(self.lines(output), self.lines(self.alone(program, *words)))


class OtherVerbsTest(ProcessesTest):
    def setUp(self):
        super().setUp()
        self.alone(self.replicas(3), *self.TRAIN, "--save", "w.safetensors")

    def test_they_evaluate_as_one_process(self):
        arguments = ("eval", "--data", "data", "--weights", "w.safetensors", "--json", "--batch", "11")
        results = self.launch(self.replicas(3), 3, *arguments)
        self.assert_fine(results)
        self.assertEqual(results[0].stdout, self.alone(self.replicas(3), *arguments))

    def test_they_predict_as_one_process(self):
        self.write_npy("x.npy", "|u1", "(27, 1, 28, 28)", bytes(i * i % 251 for i in range(27 * 784)))
        arguments = ("predict", "--weights", "w.safetensors", "--input", "image=@x.npy")
        results = self.launch(self.replicas(3), 3, *arguments, "--json")
        self.assert_fine(results)
        self.assertEqual(results[0].stdout, self.alone(self.replicas(3), *arguments, "--json"))

    def test_they_are_measured_together(self):
        results = self.launch(self.replicas(3), 3, "bench", "--seconds", "0.2", "--json")
        self.assert_fine(results)
        bench = json.loads(results[0].stdout)
        self.assertEqual((bench["replicas"], bench["rows"]), (3, 24))


class RefusalTest(ProcessesTest):
    def launch_unlike(self, one, other):
        return self.wait(self.start([one, one, other]))

    def test_another_build(self):
        one, other = self.replicas(3), self.program("--replicas", "3", "--no-fuse")
        results = self.launch_unlike([one, *self.TRAIN], [other, *self.TRAIN])
        self.assert_all_refuse(results, 3, "rank 2 differs from rank 0: ")
        other = self.program("--replicas", "3", "--precision", "bf16")
        results = self.launch_unlike([one, *self.TRAIN], [other, *self.TRAIN])
        self.assert_all_refuse(results, 3, "rank 2 differs from rank 0: the precision is bf16, and f32 in rank 0")

    def test_another_shape(self):
        one, other = self.replicas(3), self.program("--replicas", "3", hidden=96)
        results = self.launch_unlike([one, *self.TRAIN], [other, *self.TRAIN])
        self.assert_all_refuse(results, 3, "rank 2 differs from rank 0: the state 'fc1.weight' is f32[96, 800], and f32[128, 800] in rank 0")

    def test_another_sequence(self):
        one, other = self.replicas(3), self.program("--replicas", "3", "--buckets", "each")
        results = self.launch_unlike([one, *self.TRAIN], [other, *self.TRAIN])
        self.assert_all_refuse(results, 3, "rank 2 differs from rank 0: collective 0 of train_step is all_reduce of ")

    def test_other_data_and_other_words(self):
        program = self.replicas(3)
        self.write_images("less", 100, 30)
        for flags, difference in (
                (("--data", "less"), "the number of training rows is 100, and 110 in rank 0"),
                (("--seed", "4"), "the seed is 4, and 3 in rank 0"),
                (("--batch", "20"), "the batch is 20, and 24 in rank 0"),
                (("--epochs", "3"), "the number of epochs is 3, and 2 in rank 0"),
                (("--set", "lr=0.25"), "the setting 'lr' is 0.25, and 0.05 in rank 0"),
                (("--checkpoint-every", "7"), "the steps between checkpoints is 7, and 100 in rank 0")):
            with self.subTest(flags=flags):
                given = [argument for argument in self.TRAIN]
                if flags[0] in given:
                    given[given.index(flags[0]) + 1] = flags[1]
                else:
                    given += flags
                results = self.launch_unlike([program, *self.TRAIN], [program, *given])
                self.assert_all_refuse(results, 3, f"rank 2 differs from rank 0: {difference}")

    def test_other_weights(self):
        program = self.replicas(3)
        for seed in ("1", "2"):
            self.alone(program, "train", "--data", "data", "--epochs", "0", "--seed", seed, "--save", f"{seed}.safetensors")
        commands = [[program, *self.TRAIN, "--weights", f"{seed}.safetensors"] for seed in ("1", "2")]
        self.assert_all_refuse(self.launch_unlike(*commands), 3, "rank 2 differs from rank 0: the checksum of '")

    def test_another_number_of_processes(self):
        results = self.launch(self.replicas(2), 3, *self.TRAIN)
        self.assert_all_refuse(
            results, 2, "3 processes were launched, and the model was compiled for 2 replicas: launch 2, or one that has them all, "
            "or compile it with --replicas 3 or --replicas env")

    def test_words_that_make_no_sense(self):
        program = self.replicas(2)
        for flags, code, message in (
                (("--transport", "tpc"), 4, "there is no transport 'tpc'"),
                (("--deadline", "soon"), 2, "--deadline: 'soon' is not a time up to 86400 s, such as 60s"),
                (("--rank", "5"), 2, "--rank is given, and --world-size is not"),
                (("--transport", "openmpi"), 4, "was started by torchrun")):
            with self.subTest(flags=flags):
                self.assert_all_refuse(self.launch(program, 2, *self.TRAIN, *flags), code, message)
        result = self.run_program(program, *self.TRAIN, "--address", "127.0.0.1:2", env=self.environment)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("no launcher started this one", result.stderr)

    def test_an_error_of_one_ends_all(self):
        program = self.replicas(3)
        results = self.launch_unlike([program, *self.TRAIN], [program, *self.TRAIN, "--test-data", "nowhere"])
        self.assertEqual([result.returncode for result in results], [5, 5, 3], results[2].stderr)
        self.assertIn("nowhere", results[2].stderr)
        for result in results[:2]:
            self.assertIn("rank 2", result.stderr)


@unittest.skipUnless(HAS_OPEN_MPI, "there is no mpirun, or the transport openmpi was not built")
class OpenMpiTest(ProcessesTest):
    def mpirun(self, size, *command):
        (result,) = self.wait([self.start_by_mpi(size, *command)])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_checklist_49_loopback_processes_train_as_one(self):
        for count in (2, 4):
            with self.subTest(count=count):
                program = self.replicas(count)
                one = self.alone(program, *self.TRAIN, "--save", "one.safetensors")
                result = self.mpirun(count, program, *self.TRAIN, "--save", "many.safetensors")
                self.assertIn(f"rank 0 of {count}, local rank 0 of {count}, by Open MPI's mpirun; transport openmpi", result.stderr)
                self.assertEqual(self.lines(result.stdout), self.lines(one))
                self.assertEqual(self.content("many.safetensors"), self.content("one.safetensors"))

    def test_they_learn_real_images_as_well_as_one(self):
        """Another order of sums is rounded differently, and steps amplify the difference."""
        train = ("train", "--data", MNIST, "--epochs", "2", "--seed", "3", "--set", "lr=0.2", "--json")
        program = self.program("--replicas", "env", rows=128)
        *_, one = self.lines(self.alone(program, *train))
        self.assertGreater(one["accuracy"], 0.85)
        for count in (2, 4):
            with self.subTest(count=count):
                *_, many = self.lines(self.mpirun(count, program, *train).stdout)
                self.assertAlmostEqual(many["accuracy"], one["accuracy"], delta=0.01)
                self.assertAlmostEqual(many["loss"], one["loss"], delta=0.005)

    def test_two_runs_do_not_meet(self):
        program = self.replicas(2)
        wanted = [[seed if word == "3" else word for word in self.TRAIN] for seed in ("1", "2")]
        for words, result in zip(wanted, self.wait([self.start_by_mpi(2, program, *words) for words in wanted])):
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.lines(result.stdout), self.lines(self.alone(program, *words)))


if __name__ == "__main__":
    main()
