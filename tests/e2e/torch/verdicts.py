"""Comparison of compiled models with the reference. Errors are judged by the effect of rounding on the reference's
own results. The reference runs again with the roundings of the model's type at random places."""

import torch

from faults import Planted, place
from reference import DTYPES, Reference

EPSILON = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-53}
HALVES = ("bf16", "f16")
# Rounding moves a result further than two random runs show: sums have another order, and functions have errors of some
# units. Ops on halves compute in f32 and round once, so their random runs are accurate. Halves have more random runs
# instead.
LEEWAY = {"bf16": 4, "f16": 4, "f32": 32, "f64": 32}
DRAWS = {"bf16": 8, "f16": 8, "f32": 2, "f64": 2}
# The fraction of models that may need a second check with more random runs; in f32 this includes large graphs. Causes:
# a value on the other side of a kink, complete cancellation in a sum, or a result that two random runs do not move.
# These models are named.
CLOSE_SHARE = 0.02
SECOND_LOOK = {"bf16": EPSILON["bf16"], "f16": EPSILON["f16"], "f32": 4 * EPSILON["f32"], "f64": EPSILON["f64"]}
GRANTED = {"f32": 16, "f64": 4}  # times the first bounds: about the maximum that a second check grants; injected faults
                                 # are larger


def tensor(values, described, rows):
    shape = [rows if size < 0 else size for size in described["shape"]]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).to(DTYPES[described["dtype"]])


def expected(case, epsilon=0.0, wrong=None):
    """All results by name: of `predict`, of the training step, gradients, and statistics after it."""
    model, rows = case["model"], case["rows"]
    inputs = {name: tensor(case["inputs"][name], described, rows) for name, described in model["inputs"].items()}

    def run(training):
        states = {op["attributes"]["state"]: tensor(case["before"][op["attributes"]["state"]], op["types"][0], rows)
                  for op in model["ops"] if op["op"] == "get"}
        return Reference(model, rows, states, inputs, training, epsilon, wrong)

    predicted, trained = run(training=False), run(training=True)
    results = {f"predict {name}": value for name, value in predicted.outputs.items() if name != "loss"}
    results["loss"] = trained.loss
    results.update({f"gradient of {name}": value for name, value in trained.gradients().items()})
    results.update({f"new {name}": value for name, value in trained.after.items()})
    return {name: value.detach().double().flatten() for name, value in results.items()}


def bounds(case, exact, epsilon, draws, leeway):
    """The bound of each result: its movement when operands are rounded at random."""
    moved = {name: torch.zeros(()).double() for name in exact}
    for seed in range(draws):
        torch.manual_seed(seed)
        for name, value in expected(case, epsilon).items():
            moved[name] = torch.maximum(moved[name], (value - exact[name]).abs().max())
    return {name: leeway * moved[name] + 4 * epsilon * value.abs().max() for name, value in exact.items()}


def differences(case, exact, allowed):
    """The differences: each result that is missing, exceeds its bound, or is not a number."""
    wrong = []
    for name, value in exact.items():
        part, key = place(name)
        got = case[part].get(key)
        if not got or len(got) != value.numel():
            wrong.append(f"{name}: {len(got or [])} elements in place of {value.numel()}")
            continue
        error = (torch.tensor([float("nan") if x is None else x for x in got], dtype=torch.float64) - value).abs()
        if not bool((error <= allowed[name]).all()):
            wrong.append(f"{name}: off by {error.max():.3g}, allowed {allowed[name]:.3g}, largest {value.abs().max():.3g}")
    return wrong


class Verdicts:
    """The outcome of the cases, and the reasons."""

    def __init__(self):
        self.checked, self.results, self.close, self.wrong = 0, 0, [], []
        self.planted = Planted()

    def check(self, case):
        self.checked += 1
        if "error" in case:
            return self.wrong.append(f"{case['name']}: {case['error']}")
        dtype = next(dtype for dtype in EPSILON if f" {dtype}" in case["name"])
        exact = expected(case)
        self.results += len(exact)
        if not any(name.startswith("gradient") and bool((value != 0).any()) for name, value in exact.items()):
            return self.wrong.append(f"{case['name']}: it has no gradient")
        allowed = bounds(case, exact, EPSILON[dtype], DRAWS[dtype], LEEWAY[dtype])
        wrong = differences(case, exact, allowed)
        if not wrong and dtype in HALVES:
            return self.planted.judge_large(case, exact, lambda case, exact: differences(case, exact, allowed))
        if not wrong:
            granted = {name: GRANTED[dtype] * allowed[name] for name in allowed}
            return self.planted.judge(case, exact, lambda case, exact: differences(case, exact, granted), expected)
        if not differences(case, exact, bounds(case, exact, SECOND_LOOK[dtype], 24, LEEWAY[dtype])):
            return self.close.append(f"{case['name']}: {wrong[0]}")
        return self.wrong.append(f"{case['name']}: " + "; ".join(wrong[:4]))

    def failed(self):
        """Prints the results; returns whether any case failed."""
        for line in self.close:
            print("close:", line)
        for line in self.wrong:
            print("WRONG:", line)
        print(f"{self.checked} models, {self.results} results, {len(self.close)} close, {len(self.wrong)} wrong")
        close = len(self.close) > 1 + CLOSE_SHARE * self.checked
        return any([self.planted.report(), self.wrong, close])
