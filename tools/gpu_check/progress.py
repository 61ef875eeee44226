"""What `prepare` does meanwhile, on the standard error: on a terminal in one line that is written anew, else a line for each
thing."""

import sys
import threading
import time

LEAST_SHARE = 0.25  # of the things, before which they do not tell how long the others take


def duration(seconds):
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


class Progress:
    """Of one part, whose things begin and end in any order, several at once."""

    def __init__(self, doing, count):
        self.doing, self.count, self.begun, self.ended = doing, count, 0, 0
        self.start, self.lock, self.is_terminal = time.monotonic(), threading.Lock(), sys.stderr.isatty()

    def left(self):
        """How long all others take, where they take as long as those that have ended."""
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
        """Leaves one line, where all have ended."""
        took = f"prepare: {self.doing} {self.count} took {duration(time.monotonic() - self.start)}\n"
        self.write("", took if self.ended == self.count else "")
