"""The Python environment of the tests: build/venv, made by tools/scripts/make-venv from tests/requirements.txt."""

import os
import sys

SKIPPED = 77  # the exit code of a skipped test, as in SKIP_RETURN_CODE of CTest


def enter(source):
    """Restarts the program in that Python, or skips the test if build/venv does not exist. Programs that the test runs
    also find the libraries there, such as NVRTC."""
    root = os.path.join(source, "build", "venv")
    os.environ["VIRTUAL_ENV"] = root
    python = os.path.join(root, "bin", "python3")
    if os.path.realpath(sys.prefix) == os.path.realpath(root):
        return
    if not os.path.exists(python):
        print("skipped: there is no build/venv; tools/scripts/make-venv makes it")
        sys.exit(SKIPPED)
    os.execv(python, [python, "-B"] + sys.argv)


def pinned(source, package):
    """The version of a package that tests/requirements.txt pins."""
    with open(os.path.join(source, "tests", "requirements.txt")) as lines:
        return next(line.split("==")[1].split()[0] for line in lines if line.startswith(package + "=="))
