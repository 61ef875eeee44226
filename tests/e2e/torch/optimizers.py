"""Training compared with torch.optim: a small network is trained for several steps by each recipe. Its parameters,
optimizer slots and losses are compared with PyTorch's in double precision, from the same initial values. A recipe
names PyTorch's classes and arguments; omitted arguments have the defaults of both sides. Each number of a recipe
is changed in turn, and the comparison must detect it."""

import copy
import fnmatch
import warnings

import torch
from reference import Reference
from torch.optim.swa_utils import AveragedModel
from verdicts import tensor

warnings.filterwarnings("ignore", "The epoch parameter")  # a warning of SequentialLR about its own call

# Relative to the norm of a tensor. In double precision, an optimizer's results differ by a few roundings in another
# order. In single precision, gradients have rounding errors, and Adam divides small gradients by their own size. In
# halves this error is so large that only recipes without such divisions are compared.
TOLERANCE = {"f64": 1e-12, "f32": 1e-4, "f16": 6e-3, "bf16": 6e-2}
NOTICED = 1e-5  # minimum effect of a changed number on some tensor

NO_DECAY = {"params": ["*.bias", "norm.*"], "weight_decay": 0.0}
WARM_UP = {"kind": "LinearLR", "start_factor": 0.25, "end_factor": 0.9, "total_iters": 4}
STAIRS = {"kind": "StepLR", "step_size": 3, "gamma": 0.5}
COSINE = {"kind": "CosineAnnealingLR", "T_max": 7, "eta_min": 0.01}


def recipe(optimizer, *, options=None, **settings):
    return {"optimizer": optimizer, "settings": settings, **(options or {})}


RECIPES = {
    "SGD": recipe("SGD", lr=0.1),
    "Adam": recipe("Adam"),
    "Adam, all": recipe("Adam", lr=0.02, betas=[0.8, 0.9], eps=1e-3, weight_decay=0.03),
    "Adam, amsgrad": recipe("Adam", lr=0.02, betas=[0.7, 0.6], amsgrad=True),
    "Adam, no averages": recipe("Adam", lr=0.02, betas=[0.0, 0.0], eps=0.1),
    "AdamW": recipe("AdamW"),
    "AdamW, all": recipe("AdamW", lr=0.03, betas=[0.6, 0.95], eps=1e-4, weight_decay=0.2, amsgrad=True),
    "RMSprop": recipe("RMSprop"),
    "RMSprop, all": recipe("RMSprop", lr=0.01, alpha=0.9, eps=1e-3, weight_decay=0.03, momentum=0.8, centered=True),
    "RMSprop, momentum": recipe("RMSprop", lr=0.01, momentum=0.5),
    "RMSprop, centered": recipe("RMSprop", lr=0.01, alpha=0.8, centered=True),
    "clip_grad_norm": recipe("SGD", lr=0.3, momentum=0.9, options={"clip_grad_norm": 0.8}),
    "clip_grad_value": recipe("SGD", lr=0.3, options={"clip_grad_value": 0.05}),
    "both clips": recipe("AdamW", lr=0.01, weight_decay=0.1, options={"clip_grad_value": 0.2, "clip_grad_norm": 0.7}),
    "groups": recipe("AdamW", lr=0.02, weight_decay=0.3, options={"groups": [NO_DECAY, {"params": ["fc2.weight"], "lr_factor": 0.1}]}),
    "groups of SGD": recipe("SGD", lr=0.1, momentum=0.7, dampening=0.2, weight_decay=0.1,
                            options={"groups": [NO_DECAY], "clip_grad_norm": 0.5}),
    "StepLR": recipe("SGD", lr=0.2, options={"schedule": STAIRS}),
    "LinearLR": recipe("SGD", lr=0.2, options={"schedule": WARM_UP}),
    "CosineAnnealingLR": recipe("SGD", lr=0.2, options={"schedule": COSINE}),
    "defaults": recipe("SGD", lr=0.2, options={"schedule": {"kind": "SequentialLR", "milestones": [6], "schedulers": [
        {"kind": "LinearLR"}, {"kind": "CosineAnnealingLR", "T_max": 4}]}}),
    "SequentialLR": recipe("Adam", lr=0.2, options={"schedule": {"kind": "SequentialLR", "milestones": [3, 8],
                                                                 "schedulers": [WARM_UP, COSINE, STAIRS]}}),
    "EMA": recipe("SGD", lr=0.2, options={"ema": 0.8}),
    "all": recipe("AdamW", lr=0.05, weight_decay=0.1, options={
        "groups": [NO_DECAY, {"params": ["fc2.weight"], "lr_factor": 0.3}], "clip_grad_norm": 0.6, "ema": 0.9,
        "schedule": {"kind": "SequentialLR", "milestones": [4], "schedulers": [WARM_UP, COSINE]}}),
}

HALVES = ("Adam, all", "clip_grad_norm", "groups of SGD", "LinearLR", "EMA")


def recipes_for(dtype):
    return {name: RECIPES[name] for name in HALVES} if dtype in ("f16", "bf16") else RECIPES


