"""The protocol of a peer's process: it prints `{"ready": ...}` once its step runs. For each input line with a number
of seconds it prints the mean of consecutive steps that took at least that long, until the last has ended. It
stays warm between rounds, which alternate with others'."""

import json
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


def serve(step, finish, **ready):
    """`step` begins one step; `finish` waits for all begun steps."""
    for _ in range(5):
        step()
    finish()
    say(ready=True, **ready)
    for line in sys.stdin:
        steps, begin = 0, time.perf_counter()
        while steps < 5 or time.perf_counter() - begin < float(line):
            step()
            steps += 1
        finish()
        say(ms=(time.perf_counter() - begin) * 1e3 / steps, steps=steps)
