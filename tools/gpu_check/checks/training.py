"""LeNet's training on the device compared with the host: the same losses, and the same weights except for the order
of sums."""

import json
import math
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from machine import end_of
from report import row

# For losses, and for the norm of a parameter's change: kernels add in another order than the host's.
LOSS_ERROR, CHANGE_ERROR = 1e-5, 1e-4
SEED = "3"


class TimeIsOver(Exception):
    """The time of the part ended before a program without output counted as hanging."""


def read_weights(path):
    """The f32 tensors of a safetensors file."""
    contents = path.read_bytes()
    (size,) = struct.unpack("<Q", contents[:8])
    weights = {}
    for name, tensor in json.loads(contents[8:8 + size]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            begin, end = (8 + size + at for at in tensor["data_offsets"])
            weights[name] = struct.unpack(f"<{(end - begin) // 4}f", contents[begin:end])
    return weights


def distance(a, b):
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)))


def train(machine, program, epochs, folder, deadline):
    """The losses of each epoch, and the weights after them."""
    weights = folder / f"{program}.{epochs}.safetensors"
    command = [machine.program(program), "train", "--data", machine.folder / "data", "--epochs", str(epochs), "--seed", SEED, "--json",
               "--save", weights]
    left = deadline - time.monotonic()
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=machine.environment(), check=False,
                              timeout=max(1, min(left, machine.silence)))
    except subprocess.TimeoutExpired as late:
        if left < machine.silence:
            raise TimeIsOver from late
        raise RuntimeError(f"{program}: no answer in {machine.silence:.0f} s") from late
    if done.returncode:
        raise RuntimeError(f"{program} {end_of(done.returncode)}: {done.stderr.strip()[-300:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [line["loss"] for line in lines if "loss" in line], read_weights(weights)


def differences(expected, found, before):
    """Differences beyond the order of sums, as text."""
    for number, (want, have) in enumerate(zip(expected[0], found[0])):
        if not abs(have - want) <= LOSS_ERROR * abs(want):
            yield f"the loss of epoch {number + 1} is {have:.9g} instead of {want:.9g}"
    if len(expected[0]) != len(found[0]) or not expected[0]:
        yield f"there are {len(found[0])} losses instead of {len(expected[0])}"
    if set(expected[1]) != set(found[1]):
        yield "the weights have other names"
        return
    for name, values in expected[1].items():
        change, error = distance(values, before[name]), distance(values, found[1][name])
        if not (change > 0 and error <= CHANGE_ERROR * change):
            yield f"{name} is off by {error:.3g} where training changed it by {change:.3g}"


def compare(machine, program, expected, before, folder, deadline):
    """Whether a program trains as on the host, and the differences."""
    try:
        wrong = list(differences(expected, train(machine, program, 1, folder, deadline), before))
    except TimeIsOver:
        return "not tried", "its time was over"
    except RuntimeError as error:
        wrong = [str(error)]
    return "failed" if wrong else "passed", "; ".join(wrong[:3])


def training(machine, deadline):
    programs = machine.manifest["training"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            before = train(machine, programs["host"], 0, folder, deadline)[1]
            expected = train(machine, programs["host"], 1, folder, deadline)
        except TimeIsOver:
            yield row("training", "training", "not tried", "its time was over")
            return
        for program in programs["device"]:
            yield row("training", program, *compare(machine, program, expected, before, folder, deadline))
