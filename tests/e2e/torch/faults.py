"""Faults planted into cases that are right, each of which the comparison must notice in one of them at least: an op whose
gradient is off by one in a hundred, an attribute of another value, and results that are off, unknown or missing."""

import collections
import functools
import itertools

NO_GRADIENT = {"ceil", "floor", "full", "iota", "one_hot", "round", "sign", "stop_gradient"}
NAMES = {"name", "state", "dtype", "type"}  # attributes that are no numbers
TRIES = 6  # of a kind in one case
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def place(name):
    """Where a case has this result: a part of it, and the name there."""
    if name == "loss":
        return "trained", "loss"
    if name.startswith("predict "):
        return "predicted", name.removeprefix("predict ")
    if name.startswith("gradient of "):
        return "after", name.removeprefix("gradient of ") + ".momentum_buffer"
    return "after", name.removeprefix("new ")


def gradients(case, expected):
    """(kind, what the case would give) for each op with its gradient off."""
    for number, op in enumerate(case["model"]["ops"]):
        floats = [type_["dtype"] for type_ in op["types"] if type_["dtype"].startswith("f")]
        if floats and op["op"] not in NO_GRADIENT:
            yield f"gradient of {op['op']}", functools.partial(expected, case, wrong=number)


def others(value):
    """What an attribute could be instead."""
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
    """(kind, what the case would give) for each attribute of an op with other values."""
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
    """Which kinds of fault were planted, and which of them were noticed."""

    def __init__(self):
        self.kinds, self.noticed = set(), set()

    def judge(self, case, exact, differences, expected):
        """Plants what was not noticed yet, into one op or two of a kind: differences(case, exact) tells what is wrong, and
        expected(case, wrong=number) what a faulty model would give."""
        if not self.kinds:
            self.plant_in_results(case, [place(name) for name in exact], lambda faulty: differences(faulty, exact))
        tried = collections.Counter()
        for kind, plant in itertools.chain(gradients(case, expected), attributes(case, expected)):
            tried[kind] += 1
            if tried[kind] <= TRIES and kind not in self.noticed:
                self.plant_in_model(kind, plant, exact, lambda faulty: differences(case, faulty))

    def judge_large(self, case, exact, differences):
        """Where rounding is larger than what `judge` plants: into the results alone, of every case."""
        for part, name in [place(name) for name in exact]:
            for fault in LARGE_FAULTS if any(case[part][name]) else ():
                faulty = {**case, part: {**case[part], name: list(case[part][name])}}
                fault(faulty[part][name])
                self.count(f"{fault.__name__} {part}", differences(faulty, exact))

    def plant_in_model(self, kind, plant, exact, differences):
        try:
            faulty = plant()
        except Exception:  # of whatever kind: the case itself came through, so that PyTorch refuses such a model
            return
        if kind.startswith("gradient") or changed(exact, faulty):  # another attribute may mean the same
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
        """Whether a kind was never noticed; they are named."""
        for kind in sorted(self.kinds - self.noticed):
            print("NOT NOTICED:", kind)
        print(f"{len(self.noticed)} of {len(self.kinds)} kinds of planted faults noticed")
        return self.kinds != self.noticed