class Trainer:
    """PyTorch's optimizer, with schedule and averages, for parameters by name."""

    def __init__(self, recipe, parameters):
        self.recipe, self.parameters = recipe, parameters
        self.optimizer = self.grouped(getattr(torch.optim, recipe["optimizer"]))
        self.schedule = self.scheduler(recipe["schedule"]) if "schedule" in recipe else None
        self.list = torch.nn.ParameterList(parameters.values())
        self.average = AveragedModel(self.list, avg_fn=self.averaged) if "ema" in recipe else None

    def averaged(self, average, value, count):
        return self.recipe["ema"] * average + (1 - self.recipe["ema"]) * value

    def grouped(self, optimizer):
        rest, groups = dict(self.parameters), []
        for group in self.recipe.get("groups", ()):
            names = [name for name in self.parameters if any(fnmatch.fnmatchcase(name, like) for like in group["params"])]
            groups.append({**group, "params": [rest.pop(name) for name in names]})
        made = optimizer(list(rest.values()), **self.recipe["settings"])
        for group in groups:
            factor = group.pop("lr_factor", 1.0)
            made.add_param_group({**group, "lr": factor * made.defaults["lr"]})
        return made

    def scheduler(self, described):
        kind, arguments = getattr(torch.optim.lr_scheduler, described["kind"]), {**described}
        arguments.pop("kind")
        if "schedulers" in arguments:
            arguments["schedulers"] = [self.scheduler(each) for each in arguments["schedulers"]]
        return kind(self.optimizer, **arguments)

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        if "clip_grad_value" in self.recipe:
            torch.nn.utils.clip_grad_value_(self.parameters.values(), self.recipe["clip_grad_value"])
        if "clip_grad_norm" in self.recipe:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.recipe["clip_grad_norm"])
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        if self.average:
            self.average.update_parameters(self.list)

    def states(self):
        for name, parameter in self.parameters.items():
            yield name, parameter
            yield from ((f"{name}.{slot}", value) for slot, value in self.optimizer.state[parameter].items() if slot != "step")
        if self.average:
            yield from zip((f"{name}.ema" for name in self.parameters), self.average.module.parameters())


def expected(case, recipe):
    """All states by name after the last step, and the losses before each step."""
    model = case["model"]
    states = {op["attributes"]["state"]: tensor(case["before"][op["attributes"]["state"]], op["types"][0], 0)
              for op in model["ops"] if op["op"] == "get"}
    trainer, losses = Trainer(recipe, {name: states[name].requires_grad_() for name in model["parameters"]}), []
    for values, rows in zip(case["steps"], case["rows"]):
        inputs = {name: tensor(values[name], described, rows) for name, described in model["inputs"].items()}
        loss = Reference(model, rows, states, inputs, training=True).loss
        losses.append(loss.detach())
        trainer.step(loss)
    results = {name: value.detach().flatten().clone() for name, value in trainer.states() if value is not None}
    return {**results, "losses": torch.stack(losses)}


def errors(results, exact):
    return {name: ((results[name] - value).norm() / value.norm()).item() if name in results and len(results[name]) == len(value)
            else float("inf") for name, value in exact.items()}


def changes(value):
    """(place, the recipe with one number changed) for each number."""
    if isinstance(value, bool):
        yield "", not value
    elif isinstance(value, int):
        yield "", value + 1
    elif isinstance(value, float):
        yield "", value * 0.8 or 0.01
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            for where, other in changes(inner):
                changed = copy.copy(value)
                changed[key] = other
                yield f"/{key}{where}", changed


class Verdicts:
    def __init__(self):
        self.checked, self.wrong, self.worst, self.planted, self.unnoticed = 0, [], dict.fromkeys(TOLERANCE, 0.0), 0, []

    def check(self, case, dtype):
        self.checked += 1
        if "error" in case:
            return self.wrong.append(f"{case['name']}: {case['error']}")
        name, recipe = case["name"], RECIPES[case["name"]]
        exact = expected(case, recipe)
        results = {name: torch.tensor([float("nan") if x is None else x for x in values], dtype=torch.float64)
                   for name, values in {**case["after"], "losses": case["losses"]}.items()}
        found = errors(results, exact)
        self.worst[dtype] = max(self.worst[dtype], *found.values())
        self.wrong += [f"{name} {dtype}: {state} is off by {error:.3g}" for state, error in found.items()
                       if not error <= TOLERANCE[dtype]]
        self.wrong += [f"{name}: PyTorch has no {state}" for state in set(results) - set(exact) - {"lr", "step"}]
        if dtype == "f64":
            self.plant(case, recipe, exact)

    def plant(self, case, recipe, exact):
        for where, changed in changes(recipe):
            self.planted += 1
            moved = errors(expected(case, changed), exact)
            if max(moved.values()) < NOTICED:
                self.unnoticed.append(f"{case['name']}: {where}")

    def failed(self):
        """Prints the results; returns whether any differs."""
        for line in self.wrong:
            print("WRONG:", line)
        for line in self.unnoticed:
            print("NOT NOTICED:", line)
        print(f"{self.checked} trainings, off by", ", ".join(f"{worst:.2g} in {dtype}" for dtype, worst in self.worst.items()))
        print(f"{self.planted - len(self.unnoticed)} of {self.planted} changes noticed")
        return any([self.wrong, self.unnoticed, self.checked != 2 * sum(len(recipes_for(dtype)) for dtype in TOLERANCE)])
