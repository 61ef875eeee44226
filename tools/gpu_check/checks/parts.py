"""The parts that the runner executes, each in separate processes, which may crash or hang."""

import json
import os
import queue
import subprocess
import threading
import time

from libraries import LIBRARIES
from machine import end_of, stop
from report import row

MOST_RESTARTS = 8
LAST_SECONDS = 10  # between the last output of a process and its end

# Tools of compute-sanitizer.
TOOLS = ("memcheck", "racecheck", "initcheck")
FAULTS_FOUND = 9


class Talk:
    """A process and the lines of JSON that it prints."""

    def __init__(self, command, environment, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                        start_new_session=True)
        self.lines, self.errors = queue.Queue(), []
        self.readers = [threading.Thread(target=self.read, daemon=True), threading.Thread(target=self.read_errors, daemon=True)]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def read_errors(self):
        self.errors += self.process.stderr.readlines()[-5:]

    def next(self, deadline, silence):
        """The next line, None at the end; raises queue.Empty at the deadline or after `silence` seconds."""
        return self.lines.get(timeout=max(0.01, min(silence, deadline - time.monotonic())))

    def close(self):
        stop(self.process)
        for reader in self.readers:
            reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()

    def end(self):
        """Its exit code, and a description of its end with its last output."""
        try:
            code = self.process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            return 1, "does not end"
        self.readers[1].join(LAST_SECONDS)
        said = "".join(self.errors).strip()
        return code, end_of(code) + (f": {said[-400:]}" if said else "")


def listen(machine, part, name, deadline, *flags):
    """The rows of a run of the runner; the last one is a failure if the run ended abnormally. Yields (row, kernel
    that has begun)."""
    talk, begun = Talk(machine.command(name, *flags), machine.environment()), None
    try:
        while True:
            begin = time.monotonic()
            try:
                said = talk.next(deadline, machine.silence)
            except queue.Empty:
                silent = time.monotonic() - begin
                hangs = silent >= machine.silence
                yield row(part, begun or part, *(("failed", f"no answer in {silent:.0f} s") if hangs else ("not tried", "its time was over"))), begun
                return
            if said is None:
                break
            if "begins" in said:
                begun = said["begins"]
            elif "result" in said:
                yield row(part, **{"detail": "", **said}), None
                begun = None
        code, how = talk.end()
        if code != 0:
            yield row(part, begun or part, "failed", f"the process {how}"), begun
    finally:
        talk.close()


def contracts(machine, deadline):
    for found, _ in listen(machine, "contracts", "contracts", deadline, "--folder", machine.packs):
        yield found


def conformance(machine, deadline):
    for found, _ in listen(machine, "conformance", "conformance", deadline):
        yield found


def kernels_of(machine, model, deadline):
    """Continues after a kernel that ended the process."""
    products = ("--products", "both") if machine.libraries["cublasLt"].path else ()
    flags, after = ("--folder", machine.packs, "--model", model, *products), ()
    for _ in range(MOST_RESTARTS):
        lost = None
        for found, begun in listen(machine, "kernels", "kernels", deadline, *flags, *after):
            found["name"] = f"{model} {found['name']}"
            lost = begun or lost
            yield found
        if not lost:
            return
        if time.monotonic() >= deadline:
            yield row("kernels", f"{model} behind {lost}", "not tried", "there is no time left")
            return
        after = ("--after", lost)
    yield row("kernels", f"{model} behind {lost}", "not tried", f"{MOST_RESTARTS} kernels have ended the process")


def kernels(machine, deadline):
    for model in machine.manifest["packs"]:
        if time.monotonic() >= deadline:
            yield row("kernels", model, "not tried", "there is no time left")
            continue
        yield from kernels_of(machine, model, deadline)


def sanitize(machine, tool, model, deadline):
    """Only kernels of Sluice, whose memory is as the driver returns it."""
    flags = ("--folder", machine.packs, "--model", model, "--bare", "--products", "own")
    command = [machine.sanitizer, "--tool", tool, "--error-exitcode", str(FAULTS_FOUND), *machine.command("kernels", *flags)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=machine.environment(), start_new_session=True)
    try:
        text, _ = process.communicate(timeout=max(0.01, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        stop(process)
        return "not tried", "its time was over"
    summaries = [line.strip("= \n") for line in text.splitlines() if "ERROR SUMMARY" in line]
    first = next((line.strip("= \n") for line in text.splitlines() if line.startswith("========= ") and "COMPUTE-SANITIZER" not in line), "")
    if process.returncode == 0 and summaries:
        return "passed", summaries[-1]
    if process.returncode == FAULTS_FOUND:
        return "failed", f"{summaries[-1] if summaries else 'faults'}; the first: {first}"
    return "failed", f"the tool {end_of(process.returncode)}: {text.strip()[-300:]}"


def sanitizer(machine, deadline):
    if machine.emulated and not machine.sanitizer_named:
        yield row("sanitizer", "compute-sanitizer", "not tried", "the device is emulated")
        return
    if not machine.sanitizer:
        yield row("sanitizer", "compute-sanitizer", "not tried", "it is neither in PATH nor in a toolkit of CUDA_HOME or /usr/local")
        return
    for model in machine.manifest["sanitized"]:
        for tool in TOOLS:
            result, detail = sanitize(machine, tool, model, deadline)
            yield row("sanitizer", f"{tool} {model}", result, detail)


def libraries(machine, _deadline):
    """Libraries passed to every program."""
    for name, found in machine.libraries.items():
        if found.path:
            yield row("libraries", name, "passed", f"{found.path}, version {found.version}")
        else:
            yield row("libraries", name, "failed" if os.environ.get(LIBRARIES[name].variable) else "not tried", found.why)
