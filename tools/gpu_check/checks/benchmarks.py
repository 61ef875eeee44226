"""Training steps on the device compared with the installed frameworks. Sluice and a peer alternate, so that other
load affects both; the median of the rounds counts."""

import json
import queue
import statistics
import subprocess
import time

from machine import end_of
from parts import Talk
from report import row

SECONDS = 0.3  # per round
BEGIN = 100  # limit in seconds until a peer is ready: it may compile, with others at the same time
ENTRIES = {"train": "train_step", "infer": "predict"}

# The most informative first: for every network Sluice, then peers that start at once, then those that compile.
ORDER = (("train", "bf16"), ("train", "f32"), ("infer", "bf16"), ("infer", "f32"), ("train", "tf32"), ("infer", "tf32"))
QUICK = ("eager", "jit")

# For each framework: the variants by precision, and the name of the device.
PEERS = {
    "torch": ({"f32": ("eager", "eager+cl", "compile", "compile+cl", "compile+cl+graphs"),
               "tf32": ("eager+cl+tf32", "compile+cl+graphs+tf32"),
               "bf16": ("eager+cl+bf16", "compile+cl+graphs+bf16")}, "cuda"),
    "jax": ({"f32": ("jit",), "tf32": ("jit+tf32",), "bf16": ("jit+bf16",)}, "cuda"),
}


class Unmeasured(Exception):
    result = "failed"


class TimeIsOver(Unmeasured):
    result = "not tried"


def bench(machine, program, entry, deadline, flags=(), seconds=SECONDS):
    """The program's output, with the milliseconds of a step as `ms`: the average over consecutive steps, until the
    last has ended."""
    command = [machine.program(program), "bench", "--entry", entry, "--json", "-q", "--seconds", str(seconds), *flags]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=machine.environment(), check=False,
                              timeout=max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as late:
        raise TimeIsOver("its time was over") from late
    if done.returncode:
        raise Unmeasured(f"it {end_of(done.returncode)}: {done.stderr.strip()[-300:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    ms = said.get("untimed_ms", said["median_ms"])
    return said | {"ms": ms, "gflops": said["gflops"] * said["median_ms"] / ms}


class Peer:
    """A process that prepares its step in parallel with others, and measures on request."""

    def __init__(self, machine, framework, net, mode, variant):
        script, batch = machine.folder / "peers" / f"peer_{framework}.py", rows_of(net)
        self.talk = Talk([machine.python, str(script), net["net"], mode, batch, variant, PEERS[framework][1]], None, stdin=subprocess.PIPE)
        self.times, self.why = [], ""

    def try_to(self, what, deadline):
        """Reports its failure once; afterwards it is not queried."""
        if self.why:
            return
        try:
            what(self, deadline)
        except Unmeasured as why:
            self.why = str(why)

    def begin(self, deadline):
        self.hear(min(deadline, time.monotonic() + BEGIN))

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
        self.times.append(self.hear(deadline)["ms"])

    def close(self):
        self.talk.close()


def frameworks(machine, deadline):
    """The frameworks that can use the device, and the reasons why others are skipped."""
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
                          f"from the host {peak['upload'] / 1e9:.1f} GB/s, to it {peak['download'] / 1e9:.1f} GB/s: "
                          f"copies within the device are {peak['bandwidth'] / 2 / peak['upload']:.0f} times as fast as those from the host")
    return peak


def rows_of(net):
    return str(net["batch"]) + (f"x{net['length']}" if net.get("length") else "")


def figure(name, ms, ratio, **more):
    return row("benchmarks", name, "measured", "", ms=ms, ratio=ratio, **more)


def most_of(machine, precision, peak, deadline):
    """Operations per second: of multiply-adds alone or, with tensor cores, of a large product."""
    if precision == "f32":
        return peak.get("flops")
    try:
        return bench(machine, machine.manifest["products"][precision], "predict", deadline)["gflops"] * 1e9
    except Unmeasured:
        return None


def label_of(net, mode):
    return f"{net['net']} {mode} {rows_of(net)} {net['precision']}"


