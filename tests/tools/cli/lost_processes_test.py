"""What becomes of a run when one of its processes is killed, stopped or cut off."""

import ctypes
import json
import os
import random
import re
import signal
import time

from sluice_cli import main
from sluice_processes import ProcessesTest

MOMENTS = 20 if os.environ.get("SLUICE_TEST_FULL") else 3
PATIENCE = 30  # seconds in which the others end, by the deadline of 10 s
# Learns slowly, so that what sums of another order are off by stays as small as it is.
FLAGS = ("--data", "data", "--seed", "3", "--set", "lr=0.01", "--epochs", "60", "--json")


def cut_off(process):
    """Shuts the connections of a process down, from outside; false where this system does not let us."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(process.pid)
    cut = False
    for name in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            is_socket = os.readlink(f"/proc/{process.pid}/fd/{name}").startswith("socket:")
        except OSError:
            continue
        taken = libc.syscall(438, pidfd, int(name), 0) if is_socket else -1  # pidfd_getfd
        if taken >= 0:
            cut = libc.shutdown(taken, 2) == 0 or cut
            os.close(taken)
    os.close(pidfd)
    return cut


def names(text, rank):
    """Whether a rank is named, alone or among others: "ranks 1, 2 and 3"."""
    return re.search(rf"\branks? (\d+(,| and) )*{rank}\b", text)


class LostProcessesTest(ProcessesTest):
    def begin(self, size, *flags):
        """A run that has its first checkpoint."""
        processes = self.start([[self.program("--replicas", "env"), "train", *FLAGS, "--checkpoint", "run", "--checkpoint-every", "10", "--log", "log", *flags]] * size)
        end = time.monotonic() + 60
        while not self.checkpoints():
            self.assertLess(time.monotonic(), end, "there is no checkpoint")
            self.assertIsNone(processes[0].poll(), "the run ended before its first checkpoint")
            time.sleep(0.01)
        return processes

    def checkpoints(self):
        folder = self.path("run")
        return [name for name in os.listdir(folder) if name.endswith(".safetensors")] if os.path.isdir(folder) else []

    def losses(self):
        with open(self.path("log"), encoding="utf-8") as log:
            return [json.loads(line)["loss"] for line in log]

    def assert_others_end(self, processes, lost):
        begin = time.monotonic()
        others = [process for rank, process in enumerate(processes) if rank != lost]
        results = self.wait(others, timeout=PATIENCE + 30)
        self.assertLess(time.monotonic() - begin, PATIENCE)
        for result in results:
            self.assertIn(result.returncode, (5, 6), result.stderr)
        self.assertTrue(any(names(result.stderr, lost) for result in results), [result.stderr for result in results])

    def assert_goes_on(self, size):
        """To the losses of a run that was never interrupted."""
        for name in self.checkpoints():
            self.assertTrue(name.startswith("step-"), name)
        results = self.launch(self.program("--replicas", "env"), size, "train", *FLAGS, "--checkpoint", "run", "--log", "log", "--resume", "--checkpoint-every", "10")
        self.assert_ended_well(results)
        self.assertIn("resumed at step", results[0].stderr)
        losses = self.losses()
        self.assertEqual(len(losses), len(self.expected()))
        for loss, expected in zip(losses, self.expected()):
            self.assertTrue(abs(loss - expected) <= 1e-4, (losses, self.expected()))

    def assert_ended_well(self, results):
        for rank, result in enumerate(results):
            self.assertEqual(result.returncode, 0, f"rank {rank}: {result.stderr}")
            self.assertNotIn("damaged", result.stderr)

    def expected(self):
        if not hasattr(LostProcessesTest, "uninterrupted"):
            lines = self.alone(self.program("--replicas", "env"), "train", *FLAGS).splitlines()
            LostProcessesTest.uninterrupted = [json.loads(line)["loss"] for line in lines]
        return LostProcessesTest.uninterrupted

    def lose(self, harm, seed):
        """Any rank of 2 to 4, at any moment behind the first checkpoint; then one more or less go on."""
        draw = random.Random(seed)
        for moment in range(MOMENTS):
            size = draw.randrange(2, 5)
            lost = draw.randrange(size)
            with self.subTest(moment=moment, size=size, lost=lost):
                self.tearDownRun()
                processes = self.begin(size, "--deadline", "10s")
                time.sleep(draw.random() * 0.3)
                if harm(processes[lost]) is False:
                    self.skipTest("this system does not let a process be cut off")
                self.assert_others_end(processes, lost)
                self.end(processes[lost])
                self.assert_goes_on(draw.choice([number for number in (1, 2, 3) if number != size]))

    def tearDownRun(self):
        for name in self.checkpoints():
            os.remove(os.path.join(self.path("run"), name))
        if os.path.exists(self.path("log")):
            os.remove(self.path("log"))

    def test_one_is_killed(self):
        self.lose(lambda process: process.send_signal(signal.SIGKILL), 1)

    def test_one_is_stopped(self):
        self.lose(lambda process: process.send_signal(signal.SIGSTOP), 2)

    def test_one_is_cut_off(self):
        self.lose(cut_off, 3)

    def test_the_first_saves_when_it_is_asked_to_end(self):
        processes = self.begin(2)
        processes[0].send_signal(signal.SIGTERM)
        first, other = self.wait(processes)
        self.assertEqual(first.returncode, 128 + signal.SIGTERM, first.stderr)
        self.assertIn("go on with --resume", first.stderr)
        self.assertEqual(other.returncode, 5, other.stderr)
        self.assert_goes_on(2)

    def test_another_that_is_asked_to_end_ends_all(self):
        processes = self.begin(3)
        processes[2].send_signal(signal.SIGTERM)
        results = self.wait(processes)
        self.assertEqual([result.returncode for result in results], [5, 5, 128 + signal.SIGTERM], [result.stderr for result in results])
        self.assertTrue(any("rank 2" in result.stderr for result in results[:2]), [result.stderr for result in results])
        self.assert_goes_on(1)


if __name__ == "__main__":
    main()
