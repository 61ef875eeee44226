"""Progress output of `prepare` on standard error: on a terminal one updated line, otherwise a line per item."""

import sys
import threading
import time

LEAST_SHARE = 0.25  # minimum share of completed items for an estimate


def duration(seconds):
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


class Progress:
    """The progress of one part, whose items run concurrently in any order."""

    def __init__(self, doing, count):
        self.doing, self.count, self.begun, self.ended = doing, count, 0, 0
        self.start, self.lock, self.is_terminal = time.monotonic(), threading.Lock(), sys.stderr.isatty()

    def left(self):
        """The estimated remaining time, assuming that all items take as long as the completed ones."""
        if self.ended < max(1, LEAST_SHARE * self.count):
            return ""
        return f", about {duration((time.monotonic() - self.start) / self.ended * (self.count - self.ended))} left"

    def write(self, line, end):
        print("\r\033[K" * self.is_terminal + line, end=end, file=sys.stderr, flush=True)

    def begin(self, name):
        with self.lock:
            self.begun += 1
            line = f"prepare: {self.doing} {name}, {self.begun} of {self.count}{self.left()}"
            self.write(line, "" if self.is_terminal else "\n")

    def end(self):
        with self.lock:
            self.ended += 1

    def close(self):
        """Leaves one line when all items are complete."""
        took = f"prepare: {self.doing} {self.count} took {duration(time.monotonic() - self.start)}\n"
        self.write("", took if self.ended == self.count else "")
