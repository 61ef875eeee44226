"""The protocol of a peer's process. It prints a line when its step is ready. Then, for each input line with a number of
seconds, it runs steps for at least that time and prints their median. A peer without the network or the variant prints
nothing."""

import json
import statistics
import sys
import time
from pathlib import Path


def most_resident_mb():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def say(**line):
    print(json.dumps(line), flush=True)


def answer(prepare, **ready):
    """`prepare` returns the step, a function that returns after its work. `first_s` is the time of both."""
    base, start = most_resident_mb(), time.perf_counter()
    step = prepare()
    step()
    first = time.perf_counter() - start
    for _ in range(3):
        step()
    say(ready=True, first_s=first, **ready)
    for line in sys.stdin:
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < float(line):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        say(median_ms=statistics.median(times), resident_mb=most_resident_mb() - base)
