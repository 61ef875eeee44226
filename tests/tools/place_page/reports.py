"""Reports in the format of `sluice place --json`, for fictitious networks."""

import copy
import random

KINDS = {
    "conv2d": 1.0,
    "conv2d_grad": 1.8,
    "einsum": 0.8,
    "elementwise": 0.15,
    "reduce": 0.1,
    "batch_norm": 0.2,
    "sgd": 0.05,
    "pool": 0.12,
    "softmax": 0.06,
}


def report(groups, seed=1, accelerators=1, host_share=0.1):
    """A chain with skip connections: a group runs when its device is free and its operands are there; copies overlap
    with work."""
    rng = random.Random(seed)
    devices = ["cpu"] + [f"sim:{i}" for i in range(accelerators)]
    free = {name: 0.0 for name in devices}
    made, copies, steps = [], [], {name: [[0.0, 0]] for name in devices}
    arrived = {}
    for i in range(groups):
        kind = rng.choices(list(KINDS), weights=[4, 4, 2, 5, 2, 4, 3, 1, 1])[0]
        device = devices[0] if rng.random() < host_share else devices[1 + i * accelerators // groups]
        cpu = KINDS[kind] * rng.uniform(0.5, 2)
        ms = {name: cpu if name == "cpu" else cpu / rng.uniform(4, 12) for name in devices}
        if kind == "pool":
            ms[devices[-1]] = None
            device = "cpu" if device == devices[-1] else device
        reads = sorted({max(0, i - 1), max(0, i - rng.randint(1, 9))} - {i})
        start = free[device]
        for read in reads:
            start = max(start, arrive(made, copies, arrived, read, device, rng))
        end = start + ms[device]
        free[device] = end
        steps[device].append([start, int(2e6 + 4e7 * rng.random())])
        made.append(
            {
                "name": f"{kind}_{i}",
                "kind": kind,
                "device": device,
                "ops": ["sluice." + kind, "sluice.relu"],
                "source": f"net.cpp:{20 + i}:3",
                "reason": (
                    "pinned by the user"
                    if i % 37 == 5
                    else f"faster on {device}, counting its copies" if device != "cpu" else "its values live on the host"
                ),
                "ms": ms,
                "reads": reads,
                "start_ms": start,
                "end_ms": end,
            }
        )
    for item in copies:
        after = [g["start_ms"] for j, g in enumerate(made) if j in item["consumers"]]
        before = max((g["end_ms"] for g in made if g["device"] == item["to"] and g["end_ms"] <= min(after)), default=0)
        item["hidden"] = before >= item["end_ms"] - 1e-9 or rng.random() < 0.5
    for i in range(3):
        copies.append(
            {
                "value": f"lr_{i}",
                "from": "cpu",
                "to": devices[-1],
                "bytes": 4,
                "reason": "a state that the host sets",
                "when": "stale",
                "source": "net.cpp:9:1",
                "predicted_ms": 0.005,
                "hidden": True,
            }
        )
    span = max(group["end_ms"] for group in made)
    all_cpu = sum(group["ms"]["cpu"] for group in made)
    return {
        "model": "residual",
        "entry": "train_step",
        "rows": 256,
        "predicted_ms": span,
        "gap": 0.004,
        "objective": "the sum of the groups' times and of one copy per value and direction, without overlap",
        "devices": [
            {
                "name": "cpu" if name == "cpu" else f"gpu({i - 1})",
                "spelling": name,
                "costs": "measured" if i < 2 else "roofline",
                "cap_bytes": None if name == "cpu" else 64_000_000,
            }
            for i, name in enumerate(devices)
        ],
        "links": [
            {"from": a, "to": b, "bytes_per_second": 1.2e10, "latency_s": 5e-6, "source": "measured"}
            for a in devices
            for b in devices
            if (a == "cpu") != (b == "cpu")
        ],
        "alternatives": {"all cpu": all_cpu, "all sim:0": None, "as pinned": span * 1.21},
        "peak_bytes": {name: 9_000_000 + max(bytes_ for _, bytes_ in steps[name]) for name in devices},
        "groups": made,
        "copies": copies,
        "memory": {name: {"state_bytes": 9_000_000, "steps": steps[name]} for name in devices},
    }


def arrive(made, copies, arrived, read, device, rng):
    """The time when the value of group `read` is on `device`; adds the required copy."""
    group = made[read]
    if group["device"] == device:
        return group["end_ms"]
    if (read, device) not in arrived:
        size = rng.randint(1, 4_000_000)
        ms = 0.005 + size / 1.2e10 * 1e3
        queue = (device + ".in") if device != "cpu" else group["device"] + ".out"
        start = max([group["end_ms"]] + [c["end_ms"] for c in copies if c["queue"] == queue])
        arrived[read, device] = {
            "value": "value_" + group["name"],
            "from": group["device"],
            "to": device,
            "bytes": size,
            "reason": "placement",
            "when": "step",
            "source": group["source"],
            "predicted_ms": ms,
            "start_ms": start,
            "end_ms": start + ms,
            "queue": queue,
            "producer": read,
            "consumers": [],
        }
        copies.append(arrived[read, device])
    arrived[read, device]["consumers"].append(len(made))
    return arrived[read, device]["end_ms"]


def measured(predicted, seed=2):
    """A plausible measurement of it: each item off by up to 15 %, and delayed by late predecessors."""
    rng = random.Random(seed)
    items = [(g["start_ms"], g["end_ms"], g["name"], g["device"]) for g in predicted["groups"]]
    items += [(c["start_ms"], c["end_ms"], c["value"], c["queue"]) for c in predicted["copies"] if "queue" in c]
    free, work = {}, []
    for start, end, name, queue in sorted(items):
        begin = max(start * 1.03, free.get(queue, 0))
        free[queue] = begin + (end - start) * rng.uniform(0.9, 1.15)
        work.append({"name": name, "queue": queue, "start_ms": 100 + begin, "end_ms": 100 + free[queue]})
    rng.shuffle(work)
    return {"measured_ms": max(free.values()), "clock": "device", "work": work}


NASTY = [
    "</script><script>window.stolen = 1</script>",
    "<!-- <script>",
    "\"'`${window.stolen = 2}\\",
    "\u2028\u2029\u0000\x1b[31m",
    "<img src=x onerror=window.stolen=3>",
    "{{report}}",
    "__proto__",
    "مرحبا 名前 𝒳 👩‍👩‍👧",
    "x" * 10_000,
    "",
    "&lt;b&gt;",
    "]]>",
]


def hostile():
    """Replaces every text of a report by one that could break out of the page."""
    made = copy.deepcopy(report(5 * len(NASTY)))
    for i, group in enumerate(made["groups"]):
        nasty = NASTY[i % len(NASTY)]
        group.update(name=nasty, kind=nasty, reason=nasty, source=nasty, ops=[nasty])
    for i, item in enumerate(made["copies"]):
        item.update(value=NASTY[i % len(NASTY)], reason=NASTY[i % len(NASTY)], source=NASTY[i % len(NASTY)])
    made["model"] = made["entry"] = made["objective"] = NASTY[0]
    made["alternatives"] = {nasty: i for i, nasty in enumerate(NASTY)}
    return made


def small():
    """Written by hand, so that each number of the page can be checked."""

    def group(name, kind, device, reason, cpu, acc, reads, start, end, line):
        return {
            "name": name,
            "kind": kind,
            "device": device,
            "reason": reason,
            "ops": ["sluice." + kind],
            "source": f"small.cpp:{line}:3",
            "ms": {"cpu": cpu, "sim:0": acc},
            "reads": reads,
            "start_ms": start,
            "end_ms": end,
        }

    return {
        "model": "small",
        "entry": "train_step",
        "rows": 64,
        "predicted_ms": 1.234,
        "gap": 0.0,
        "objective": "the sum of all times, copies included",
        "devices": [
            {"name": "cpu", "spelling": "cpu", "costs": "measured", "cap_bytes": None},
            {"name": "gpu(0)", "spelling": "sim:0", "costs": "roofline", "cap_bytes": 40_000_000},
        ],
        "links": [{"from": "cpu", "to": "sim:0", "bytes_per_second": 1.2e10, "latency_s": 5e-6, "source": "given"}],
        "alternatives": {"all cpu": 9.1, "all sim:0": None, "as pinned": 3.2},
        "peak_bytes": {"cpu": 1_500_000, "sim:0": 23_456_789},
        "groups": [
            group("scale", "elementwise", "cpu", "pinned at small.cpp:11:3", 0.2, None, [], 0, 0.2, 11),
            group("conv", "conv2d", "sim:0", "0.31 ms here, 2.9 ms on cpu", 2.9, 0.31, [0], 0.3, 0.61, 12),
            group("loss", "softmax", "cpu", "its result is read on the host", 0.1, 0.08, [1], 0.7, 0.8, 13),
        ],
        "copies": [
            {
                "value": "scaled",
                "from": "cpu",
                "to": "sim:0",
                "bytes": 1_048_576,
                "reason": "placement",
                "when": "step",
                "source": "small.cpp:12:9",
                "predicted_ms": 0.1,
                "hidden": False,
                "start_ms": 0.2,
                "end_ms": 0.3,
            },
            {
                "value": "activation",
                "from": "sim:0",
                "to": "cpu",
                "bytes": 2_345_678,
                "reason": "placement",
                "when": "step",
                "source": "small.cpp:13:9",
                "predicted_ms": 0.09,
                "hidden": True,
                "start_ms": 0.61,
                "end_ms": 0.7,
            },
            {
                "value": "lr",
                "from": "cpu",
                "to": "sim:0",
                "bytes": 4,
                "reason": "set by the host",
                "when": "stale",
                "source": "small.cpp:3:1",
                "predicted_ms": 0.005,
                "hidden": True,
                "start_ms": None,
                "end_ms": None,
            },
        ],
        "memory": {
            "sim:0": {
                "state_bytes": 3_456_789,
                "steps": [[0, 0], [0.2, 1_048_576], [0.3, 20_000_000], [0.61, 2_345_678], [0.7, 0]],
            }
        },
    }
