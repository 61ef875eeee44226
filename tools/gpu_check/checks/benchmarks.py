"""Training steps on the device beside the frameworks found here. Ours and a peer's alternate, so that what a machine does
meanwhile is done to both; of each the median of its rounds counts."""

import json
import queue
import statistics
import subprocess
import time

from machine import end_of
from parts import Talk
from report import row

ROUNDS = 3
SECONDS = 0.4  # of a round
BEGIN = 75  # seconds in which a peer must be ready: it may compile

# The frameworks, what of each is measured, and what it calls the device. TF32 is another arithmetic than ours: beside it.
PEERS = {
    "torch": (("eager", "eager+cl", "compile", "compile+cl", "compile+graphs", "eager+cl+tf32", "compile+cl+graphs+tf32"), "cuda"),
    "jax": (("jit", "jit+tf32"), "cuda"),
}


class Unmeasured(Exception):
    pass


def bench(machine, program, entry, deadline, flags=(), seconds=SECONDS):
    command = [machine.folder / "models" / program, "bench", "--entry", entry, "--json", "-q", "--seconds", str(seconds), *flags]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=machine.environment(), check=False,
                              timeout=max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as late:
        raise Unmeasured("its time was over") from late
    if done.returncode:
        raise Unmeasured(f"it {end_of(done.returncode)}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Peer:
    """A process that has its step ready and measures when it is told to."""

    def __init__(self, machine, framework, net, batch, variant, deadline):
        script = machine.folder / "peers" / f"peer_{framework}.py"
        self.talk = Talk([machine.python, str(script), net, str(batch), variant, PEERS[framework][1]], None, stdin=subprocess.PIPE)
        try:
            self.hear(min(deadline, time.monotonic() + BEGIN))
        except Unmeasured:
            self.close()
            raise

    def hear(self, deadline):
        try:
            said = self.talk.next(deadline, silence=BEGIN)
        except queue.Empty as late:
            raise Unmeasured("no answer in time") from late
        if said is None:
            raise Unmeasured(f"it {self.talk.end()[1]}")
        return said

    def measure(self, deadline):
        self.talk.process.stdin.write(f"{SECONDS}\n")
        self.talk.process.stdin.flush()
        return self.hear(deadline)["median_ms"]

    def close(self):
        self.talk.close()


def beside(machine, net, framework, variant, deadline):
    """The medians of ours and of a peer's, in alternating rounds."""
    peer = Peer(machine, framework, net["net"], net["batch"], variant, deadline)
    ours, theirs = [], []
    try:
        for _ in range(ROUNDS):
            ours.append(bench(machine, net["program"], "train_step", deadline)["median_ms"])
            theirs.append(peer.measure(deadline))
        return statistics.median(ours), statistics.median(theirs)
    finally:
        peer.close()


def frameworks(machine, deadline):
    """The names of those that see the device, and why others are left out."""
    asks = {"torch": "import torch; assert torch.cuda.is_available(), 'it sees no device'; print(torch.__version__)",
            "jax": "import jax; assert jax.devices()[0].platform in ('gpu', 'cuda'), 'it sees no device'; print(jax.__version__)"}
    for name, ask in asks.items():
        try:
            found = subprocess.run([machine.python, "-c", ask], capture_output=True, text=True, check=False,
                                   timeout=max(1, min(60, deadline - time.monotonic())))
            why = found.stderr.strip().splitlines()[-1:] if found.returncode else []
        except subprocess.TimeoutExpired:
            why = ["no answer in time"]
        yield name, why[0] if why else ""


def peaks(machine, deadline):
    found = subprocess.run(machine.command("peaks", "--folder", machine.packs, "--seconds", 0.5), capture_output=True, text=True, check=False,
                           env=machine.environment(), timeout=max(1, deadline - time.monotonic()))
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    if found.returncode or not lines:
        return row("benchmarks", "peak", "failed", f"the runner {end_of(found.returncode)}: {found.stderr.strip()[-300:]}")
    peak = row("benchmarks", **{"detail": "", **lines[-1]})
    if "flops" in peak:
        peak["detail"] = (f"{peak['flops'] / 1e12:.1f} TFLOP/s in f32, {peak['bandwidth'] / 1e12:.2f} TB/s; "
                          f"from the host {peak['upload'] / 1e9:.1f} GB/s, to it {peak['download'] / 1e9:.1f} GB/s")
    return peak


def figure(name, ms, ratio, **more):
    return row("benchmarks", name, "measured", "", ms=ms, ratio=ratio, **more)


def measure_net(machine, net, found, peak, deadline):
    label = f"{net['net']} {net['batch']}"
    try:
        alone = bench(machine, net["program"], "train_step", deadline)
    except Unmeasured as why:
        yield row("benchmarks", f"{label} sluice", "failed", str(why))
        return
    share = {"share": alone["gflops"] * 1e9 / peak["flops"]} if "flops" in peak else {}
    yield figure(f"{label} sluice", alone["median_ms"], 1.0, **share)
    for framework in found:
        for variant in PEERS[framework][0]:
            if time.monotonic() >= deadline - 1:
                yield row("benchmarks", f"{label} {framework} {variant}", "not tried", "there is no time left")
                continue
            try:
                ours, theirs = beside(machine, net, framework, variant, deadline)
                yield figure(f"{label} {framework} {variant}", theirs, theirs / ours, ours_ms=ours)
            except Unmeasured as why:
                yield row("benchmarks", f"{label} {framework} {variant}", "not tried", str(why))


def benchmarks(machine, deadline):
    if machine.emulated:
        yield row("benchmarks", "benchmarks", "not tried", "emulated: no figures")
        return
    peak = peaks(machine, deadline)
    yield peak
    found = []
    for name, why in frameworks(machine, deadline):
        if why:
            yield row("benchmarks", name, "not tried", why)
        else:
            found.append(name)
    for net in machine.manifest["benchmarks"]:
        yield from measure_net(machine, net, found, peak, deadline)
