"""The exercises of a first course on devices: from which size on a product is faster on the device than on the host, what many
launches cost beside one, and what a second device saves. On an emulated device the programs run, and nothing is measured."""

import time

from benchmarks import SECONDS, Unmeasured, bench
from report import row

EMULATED_SECONDS = 0.01
TWO_PRODUCTS = "two products, on one device"


def compared(machine, name, ours, other, entry, deadline, flags=()):
    """A row of two programs, the other with `flags`: its time to ours. None of an emulated device has a figure."""
    seconds = EMULATED_SECONDS if machine.emulated else SECONDS
    if time.monotonic() >= deadline - 1:
        return row("exercises", name, "not tried", "there is no time left")
    try:
        first = bench(machine, ours, entry, deadline, seconds=seconds)["ms"]
        second = bench(machine, other, entry, deadline, flags, seconds)["ms"]
    except Unmeasured as why:
        return row("exercises", name, why.result, str(why))
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
        rows.append(compared(machine, f"product of {size}, host", device, host, "predict", deadline))
        sizes.append(size)
        yield rows[-1]
    if all("ratio" in entry for entry in rows):
        yield row("exercises", "crossover", "measured", crossover(rows, sizes))
    fused, apart = programs["chain"]
    yield compared(machine, "a kernel for each op", fused, apart, "predict", deadline)
    for name, program, entry in programs["graphs"]:
        yield compared(machine, f"{name}, without graphs", program, program, entry, deadline, ("--no-graphs",))
    if len(machine.devices) < 2:
        yield row("exercises", TWO_PRODUCTS, "not tried", "there is one device, and it needs two")
    else:
        apart, on_one = programs["two"]
        yield compared(machine, TWO_PRODUCTS, apart, on_one, "predict", deadline)
