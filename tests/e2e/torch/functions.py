"""Functions that are formulas compared with PyTorch's own in double precision: results, and gradients with respect
to the scales of their operands."""

import torch
import torch.nn.functional as F

TOLERANCE = {"f32": 2e-5, "f64": 1e-12}  # relative to the largest element


def rope(x, base=10000.0, interleaved=False, position=None):
    """Pairs as complex numbers."""
    pairs = x.shape[-1] // 2
    position = torch.arange(x.shape[-2]) if position is None else position
    angle = position[..., None] * base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    turn = torch.polar(torch.ones_like(angle), angle)
    split = x.unflatten(-1, (pairs, 2)) if interleaved else x.unflatten(-1, (2, pairs)).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(split.contiguous()) * turn)
    return (turned if interleaved else turned.transpose(-1, -2)).flatten(-2)


def tensor(values, *shape):
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def expected(case, function):
    """The result, and gradients by name."""
    number, rows = function["number"], case["rows"]
    parameters = {f"scale{number}": tensor(case["before"][f"scale{number}"], *function["x"])}
    if function["w"]:
        parameters[f"w{number}"] = tensor(case["before"][f"w{number}"], *function["w"])
    for parameter in parameters.values():
        parameter.requires_grad_()
    names = {"torch": torch, "F": F, "rope": rope, "w": parameters.get(f"w{number}"),
             "x": tensor(case["inputs"][f"x{number}"], rows, *function["x"]) * parameters[f"scale{number}"]}
    if function["index"]:
        names["index"] = tensor(case["inputs"][f"index{number}"], rows, *function["index"]).long()
    y = eval(function["torch"], names)  # the expression comes from the test itself
    (y + 0.5).square().sum().backward()
    # A parameter whose values do not reach the result, for example an ordering key, has no gradient.
    gradients = {name: parameter.grad for name, parameter in parameters.items() if parameter.grad is not None}
    return y.detach(), gradients


def problems(case):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
    dtype = case["name"].split()[-1]
    for function in case.get("functions", []):
        y, gradients = expected(case, function)
        found = {"result": (case["predicted"][f"y{function['number']}"], y)}
        found |= {name: (case["after"][f"{name}.momentum_buffer"], value) for name, value in gradients.items()}
        for name, (got, value) in found.items():
            got, truth = torch.tensor(got, dtype=torch.float64), value.flatten()
            if got.shape != truth.shape or not bool((got - truth).abs().max() <= TOLERANCE[dtype] * truth.abs().max()):
                yield f"{case['name']}: {function['torch']}: another {name}"
