"""Runs one process per replica, like a launcher."""

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile

from sluice_cli import BUILD, CliTest

BACKENDS = os.path.join(BUILD, "lib", "sluice", "backends")
HAS_OPEN_MPI = shutil.which("mpirun") and os.path.exists(os.path.join(BACKENDS, "libsluice_transport_openmpi.so"))
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMI", "SLURM_", "SLUICE_", "MPI_LOCAL")


class Ended:
    """A completed process: its exit code and output."""

    def __init__(self, code, out, err):
        self.returncode, self.stdout, self.stderr = code, out, err


class ProcessesTest(CliTest):
    """Programs are compiled once per class, and are in `compiled` by flags."""

    MOMENTUM = "0.0"
    DEVICES = "cpu"

    @classmethod
    def setUpClass(cls):
        cls.shelf = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.compiled = {}

    def setUp(self):
        super().setUp()
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith(LAUNCHERS)}
        self.environment["SLUICE_BACKEND_PATH"] = BACKENDS
        self.write_images("data", 110, 30)

    def program(self, *flags, rows=24, hidden=128, model="lenet"):
        """A model compiled for the class's devices with these flags, capacity and number of hidden features."""
        key = (flags, rows, hidden, model)
        if key not in self.compiled:
            path = os.path.join(self.shelf, f"{model}{len(self.compiled)}")
            self.succeed(os.path.join(BUILD, "bin", "models", model), "--batch", str(rows), "-o", f"{model}.mlir")
            with open(self.path(f"{model}.mlir"), encoding="utf-8") as file:
                text = file.read()
            text = text.replace("momentum = 0.0", f"momentum = {self.MOMENTUM}", 1)
            self.write(f"{model}.mlir", text.replace("128", str(hidden)) if hidden != 128 else text)
            result = self.sluice("compile", f"{model}.mlir", "-q", *flags, "--devices", self.DEVICES, "-o", path, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.compiled[key] = path
        return self.compiled[key]

    def replicas(self, count):
        return self.program("--replicas", str(count))

    def write_images(self, folder, train, test):
        """Noise images whose brightness encodes the label, so that the model can learn."""
        draw = random.Random(5)
        for part, rows in (("train", train), ("test", test)):
            labels = [draw.randrange(10) for _ in range(rows)]
            pixels = b"".join(bytes(draw.randrange(20 * label, 20 * label + 50) for _ in range(784)) for label in labels)
            self.write_npy(f"{folder}/{part}/image.npy", "|u1", f"({rows}, 28, 28)", pixels)
            self.write_npy(f"{folder}/{part}/label.npy", "|u1", f"({rows},)", bytes(labels))

    def launched(self, rank, size, port):
        """torchrun's environment variables."""
        return dict(
            self.environment, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))

    @staticmethod
    def free_port():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def start(self, commands):
        """One process per command; the first is rank 0."""
        port = self.free_port()
        return [self.start_alone(command, self.launched(rank, len(commands), port)) for rank, command in enumerate(commands)]

    def start_alone(self, command, environment=None):
        process = subprocess.Popen(
            command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment or self.environment)
        self.addCleanup(self.end, process)
        return process

    def start_by_mpi(self, size, *command):
        # Open MPI's libraries leak memory.
        environment = self.environment | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        return self.start_alone(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(size), *command], environment)

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    @staticmethod
    def wait(processes, timeout=120):
        return [Ended(process.returncode, *texts) for process in processes for texts in [process.communicate(timeout=timeout)]]

    def launch(self, program, size, *arguments):
        return self.wait(self.start([[program, *arguments]] * size))

    def alone(self, program, *arguments):
        result = self.run_program(program, *arguments, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def assert_fine(self, results):
        for rank, result in enumerate(results):
            self.assertEqual(result.returncode, 0, f"rank {rank}: {result.stderr}")
        for result in results[1:]:
            self.assertEqual((result.stdout, result.stderr), ("", ""))

    def assert_all_refuse(self, results, code, message):
        for rank, result in enumerate(results):
            self.assertEqual(result.returncode, code, f"rank {rank}: {result.stderr}")
            self.assertIn(message, result.stderr)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    @staticmethod
    def lines(text):
        """JSON objects without machine-dependent values."""
        return [{key: value for key, value in json.loads(line).items() if key != "images_per_s"} for line in text.splitlines()]

    TRAIN = ("train", "--data", "data", "--epochs", "2", "--seed", "3", "--set", "lr=0.05", "--json")
