"""The environment of the check: the device, the prebuilt files, tools and peers."""

import json
import lzma
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
from pathlib import Path

import libraries

OLDEST_DRIVER = 13000  # CUDA version of driver 580, whose compiler built the prebuilt code


class NoDevice(Exception):
    """There is nothing to check, and the reason."""


def version_text(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def end_of(code):
    """A description of how a process ended."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"crashed ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed by signal {-code}"


def stop(process):
    """Ends a process and its children, which are in one process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def unpack(path, target):
    with lzma.open(path) as packed, open(target, "wb") as file:
        shutil.copyfileobj(packed, file)


class Machine:
    def __init__(self, folder, deadline, options):
        self.folder, self.deadline, self.silence, self.python = folder, deadline, options.silence, options.python
        self.nets, self.modes, self.variants = options.nets, options.modes, options.variants
        self.rounds, self.ahead = options.rounds, options.ahead
        self.manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.runner, self.plugin = folder / "gpu_check_run", folder / "backends" / "sluice_cuda_run.so"
        self.sanitizer_named = bool(options.compute_sanitizer)
        self.sanitizer = options.compute_sanitizer or self.find_sanitizer()
        self.libraries = {}
        self.probe()
        self.libraries = libraries.find_all(self.python)
        self.unpacked = tempfile.TemporaryDirectory()
        self.packs = Path(self.unpacked.name)
        self.unpack()
        self.holder = subprocess.Popen(self.command("hold"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=self.environment(), start_new_session=True)

    def close(self):
        stop(self.holder)
        self.holder.stdin.close()
        self.unpacked.cleanup()

    def unpack(self):
        for path in (self.folder / "packs").iterdir():
            if path.suffix == ".xz":
                unpack(path, self.packs / path.stem)
            else:
                shutil.copy(path, self.packs)

    def program(self, name):
        """The path of a program. The first request for a program that is not next to the archive unpacks all."""
        path = self.folder / "models" / name
        if path.exists():
            return path
        programs = self.packs / "programs"
        if not programs.exists():
            with tarfile.open(self.folder / "models" / "programs.tar.xz") as archive:
                archive.extractall(programs)
        return programs / name

    def probe(self):
        try:
            found = subprocess.run(self.command("probe"), capture_output=True, text=True, timeout=60, check=False, env=self.environment())
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoDevice(f"the runner does not begin: {error}") from error
        lines = [line for line in found.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise NoDevice(f"the runner {end_of(found.returncode)}: {found.stderr.strip()[-500:]} (this machine has {' '.join(platform.libc_ver())}; "
                           f"the files were built with {self.manifest['libc']})")
        said = json.loads(lines[-1])
        if "error" in said:
            raise NoDevice(said["error"])
        if not said["devices"]:
            raise NoDevice("the driver knows no device")
        if said["driver"] < OLDEST_DRIVER:
            raise NoDevice(f"the driver is for CUDA {version_text(said['driver'])}, and {version_text(OLDEST_DRIVER)} or later is needed: driver 580")
        capability = said["devices"][0]["capability"]
        if not self.has_code_for(*map(int, capability.split("."))):
            raise NoDevice(f"{said['devices'][0]['name']} is of compute capability {capability}, and the files have code for "
                           f"{', '.join(self.manifest['architectures'])}")
        self.driver, self.devices = said["driver"], said["devices"]
        self.emulated = self.devices[0]["name"] == "Emulated CUDA device"

    def has_code_for(self, major, minor):
        """Machine code runs on devices of its major version that are no older, and PTX on all that are no older."""
        def runs(kind, number):
            return number <= 10 * major + minor and (kind == "compute" or number // 10 == major)
        return any(runs(kind, int(number)) for kind, number in (name.split("_") for name in self.manifest["architectures"]))

    def command(self, part, *flags):
        return [str(self.runner), part, str(self.plugin), *map(str, flags)]

    def environment(self, **more):
        """For Sluice's programs alone: a Python has its own libraries."""
        folders = [str(self.folder / "lib"), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
        return dict(os.environ, LD_LIBRARY_PATH=":".join(filter(None, folders)), SLUICE_BACKEND_PATH=str(self.folder / "backends"),
                    **libraries.variables(self.libraries), **more)

    def find_sanitizer(self):
        homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
        for home in [*homes, Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-*"), reverse=True)]:
            for place in ("bin", "compute-sanitizer", "extras/compute-sanitizer"):
                if os.access(home / place / "compute-sanitizer", os.X_OK) and (home / place / "compute-sanitizer").is_file():
                    return str(home / place / "compute-sanitizer")
        return shutil.which("compute-sanitizer") or ""

    def json(self):
        return {"driver": version_text(self.driver), "devices": self.devices, "emulated": self.emulated, "libc": " ".join(platform.libc_ver()),
                "built": self.manifest}

    def text(self):
        device = self.devices[0]
        others = f", and {len(self.devices) - 1} more" if len(self.devices) > 1 else ""
        return f"{device['name']} of compute capability {device['capability']}{others}, driver for CUDA {version_text(self.driver)}"
