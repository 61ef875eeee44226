"""The libraries of a toolkit or a Python that kernels and exchanges use if present. They are searched like in the
backend, and in the Python with peers. Each is loaded in a separate process that prints its version."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SECONDS = 30  # limit per process


class Library(NamedTuple):
    variable: str  # environment variable with its path
    files: tuple  # in order of preference
    version: str  # its function


LIBRARIES = {
    "cublasLt": Library("SLUICE_CUBLASLT", ("libcublasLt.so.13", "libcublasLt.so.12"), "cublasLtGetVersion"),
    "nccl": Library("SLUICE_NCCL", ("libnccl.so.2",), "ncclGetVersion"),
}

LOADER = """import ctypes, sys
for place in sys.argv[2:]:
    try:
        version = getattr(ctypes.CDLL(place), sys.argv[1])
    except (OSError, AttributeError):
        continue
    if sys.argv[1] == "ncclGetVersion":
        number = ctypes.c_int()
        version(ctypes.byref(number))
        print(place, number.value, sep="\\n")
    else:
        version.restype = ctypes.c_size_t
        print(place, version(), sep="\\n")
    break
"""


class Found(NamedTuple):
    path: str  # or a name that the loader resolves
    version: str
    why: str  # reason why there is none


def said_by(command):
    """The output lines of a Python, or none."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []


def site_packages(python):
    """For the Python with peers."""
    script = "import site, sys; print('\\n'.join([*site.getsitepackages(), site.getusersitepackages(), *sys.path]))"
    return [Path(folder) for folder in dict.fromkeys(filter(None, said_by([python, "-c", script])))]


def places_of(files, packages):
    """Candidate locations of a library: the loader's path, a toolkit, Python packages."""
    yield from files
    homes = [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
    for home in (*homes, Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)):
        yield from (str(home / "lib64" / file) for file in files)
    for folder in packages:
        for file in files:
            yield from map(str, sorted(folder.glob(f"nvidia/*/lib/{file}")))


def find(library, packages):
    """The library named by its variable, else the first that can be loaded."""
    named = os.environ.get(library.variable)
    places = [named] if named else list(places_of(library.files, packages))
    said = said_by([sys.executable, "-c", LOADER, library.version, *places])
    if len(said) == 2:
        return Found(*said, "")
    return Found("", "", f"{library.variable} names {named}, which cannot be loaded" if named else "it is nowhere here")


def find_all(python):
    """By name. A Python is queried once."""
    packages = site_packages(python)
    return {name: find(library, packages) for name, library in LIBRARIES.items()}


def variables(found):
    """The environment variables for programs."""
    return {LIBRARIES[name].variable: library.path for name, library in found.items() if library.path}
