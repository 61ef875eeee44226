"""Random programs of functions on arrays, run by array_programs, compared with PyTorch in double precision: values, and
gradients of the sum of squares.

Usage: programs_test.py SOURCE_ROOT BUILD_ROOT

With SLUICE_TEST_FULL=1, 500 programs instead of 100."""

import json
import math
import os
import subprocess
import sys

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import torch  # noqa: E402: of the environment entered above
import torch.nn.functional as F  # noqa: E402

FULL = bool(os.environ.get("SLUICE_TEST_FULL"))
# Devices, seeds: a fifth of the programs runs on emulated CUDA devices.
GROUPS = [("cpu", range(0, 40)), ("cpu,sim:0,sim:1", range(40, 80)), ("cpu,cuda:0,cuda:1", range(80, 100))]
if FULL:
    GROUPS = [("cpu", range(0, 200)), ("cpu,sim:0,sim:1", range(200, 400)), ("cpu,cuda:0,cuda:1", range(400, 500))]
MOST = 12  # functions of a program


def reduce(x, dim, keep, function):
    return function(x, dim=dim, keepdim=bool(keep))


STEPS = {
    "log1p": lambda x: torch.log1p(x * x),
    "sqrt": lambda x: torch.sqrt(x * x + 1),
    "div": lambda x, y: x / (y * y + 1),
    "add_number": lambda x, n: x + n,
    "number_mul": lambda x, n: n * x,
    "where": lambda x, y, z: torch.where(x > 0, y, z),
    "masked_fill": lambda x, y, n: x.masked_fill(y < 0, n),
    "sum": lambda x, d, k: reduce(x, d, k, torch.sum),
    "mean": lambda x, d, k: reduce(x, d, k, torch.mean),
    "max": lambda x, d, k: torch.amax(x, d, bool(k)),
    "var": lambda x, d, k: torch.var(x, d, correction=0, keepdim=bool(k)),
    "logsumexp": lambda x, d, k: torch.logsumexp(x, d, bool(k)),
    "softmax": lambda x, d: torch.softmax(x, d),
    "log_softmax": lambda x, d: torch.log_softmax(x, d),
    "cumsum": lambda x, d: torch.cumsum(x, d),
    "reshape": lambda x, *shape: x.reshape(shape),
    "expand": lambda x, *shape: x.expand(shape),
    "slice": lambda x, d, start, end, step: x[(slice(None),) * d + (slice(start, end, step),)],
    "flip": lambda x, d: torch.flip(x, [d]),
    "pad": lambda x, before, after, n: F.pad(x, (before, after), value=n),
    "cat": lambda x, y, d: torch.cat([x, y], d),
    "stack": lambda x, y, d: torch.stack([x, y], d),
    "layer_norm": lambda x, size: F.layer_norm(x, (size,)),
    "to": lambda x, place: x,
}


def function_of(op):
    return STEPS.get(op) or getattr(torch, op, None) or getattr(F, op)


def evaluate(case):
    """The last value, and the gradients of the sum of its square."""
    inputs = [torch.tensor(x, dtype=torch.float64).reshape(shape).requires_grad_()
              for x, shape in zip(case["inputs"], case["shapes"])]
    values = list(inputs)
    for step in case["steps"]:
        operands = [values[i] for i in step["operands"]]
        if step["op"] == "index_select":
            value = torch.index_select(operands[0], step["integers"][0], torch.tensor(case["index"]))
        else:
            value = function_of(step["op"])(*operands, *step["integers"], *step["numbers"])
        values.append(value)
    (values[-1] ** 2).sum().backward()
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in inputs]
    return values[-1], gradients


def deviation(ours, theirs):
    """The largest difference, relative to the largest element."""
    theirs = theirs.detach().reshape(-1)
    ours = torch.tensor(ours, dtype=torch.float64)
    if ours.shape != theirs.shape:
        return math.inf
    return float((ours - theirs).abs().max() / max(1.0, float(theirs.abs().max())))


def main():
    failures, worst, used, programs = [], 0.0, set(), 0
    for devices, seeds in GROUPS:
        command = [os.path.join(BUILD, "tests", "array_programs"), devices, str(MOST), *map(str, seeds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                case = json.loads(line)
                programs += 1
                if "steps" in case:
                    used.update(step["op"] for step in case["steps"])
                    value, gradients = evaluate(case)
                    deviations = [deviation(case["value"], value)]
                    deviations += [deviation(*pair) for pair in zip(case["gradients"], gradients)]
                    worst = max(worst, *deviations)
                    if not max(deviations) <= 1e-11:
                        case.setdefault("error", f"differs from PyTorch by {max(deviations):.2g}: {deviations}")
                if "error" in case:
                    failures.append(f"{case['name']}: {case['error']}")
        if process.returncode:
            failures.append(f"{devices}: array_programs ended with {process.returncode}")
    print(f"{programs} programs of {len(used)} functions; the largest deviation is {worst:.2g}")
    for failure in failures:
        print(failure)
    expected = sum(len(seeds) for _, seeds in GROUPS)
    if programs != expected or len(used) < 40:
        print(f"{expected} programs of at least 40 functions are expected")
        return True
    return bool(failures)


sys.exit(main())
