"""Runs whose processes get a termination signal: all end after the same step, with a checkpoint of it, with any kind
of state."""

import os
import random
import re
import signal
import time
import unittest

from lost_processes_test import PATIENCE, LostTest
from sluice_cli import main
from sluice_processes import HAS_OPEN_MPI


class AskedTest(LostTest):
    def assert_saved(self, run, results, ranks):
        """Checks for a complete checkpoint of the common last step, after a signal to one of these ranks."""
        for result in results:
            self.assertEqual(result.returncode, 128 + signal.SIGTERM, result.stderr)
        ends = {re.search(r"ended by signal 15 of rank (\d+) after step (\d+)", result.stderr).groups() for result in results}
        self.assertEqual(len(ends), 1, ends)
        ((rank, step),) = ends
        self.assertIn(int(rank), ranks)
        self.assertIn("; continue with --resume", results[0].stderr)
        self.assertEqual(max(run.checkpoints()), f"step-{int(step):012}.safetensors")

    def end_at(self, ask, size, lost, pause, after, seed):
        run = self.begin(size)
        self.await_checkpoint(run)
        time.sleep(pause)
        ranks = ask(run.processes, lost)
        self.assert_saved(run, self.wait(run.processes, timeout=PATIENCE), ranks)
        self.assert_goes_on(run, after)

    def ask_at_moments(self, ask):
        for moment in self.moments(most=3):
            with self.subTest(**moment):
                self.end_at(ask, **moment)

    def ask_one(self, processes, rank):
        processes[rank].send_signal(signal.SIGTERM)
        return [rank]

    def ask_all(self, processes, first):
        """Like launchers that forward a signal to processes that have already received it."""
        draw = random.Random(first)
        for process in (processes[first], *processes, *processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            time.sleep(draw.random() * 0.01)
        return range(len(processes))


class AskedProcessesTest(AskedTest):
    def test_one_is_asked(self):
        self.ask_at_moments(self.ask_one)

    def test_all_are_asked(self):
        self.ask_at_moments(self.ask_all)

    def test_who_asks_again_later_does_not_wait(self):
        run = self.begin(2)
        self.await_checkpoint(run)
        os.kill(run.processes[1].pid, signal.SIGSTOP)  # so that no step ends
        begin = time.monotonic()
        run.processes[0].send_signal(signal.SIGTERM)
        while run.processes[0].poll() is None:
            self.assertLess(time.monotonic() - begin, PATIENCE)
            time.sleep(0.5)
            run.processes[0].send_signal(signal.SIGTERM)
        self.assertGreater(time.monotonic() - begin, 1)
        os.kill(run.processes[1].pid, signal.SIGCONT)
        first, other = self.wait(run.processes)
        self.assertEqual((first.returncode, other.returncode), (128 + signal.SIGTERM, 5), other.stderr)
        self.assert_goes_on(run, 2)


class AskedShardsTest(AskedTest):
    """With replicas that each keep a shard of the optimizer state."""

    MOMENTUM = "0.9"
    RATE = "0.001"

    def program_for(self, size):
        return self.program(*(("--replicas", str(size), "--zero", "1") if size > 1 else ()))

    def test_one_is_asked(self):
        self.ask_at_moments(self.ask_one)

    def test_all_are_asked(self):
        self.ask_at_moments(self.ask_all)


@unittest.skipUnless(HAS_OPEN_MPI, "there is no mpirun, or the transport openmpi was not built")
class AskedMpiTest(AskedTest):
    def test_the_launcher_is_asked(self):
        for moment in self.moments(2, most=3):
            with self.subTest(**moment):
                self.end_launcher_at(**moment)

    def end_launcher_at(self, size, lost, pause, after, seed):
        run = self.begin(size, launch=lambda arguments: [self.start_by_mpi(size, self.program_for(size), *arguments)])
        self.await_checkpoint(run)
        time.sleep(pause)
        run.processes[0].send_signal(signal.SIGTERM)
        (result,) = self.wait(run.processes, timeout=PATIENCE)
        self.assertNotEqual(result.returncode, 0, result.stderr)
        steps = set(re.findall(r"ended by signal 15 of rank \d+ after step (\d+)", result.stderr))
        self.assertLessEqual(len(steps), 1, steps)
        for step in steps:  # none if the launcher ends before it forwards their last output
            self.assertEqual(max(run.checkpoints()), f"step-{int(step):012}.safetensors")
        self.assert_goes_on(run, after)


if __name__ == "__main__":
    main()
