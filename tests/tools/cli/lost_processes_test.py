"""Runs in which a process, or a replica in one, is killed, stopped or disconnected."""

import concurrent.futures
import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import sys
import time
import unittest

from sluice_cli import main
from sluice_processes import HAS_OPEN_MPI, ProcessesTest

IS_FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
MOMENTS = 20 if IS_FULL else 2
SEED = int(os.environ.get("SLUICE_TEST_SEED", random.randrange(1 << 30)))
DEADLINE = "10s" if IS_FULL else "4s"
PATIENCE = 30  # limit in seconds for the others to end

LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 438, 0x4206, 0x4207, 0x40000000
IN_OPEN = 0x20


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def cut_off(pid):
    """Shuts down all connections of a child from outside, before it notices the first. Returns false if the system
    does not permit this."""
    stop(pid)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    pidfd = os.pidfd_open(pid)
    cut = False
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            is_socket = os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except OSError:
            continue
        taken = LIBC.syscall(PIDFD_GETFD, pidfd, int(name), 0) if is_socket else -1
        if taken >= 0:
            cut = LIBC.shutdown(taken, 2) == 0 or cut
            os.close(taken)
    os.close(pidfd)
    os.kill(pid, signal.SIGCONT)
    return cut


def watch(path):
    """A descriptor that becomes readable when the file is opened."""
    opened = LIBC.inotify_init1(os.O_CLOEXEC)
    LIBC.inotify_add_watch(opened, path.encode(), IN_OPEN)
    return opened


def thread_of(pid, replica):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as name:
            if name.read().strip() == f"replica {replica}":
                return int(tid)
    raise AssertionError(f"no thread is called 'replica {replica}'")


def stop_thread(tid):
    """Stops a child; false if the system does not permit this."""
    for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
        if LIBC.ptrace(request, tid, None, None) != 0:
            return False
    os.waitpid(tid, WALL)
    return True


def names(text, rank):
    """Whether a rank is named, alone or in a list: "ranks 1, 2 and 3"."""
    return re.search(rf"\branks? (\d+(,| and) )*{rank}\b", text)


class Run:
    """A run in a separate folder, of which a process is lost."""

    def __init__(self, folder, number, size, processes):
        self.folder, self.number, self.size, self.processes = folder, number, size, processes

    def checkpoints(self):
        folder = os.path.join(self.folder, f"run{self.number}")
        return [name for name in os.listdir(folder) if name.endswith(".safetensors")] if os.path.isdir(folder) else []

    def losses(self):
        with open(os.path.join(self.folder, f"log{self.number}"), encoding="utf-8") as log:
            return [json.loads(line)["loss"] for line in log]


