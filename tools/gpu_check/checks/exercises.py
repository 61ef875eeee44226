"""The exercises of an introductory course on devices. They measure the size from which a product is faster on the
device than on the host, and the cost of many launches compared with one. They also measure when calls return, the
cost of reading each one's results, and the gain of a second device. On an emulated device the programs run
without measurements."""

import time

from benchmarks import SECONDS, Unmeasured, bench
from report import row

EMULATED_SECONDS = 0.01
TWO_PRODUCTS = "two products, on one device"


def compared(machine, name, ours, other, entry, deadline):
    """A row of two programs: the ratio of the other's time to Sluice's. Rows of an emulated device have no figures."""
    seconds = EMULATED_SECONDS if machine.emulated else SECONDS
    if time.monotonic() >= deadline - 1:
        return row("exercises", name, "not tried", "there is no time left")
    try:
        first = bench(machine, ours, entry, deadline, seconds=seconds)["ms"]
        second = bench(machine, other, entry, deadline, seconds=seconds)["ms"]
    except Unmeasured as why:
        return row("exercises", name, why.result, str(why))
    if machine.emulated:
        return row("exercises", name, "passed", "emulated: no figures")
    return row("exercises", name, "measured", "", ms=first, ratio=second / first)


def calls_of(machine, name, program, entry, deadline):
    """Rows of one program: the gain of submitting calls as graphs; the time between a call's return and its end; the
    cost of reading each call's results instead of keeping them on the device; and the cost of calls of single
    kernels, with results read each time, compared with all of these."""
    names = [f"{name}, {what}" for what in ("without graphs", "done beside returned", "results read beside kept", "calls and reads beside graphs")]
    seconds = EMULATED_SECONDS if machine.emulated else SECONDS
    if time.monotonic() >= deadline - 1:
        return [row("exercises", each, "not tried", "there is no time left") for each in names]
    try:
        graphs, calls = (bench(machine, program, entry, deadline, ("--outputs", *flags), seconds) for flags in ((), ("--no-graphs",)))
    except Unmeasured as why:
        return [row("exercises", each, why.result, str(why)) for each in names]
    submitted, apart = graphs["outputs"], calls["outputs"]
    times = ((graphs["ms"], calls["ms"]), (submitted["returned_ms"], submitted["done_ms"]), (submitted["kept_ms"], submitted["read_ms"]),
             (submitted["kept_ms"], apart["read_ms"]))
    if machine.emulated:
        return [row("exercises", each, "passed", "emulated: no figures") for each in names]
    return [row("exercises", each, "measured", "", ms=first, ratio=second / first) for each, (first, second) in zip(names, times)]


def crossover(rows, sizes):
    """The least size from which the device is always faster."""
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
        yield from calls_of(machine, name, program, entry, deadline)
    if len(machine.devices) < 2:
        yield row("exercises", TWO_PRODUCTS, "not tried", "there is one device, and it needs two")
    else:
        apart, on_one = programs["two"]
        yield compared(machine, TWO_PRODUCTS, apart, on_one, "predict", deadline)