def peers_of(machine, net, found, quick):
    """The frameworks and variants of the quick or of the long measurements."""
    return [(framework, variant) for framework in found for variant in PEERS[framework][0].get(net["precision"], ())
            if (variant.split("+")[0] in QUICK) == quick and (machine.variants is None or variant in machine.variants)]


class Benchmark:
    """One network in one mode and precision, alone or with some of its peers."""

    def __init__(self, machine, net, mode, peers=()):
        self.machine, self.net, self.mode, self.label = machine, net, mode, label_of(net, mode)
        self.peers = {f"{framework} {variant}": Peer(machine, framework, net, mode, variant) for framework, variant in peers}

    def ours(self, deadline):
        return bench(self.machine, self.net["program"], ENTRIES[self.mode], deadline)

    def begin(self, deadline):
        for peer in self.peers.values():
            peer.try_to(Peer.begin, deadline)

    def alone(self, most, deadline):
        """Sluice alone, in one row."""
        if time.monotonic() >= deadline - 1:
            return row("benchmarks", f"{self.label} sluice", "not tried", "there is no time left")
        try:
            ours = self.ours(deadline)
        except Unmeasured as why:
            return row("benchmarks", f"{self.label} sluice", why.result, str(why))
        return figure(f"{self.label} sluice", ours["ms"], 1.0, **({"share": ours["gflops"] * 1e9 / most} if most else {}))

    def measure(self, deadline):
        """Sluice and the peers alternate."""
        times = []
        for _ in range(self.machine.rounds if any(not peer.why for peer in self.peers.values()) else 0):
            times.append(self.ours(deadline)["ms"])
            for peer in self.peers.values():
                peer.try_to(Peer.measure, deadline)
        mine = statistics.median(times) if times else 0
        for name, peer in self.peers.items():
            if peer.times:
                theirs = statistics.median(peer.times)
                yield figure(f"{self.label} {name}", theirs, theirs / mine, ours_ms=mine)
            else:
                yield row("benchmarks", f"{self.label} {name}", "not tried", peer.why or "there is no time left")

    def rows(self, deadline):
        try:
            yield from self.measure(deadline)
        except Unmeasured as why:
            yield row("benchmarks", f"{self.label} sluice beside {', '.join(self.peers)}", why.result, str(why))

    def close(self):
        for peer in self.peers.values():
            peer.close()


def several(machine, jobs, deadline):
    """Benchmarks whose peers prepare in parallel."""
    if time.monotonic() >= deadline - 1:
        for net, mode, peers in jobs:
            for framework, variant in peers:
                yield row("benchmarks", f"{label_of(net, mode)} {framework} {variant}", "not tried", "there is no time left")
        return
    together = [Benchmark(machine, *job) for job in jobs]
    try:
        for benchmark in together:
            benchmark.begin(deadline)
        for benchmark in together:
            yield from benchmark.rows(deadline)
            benchmark.close()
    finally:
        for benchmark in together:
            benchmark.close()


def in_order(machine):
    """The networks with their modes."""
    nets = [net for net in machine.manifest["benchmarks"] if not machine.nets or net["net"] in machine.nets]
    return [(net, mode) for mode, precision in ORDER if mode in machine.modes for net in nets if net["precision"] == precision]


def benchmarks(machine, deadline):
    peak = peaks(machine, deadline)
    yield peak
    if machine.emulated:
        yield row("benchmarks", "benchmarks", "not tried", "emulated: no figures")
        return
    jobs, measured = in_order(machine), []
    most = {precision: most_of(machine, precision, peak, deadline) for precision in dict.fromkeys(net["precision"] for net, _ in jobs)}
    for net, mode in jobs:
        ours = Benchmark(machine, net, mode).alone(most[net["precision"]], deadline)
        yield ours
        measured += [(net, mode)] if "ms" in ours else []
    found = []
    for name, why in frameworks(machine, deadline) if machine.variants != [] else ():
        if why:
            yield row("benchmarks", name, "not tried", why)
        else:
            found.append(name)
    for quick in (True, False):
        beside = [(net, mode, peers) for net, mode in measured if (peers := peers_of(machine, net, found, quick))]
        for first in range(0, len(beside), machine.ahead):
            yield from several(machine, beside[first:first + machine.ahead], deadline)