class LostTest(ProcessesTest):
    worst = 0.0
    RATE = "0.01"  # learns slowly, so that errors from another order of sums stay small

    @property
    def flags(self):
        return ("--data", "data", "--seed", "3", "--set", f"lr={self.RATE}", "--epochs", "60", "--json")

    def setUp(self):
        super().setUp()
        self.runs = 0
        self.threads = self.enterContext(concurrent.futures.ThreadPoolExecutor())

    def program_for(self, size):
        return self.program("--replicas", "env")

    def arguments(self, number, *flags):
        return ("train", *self.flags, "--checkpoint", f"run{number}", "--checkpoint-every", "10", "--log", f"log{number}", *flags)

    def begin(self, size, *flags, launch=None):
        """A run with this number of processes, which starts soon; `launch` starts it from the program's arguments."""
        self.runs += 1
        arguments = self.arguments(self.runs, *flags)
        processes = launch(arguments) if launch else self.start([[self.program_for(size), *arguments]] * size)
        return Run(self.folder, self.runs, size, processes)

    def await_checkpoint(self, run):
        end = time.monotonic() + 60
        while not run.checkpoints():
            self.assertLess(time.monotonic(), end, "there is no checkpoint")
            self.assertIsNone(run.processes[0].poll(), "the run ended before its first checkpoint")
            time.sleep(0.01)

    def note_time(self, begin, end):
        """Measured from the loss of a process."""
        self.assertLess(end - begin, PATIENCE)
        LostTest.worst = max(LostTest.worst, end - begin)

    def await_others(self, run, lost, begin):
        """In a thread, so that the deadlines of several runs overlap."""
        def wait():
            results = self.wait([process for rank, process in enumerate(run.processes) if rank != lost], timeout=PATIENCE + 30)
            return results, begin, time.monotonic()

        return self.threads.submit(wait)

    def assert_others_ended(self, ended, lost):
        results, *times = ended.result()
        self.note_time(*times)
        for result in results:
            self.assertIn(result.returncode, (5, 6), result.stderr)
        self.assertTrue(all(names(result.stderr, lost) for result in results), [result.stderr for result in results])

    def assert_goes_on(self, run, size):
        """Compared with the losses of an uninterrupted run."""
        for name in run.checkpoints():
            self.assertRegex(name, r"^step-\d+\.safetensors$")
        results = self.launch(self.program_for(size), size, *self.arguments(run.number, "--resume"))
        for rank, result in enumerate(results):
            self.assertEqual(result.returncode, 0, f"rank {rank}: {result.stderr}")
            self.assertNotIn("damaged", result.stderr)
        self.assertIn("resumed at step", results[0].stderr)
        losses = run.losses()
        self.assertEqual(len(losses), len(self.expected()))
        for loss, expected in zip(losses, self.expected()):
            self.assertTrue(abs(loss - expected) <= 1e-4, (losses, self.expected()))

    def expected(self):
        its = type(self)
        if not hasattr(its, "uninterrupted"):
            lines = self.alone(self.program_for(1), "train", *self.flags).splitlines()
            its.uninterrupted = [json.loads(line)["loss"] for line in lines]
        return its.uninterrupted

    def moments(self, count=MOMENTS, first=0, most=4):
        """Yields the lost rank, the number of ranks, the delay after the first checkpoint, and the number after
        resuming: 3 after 2, 2 after 3, then random."""
        draw = random.Random(f"{SEED} {self.id()}")
        for moment in range(count):
            size = (2, 3)[moment] if moment < 2 else draw.randrange(2, most + 1)
            after = (3, 2)[moment] if moment < 2 else draw.choice([number for number in (1, 2, 3) if number != size])
            yield {"size": size, "lost": draw.randrange(first, size), "pause": draw.random() * 0.3, "after": after, "seed": SEED}

    def need(self, is_done):
        if not is_done:
            self.skipTest("this system does not let us do that to a process")


class LostProcessesTest(LostTest):
    def lose(self, harm):
        for moment, run, ended in [self.lose_at(harm, moment) for moment in self.moments()]:
            with self.subTest(**moment):
                self.assert_others_ended(ended, moment["lost"])
                self.end(run.processes[moment["lost"]])
                self.assert_goes_on(run, moment["after"])

    def lose_at(self, harm, moment):
        run, lost = self.begin(moment["size"], "--deadline", DEADLINE), moment["lost"]
        self.await_checkpoint(run)
        time.sleep(moment["pause"])
        begin = time.monotonic()
        self.need(harm(run.processes[lost].pid) is not False)
        return moment, run, self.await_others(run, lost, begin)

    def test_one_is_killed(self):
        self.lose(kill)

    def test_one_is_stopped(self):
        self.lose(stop)

    def test_one_is_cut_off(self):
        self.lose(cut_off)

    def test_one_is_stopped_while_it_reads_its_data(self):
        """Before the first collective, when the first rank must report the missing one to the others."""
        cases = ((3, 1), (3, 2), (2, 0), (4, 0))
        for (size, lost), (run, ended) in [(case, self.stop_reading(*case)) for case in cases]:
            with self.subTest(size=size, lost=lost):
                self.assert_others_ended(ended, lost)
                self.end(run.processes[lost])

    def stop_reading(self, size, lost):
        own = f"data{size}{lost}"
        shutil.copytree(self.path("data"), self.path(own))
        opened = watch(self.path(f"{own}/train/image.npy"))
        commands = [[self.program_for(size), "train", *self.flags, "--deadline", DEADLINE] for _ in range(size)]
        commands[lost][commands[lost].index("data")] = own
        run = Run(self.folder, 0, size, self.start(commands))
        os.read(opened, 1024)
        begin = time.monotonic()
        stop(run.processes[lost].pid)
        os.close(opened)
        return run, self.await_others(run, lost, begin)


