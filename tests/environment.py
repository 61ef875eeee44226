"""The tests' own Python: build/venv, which tools/scripts/make-venv makes with what tests/requirements.txt pins."""

import os
import sys

SKIPPED = 77  # what ctest counts as a skip


def enter(source):
    """Goes on in that Python, or skips the test where nobody has made it."""
    root = os.path.join(source, "build", "venv")
    python = os.path.join(root, "bin", "python3")
    if os.path.realpath(sys.prefix) == os.path.realpath(root):
        return
    if not os.path.exists(python):
        print("skipped: there is no build/venv; tools/scripts/make-venv makes it")
        sys.exit(SKIPPED)
    os.execv(python, [python, "-B"] + sys.argv)


def pinned(source, package):
    """The version of a package that tests/requirements.txt asks for."""
    with open(os.path.join(source, "tests", "requirements.txt")) as lines:
        return next(line.split("==")[1].split()[0] for line in lines if line.startswith(package + "=="))
