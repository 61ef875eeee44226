"""The exercises of a first course on devices: from which size on a product is faster on the device than on the host, and what
many launches cost beside one. On an emulated device the programs run, and nothing is measured."""

import time

from benchmarks import Unmeasured, bench
from report import row

EMULATED_SECONDS = 0.01


def compared(machine, name, ours, other, deadline):
    """A row of two commands: the second's time to the first's. None of an emulated device has a figure."""
    seconds = {"seconds": EMULATED_SECONDS} if machine.emulated else {}
    if time.monotonic() >= deadline - 1:
        return row("exercises", name, "not tried", "there is no time left")
    try:
        first, second = (bench(machine, *command, deadline, **seconds)["median_ms"] for command in (ours, other))
    except Unmeasured as why:
        return row("exercises", name, "failed", str(why))
    if machine.emulated:
        return row("exercises", name, "passed", "emulated: no figures")
    return row("exercises", name, "measured", "", ms=first, ratio=second / first)


def crossover(rows, sizes):
    """The least size from which on the device is always faster."""
    slower = [size for size, entry in zip(sizes, rows) if entry["ratio"] < 1]
    after = [size for size in sizes if not slower or size > max(slower)]
    return f"the device is faster from {after[0]} on" if after else f"the host is faster at {max(sizes)}"


def exercises(machine, deadline):
    programs = machine.manifest["exercises"]
    rows, sizes = [], []
    for size, host, device in programs["products"]:
        rows.append(compared(machine, f"product of {size}, host", (device, "predict"), (host, "predict"), deadline))
        sizes.append(size)
        yield rows[-1]
    if all("ratio" in entry for entry in rows):
        yield row("exercises", "crossover", "measured", crossover(rows, sizes))
    fused, apart = programs["chain"]
    yield compared(machine, "a kernel for each op", (fused, "predict"), (apart, "predict"), deadline)
    for name, *command in programs["graphs"]:
        yield compared(machine, f"{name}, without graphs", command, (*command, "--no-graphs"), deadline)
