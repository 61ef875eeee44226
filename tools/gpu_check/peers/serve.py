"""What a peer's process says and hears: `{"ready": ...}` once its step runs, then for each line of seconds that it is given
the mean of steps that took at least so long, one behind the other, until the last has ended. It stays warm between rounds, which
alternate with others'."""

import json
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


def serve(step, finish, **ready):
    """`step` begins one step, `finish` waits for what was begun."""
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
