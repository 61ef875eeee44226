"""Recurrent layers compared with torch.nn's in double precision, with the same weights: results, final states, and
the gradients of all parameters."""

import torch

# Relative to the largest element; in f32 the layers round their intermediate values.
ALLOWED = {"f64": 1e-9, "f32": 2e-5}


def expected(case):
    """Results and gradients by name."""
    layer = getattr(torch.nn, case["layer"])(**case["arguments"], dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.copy_(torch.tensor(case["before"]["layer." + name], dtype=torch.float64).reshape(parameter.shape))
    rows, steps = case["rows"], case["steps"]
    shape = (rows, steps) if case["arguments"]["batch_first"] else (steps, rows)
    x = torch.tensor(case["inputs"]["x"], dtype=torch.float64).reshape(*shape, -1)
    y, last = layer(x)
    results = {"y": y} | (dict(zip(("h_n", "c_n"), last)) if case["layer"] == "LSTM" else {"h_n": last})
    results["loss"] = sum(((value + 0.5) ** 2).sum() for value in results.values())
    results["loss"].backward()
    gradients = {"layer." + name: parameter.grad for name, parameter in layer.named_parameters()}
    return results, gradients


def problems(case):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
        return
    results, gradients = expected(case)
    if gradients.keys() != case["gradients"].keys():
        yield f"{case['name']}: parameters {sorted(case['gradients'])} in place of {sorted(gradients)}"
    found = case["predicted"] | {"loss": case["trained"]["loss"]} | case["gradients"]
    dtype = case["name"].split()[-1]
    for name, value in (results | gradients).items():
        truth = value.detach().flatten()
        got = torch.tensor(found.get(name, []), dtype=torch.float64)
        if got.shape != truth.shape:
            yield f"{case['name']}: {name} has {got.numel()} elements in place of {truth.numel()}"
        elif not bool((got - truth).abs().max() <= ALLOWED[dtype] * truth.abs().max().clamp(min=1)):
            yield f"{case['name']}: {name} is off by {(got - truth).abs().max():.3g}"
