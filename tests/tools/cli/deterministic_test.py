"""Logical shards end to end: any number of replicas gives the same bits; and the errors."""

import json
import os

from sluice_cli import BUILD, CliTest, main


class DeterministicTest(CliTest):
    def setUp(self):
        super().setUp()
        self.environment = self.placement_environment()
        self.succeed(os.path.join(BUILD, "bin", "models", "lenet"), "--batch", "60", "-o", "lenet.mlir")

    def compile(self, *arguments):
        return self.sluice("compile", "lenet.mlir", *arguments, env=self.environment)

    def program(self, name, *arguments):
        result = self.compile("-q", *arguments, "-o", name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path(name)

    def run_here(self, *arguments):
        result = self.run_program(*arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def trained(self, program):
        """The printed losses of an epoch whose last batch is shorter, and the bytes of the weights."""
        weights = program + ".safetensors"
        train = ("train", "--epochs", "1", "--batch", "60", "--json", "--seed", "3", "--save", weights)
        lines = [json.loads(line) for line in self.run_here(program, *train).splitlines()]
        with open(weights, "rb") as file:
            return [repr(line["loss"]) for line in lines if "loss" in line], file.read()

    def test_any_number_of_replicas_leaves_the_same_bits(self):
        plain, _ = self.trained(self.program("plain"))
        expected, weights = self.trained(self.program("host", "--deterministic", "8"))
        self.assertTrue(expected)
        for one, other in zip(plain, expected):
            self.assertTrue(abs(float(one) - float(other)) <= 1e-3 * float(one), (plain, expected))
        for replicas in (2, 4):
            losses, its = self.trained(self.program(f"host{replicas}", "--deterministic", "8", "--replicas", str(replicas)))
            self.assertEqual(losses, expected)
            self.assertTrue(its == weights, f"the weights of {replicas} replicas are others")

    def test_it_is_told(self):
        result = self.compile("--deterministic", "8", "--replicas", "4", "-o", "lenet")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout + result.stderr
        self.assertIn("replicas      4, with up to 16 rows each", text)
        self.assertIn("microbatches  2 of up to 8 rows, one after another", text)
        self.assertIn("bits          those of 8 logical shards, for any number of replicas that divides it", text)
        self.assertIn("bits     those of 8 logical shards, for any number of replicas", self.run_here(self.path("lenet"), "info"))
        info = json.loads(self.run_here(self.path("lenet"), "info", "--json"))
        self.assertEqual((info["logical_shards"], info["replicas"], info["microbatches"], info["capacity"]), (8, 4, 2, 8))

    def test_shards_are_shared_out_alike(self):
        self.assert_refused(self.compile("--deterministic", "8", "--replicas", "3"), 2, "cannot divide 8 logical shards equally among 3 replicas")
        self.assert_refused(self.compile("--deterministic", "2", "--replicas", "4"), 2, "cannot divide 2 logical shards equally among 4 replicas")
        self.assert_refused(self.compile("--deterministic", "6"), 2, "must be a power of two from 1 to 1024, but is 6")
        self.assert_refused(self.compile("--deterministic", "8", "--replicas", "env"), 2, "need a fixed number of replicas")
        for count in ("0", "2048", "yes"):
            self.assert_refused(self.compile("--deterministic", count), 2, "--deterministic")

    def test_what_does_not_go_together(self):
        self.assert_refused(self.compile("--deterministic", "8", "--accumulate", "2"), 2, "cannot combine --deterministic with --accumulate")
        self.assert_refused(self.compile("--deterministic", "8", "--replicas", "2", "--batch-norm", "sync"), 4, "cannot combine --deterministic with --batch-norm sync", "use --batch-norm local")
        self.assert_refused(self.compile("--deterministic", "8", "--placement", "auto", "--devices", "cpu,sim:0"), 4, "cannot choose the devices of logical shards")

    def test_a_dump_has_its_shards(self):
        result = self.compile("-q", "--deterministic", "4", "--compile-to", "fused", "--emit", "mlir", "-o", "fused.mlir")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_refused(self.sluice("compile", "fused.mlir", "--deterministic", "8", "-o", "out", env=self.environment), 2, "which already has 4 logical shards")
        self.assertEqual(self.sluice("compile", "fused.mlir", "-q", "-o", "out", env=self.environment).returncode, 0)
        self.assert_refused(self.sluice("verify", "fused.mlir", env=self.environment), 4, "cannot verify a dump with microbatches")


if __name__ == "__main__":
    main()