@unittest.skipUnless(HAS_OPEN_MPI, "there is no mpirun, or the transport openmpi was not built")
class LostMpiProcessesTest(LostTest):
    """Its launcher ends all processes when one dies."""

    def lose(self, harm, count):
        for moment in self.moments(count):
            with self.subTest(**moment):
                self.lose_at(harm, **moment)

    def lose_at(self, harm, size, lost, pause, after, seed):
        run = self.begin(size, "--deadline", DEADLINE, launch=lambda arguments: [self.start_by_mpi(size, self.program_for(size), *arguments)])
        self.await_checkpoint(run)
        time.sleep(pause)
        begin = time.monotonic()
        harm(self.pid_of_rank(run.processes[0].pid, lost))
        (result,) = self.wait(run.processes, timeout=PATIENCE + 30)
        self.note_time(begin, time.monotonic())
        self.assertNotEqual(result.returncode, 0, result.stderr)
        self.assertTrue(names(result.stderr, lost), result.stderr)
        self.assert_goes_on(run, after)

    @staticmethod
    def pid_of_rank(launcher, rank):
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{int(name)}/environ", "rb") as environment, open(f"/proc/{name}/stat", encoding="utf-8") as stat:
                    variables = environment.read().split(b"\0")
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                    if parent == launcher and f"OMPI_COMM_WORLD_RANK={rank}".encode() in variables:
                        return int(name)
        raise AssertionError(f"there is no rank {rank}")

    def test_one_is_killed(self):
        self.lose(kill, MOMENTS)

    def test_one_is_stopped(self):
        self.lose(stop, MOMENTS if IS_FULL else 1)


class LostReplicasTest(LostTest):
    """With one process and a thread per replica. The first replica runs in the main thread, which also writes files."""

    def test_one_is_stuck(self):
        for moment in self.moments(first=1, most=3):
            with self.subTest(**moment):
                self.stop_at(**moment)

    def stop_at(self, size, lost, pause, after, seed):
        program = self.replicas(size)
        run = self.begin(size, "--deadline", DEADLINE, launch=lambda arguments: [self.start_alone([program, *arguments])])
        self.await_checkpoint(run)
        time.sleep(pause)
        begin = time.monotonic()
        (process,) = run.processes
        thread = thread_of(process.pid, lost)
        self.need(stop_thread(thread))
        self.reap(thread)
        (result,) = self.wait(run.processes)
        self.note_time(begin, time.monotonic())
        self.assertEqual(result.returncode, 6, result.stderr)
        late = rf"(replica {lost} has not come (to|back from)|replicas .* have not come back from)"  # it may be adding
        self.assertRegex(result.stderr, rf"error: {late} all_reduce of .+, \w+\.cpp:\d+:\d+ within ")
        self.assertEqual(json.loads(result.stdout.splitlines()[-1])["code"], 6)
        self.assertEqual(sorted(run.checkpoints()), sorted(os.listdir(self.path(f"run{run.number}"))), "a file is left that is none")
        self.assert_goes_on(run, after)

    def reap(self, thread):
        """The tracer must reap the stopped thread before the process can end."""
        end = time.monotonic() + PATIENCE
        while os.waitpid(thread, WALL | os.WNOHANG) == (0, 0):
            self.assertLess(time.monotonic(), end, "the run goes on")
            time.sleep(0.01)


def tearDownModule():
    if IS_FULL:
        print(f"seed {SEED}: the slowest ended {LostTest.worst:.1f} s after somebody was lost", file=sys.stderr)


if __name__ == "__main__":
    main()
