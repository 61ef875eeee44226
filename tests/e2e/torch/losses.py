"""Losses compared with PyTorch's own functions, with all their options and with gradients. Each non-default option
is removed once, and the comparison must detect it."""

import torch
import torch.nn.functional as F

FORMS = ("rows", "words", "image")
TOLERANCE = {"f32": 2e-5, "f64": 1e-13}  # relative to the largest element; sums of up to 660 terms in another order


def tensor(case, name):
    described = case["model"]["inputs"][name]
    shape = [case["rows"] if size < 0 else size for size in described["shape"]]
    values = torch.tensor(case["inputs"][name], dtype=torch.float64).reshape(shape)
    return values.long() if described["dtype"] == "i32" else values


def expected(case, loss, options):
    """PyTorch's result, and its gradient with respect to the scale of the logits."""
    x, target = tensor(case, "x"), tensor(case, loss["target"])
    scale = torch.tensor(case["before"][f"scale_{loss['name']}"], dtype=torch.float64).reshape(x.shape[1:]).requires_grad_()
    logits = x * scale
    if " words " in case["name"]:
        logits = logits.transpose(1, 2)
        target = target if target.dim() < 3 else target.transpose(1, 2)
    options = {name: tensor(case, value) if name.endswith("weight") else value for name, value in options.items()}
    value = getattr(F, loss["function"])(logits, target, **options)
    scalar = value if value.dim() == 0 else value.square().mean()
    return value.detach().flatten(), torch.autograd.grad(scalar, scale)[0].flatten()


def is_near(got, value, tolerance):
    got = torch.tensor([float("nan") if x is None else x for x in got], dtype=torch.float64)
    return got.shape == value.shape and bool(((got - value).abs() <= tolerance * value.abs().max()).all())


def differences(case, loss, options):
    tolerance = next(TOLERANCE[dtype] for dtype in TOLERANCE if case["name"].endswith(dtype))
    value, gradient = expected(case, loss, options)
    if not is_near(case["predicted"][loss["name"]], value, tolerance):
        yield "value"
    if not is_near(case["after"][f"scale_{loss['name']}.momentum_buffer"], gradient, tolerance):
        yield "gradient"


def problems(case):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
    for loss in case.get("losses", []):
        about = f"{case['name']}: {loss['function']} of {loss['target']}, {loss['options']}"
        yield from (f"{about}: another {what}" for what in differences(case, loss, loss["options"]))
        for option in loss["options"].keys() - {"ignore_index"}:  # invalid class labels would be an error
            less = {name: value for name, value in loss["options"].items() if name != option}
            if (option, loss["options"][option]) != ("reduction", "mean") and not any(differences(case, loss, less)):
                yield f"{about}: is the same without {option}"
