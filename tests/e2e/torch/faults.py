"""Injects faults into correct cases; the comparison must detect each in at least one case. Faults are a gradient
with an error of one percent, another attribute value, and inaccurate, unknown or missing results."""

import collections
import functools
import itertools

NO_GRADIENT = {"ceil", "floor", "full", "iota", "one_hot", "round", "sign", "stop_gradient"}
NAMES = {"name", "state", "dtype", "type"}  # attributes that are not numbers
TRIES = 6  # per kind in one case
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def place(name):
    """The part of a case that contains this result, and its name there."""
    if name == "loss":
        return "trained", "loss"
    if name.startswith("predict "):
        return "predicted", name.removeprefix("predict ")
    if name.startswith("gradient of "):
        return "after", name.removeprefix("gradient of ") + ".momentum_buffer"
    return "after", name.removeprefix("new ")


def gradients(case, expected):
    """(kind, the faulty results) for each op with an inaccurate gradient."""
    for number, op in enumerate(case["model"]["ops"]):
        floats = [type_["dtype"] for type_ in op["types"] if type_["dtype"].startswith("f")]
        if floats and op["op"] not in NO_GRADIENT:
            yield f"gradient of {op['op']}", functools.partial(expected, case, wrong=number)


def others(value):
    """Alternative values of an attribute."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        return [value * 1.05 + 0.001]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, list):
        changed = [value[:i] + [value[i] + step] + value[i + 1:] for i in range(len(value)) for step in (1, -1)]
        return changed + [value[::-1], value[1:] + value[:1]]
    return [name for name in PREDICATES if f" {name}>" not in value]


def with_attribute(case, number, name, value):
    ops = list(case["model"]["ops"])
    ops[number] = {**ops[number], "attributes": {**ops[number]["attributes"], name: value}}
    return {**case, "model": {**case["model"], "ops": ops}}


def attributes(case, expected):
    """(kind, the faulty results) for each attribute of an op with other values."""
    for number, op in enumerate(case["model"]["ops"]):
        for name, value in op["attributes"].items():
            kind = f"{op['op']}.{name}"
            for other in () if name in NAMES else others(value):
                yield kind, functools.partial(expected, with_attribute(case, number, name, other))


def changed(exact, faulty):
    return any(len(value) != len(faulty[name]) or bool(((value - faulty[name]).abs() > 1e-9 * value.abs().max()).any())
               for name, value in exact.items())


def scaled(values):
    largest = max(range(len(values)), key=lambda i: abs(values[i]))
    values[largest] *= 1.001


def doubled(values):
    values[:] = [2 * value for value in values]


def zeroed(values):
    values[:] = [0.0] * len(values)


def unknown(values):
    values[0] = float("nan")


RESULT_FAULTS = (scaled, zeroed, unknown, list.clear, list.pop)
LARGE_FAULTS = (doubled, zeroed, unknown, list.clear, list.pop)


class Planted:
    """The kinds of faults that were injected, and those that were detected."""

    def __init__(self):
        self.kinds, self.noticed = set(), set()

    def judge(self, case, exact, differences, expected):
        """Injects faults of undetected kinds, into one or two ops of a kind. differences(case, exact) returns the
        differences; expected(case, wrong=number) returns the results of a faulty model."""
        if not self.kinds:
            self.plant_in_results(case, [place(name) for name in exact], lambda faulty: differences(faulty, exact))
        tried = collections.Counter()
        for kind, plant in itertools.chain(gradients(case, expected), attributes(case, expected)):
            tried[kind] += 1
            if tried[kind] <= TRIES and kind not in self.noticed:
                self.plant_in_model(kind, plant, exact, lambda faulty: differences(case, faulty))

    def judge_large(self, case, exact, differences):
        """For cases where rounding is larger than the faults of `judge`: injects faults into the results only, in
        every case."""
        for part, name in [place(name) for name in exact]:
            for fault in LARGE_FAULTS if any(case[part][name]) else ():
                faulty = {**case, part: {**case[part], name: list(case[part][name])}}
                fault(faulty[part][name])
                self.count(f"{fault.__name__} {part}", differences(faulty, exact))

    def plant_in_model(self, kind, plant, exact, differences):
        try:
            faulty = plant()
        except Exception:  # any exception: the correct case ran, so PyTorch rejects the faulty model
            return
        if kind.startswith("gradient") or changed(exact, faulty):  # another attribute value may be equivalent
            self.count(kind, differences(faulty))

    def plant_in_results(self, case, places, differences):
        for part, name in places:
            for fault in RESULT_FAULTS if any(case[part][name]) else ():
                faulty = {**case, part: {**case[part], name: list(case[part][name])}}
                fault(faulty[part][name])
                self.count(f"{fault.__name__} {part} {name}", differences(faulty))

    def count(self, kind, differences):
        self.kinds.add(kind)
        if differences:
            self.noticed.add(kind)

    def report(self):
        """Prints the kinds that were never detected; returns whether there are any."""
        for kind in sorted(self.kinds - self.noticed):
            print("NOT NOTICED:", kind)
        print(f"{len(self.noticed)} of {len(self.kinds)} kinds of planted faults noticed")
        return self.kinds != self.noticed
