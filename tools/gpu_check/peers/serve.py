"""What a peer's process says and hears: `{"ready": ...}` once its step runs, then for each line of seconds that it is given
the median of steps that took at least so long. It stays warm between rounds, which alternate with others'."""

import json
import statistics
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


def serve(step, **ready):
    """`step` does one step, to its end."""
    for _ in range(5):
        step()
    say(ready=True, **ready)
    for line in sys.stdin:
        times, start = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - start < float(line):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        say(median_ms=statistics.median(times), steps=len(times))
