"""Attention compared with PyTorch in double precision, with the same weights: results, loss, and the gradients of
all parameters. The function is written as a formula, because PyTorch 1.13 has no such function; the layer is
torch.nn's."""

import torch

# Relative to the largest element; in f32 scores and sums are rounded.
ALLOWED = {"f64": 1e-9, "f32": 2e-5}


def tensor(values, *shape):
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def mask_of(case, parameters):
    """PyTorch's convention: boolean, true where a query attends, or added to the scores."""
    given = case["model"]["inputs"].get("mask")
    if "mask" in parameters:
        return parameters["mask"]
    if given is None:
        return None
    mask = tensor(case["inputs"]["mask"], *(case["rows"] if size < 0 else size for size in given["shape"]))
    return mask != 0 if given["dtype"] == "ui8" else mask


def attended(case, parameters):
    op = next(op for op in case["model"]["ops"] if op["op"] == "scaled_dot_product_attention")
    operands = []
    for name in "qkv":
        described = case["model"]["inputs"][name]["shape"]
        operands.append(tensor(case["inputs"][name], case["rows"], *described[1:]) @ parameters["w" + name])
    q, k, v = operands
    mask = mask_of(case, parameters)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(2, 3) * op["attributes"]["scale"]
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if "causal" in op["attributes"]:
        scores = scores.masked_fill(torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1), -torch.inf)
    alone = (scores == -torch.inf).all(3, keepdim=True)  # queries that attend to no key have the result 0
    return scores.masked_fill(alone, 0).softmax(3).masked_fill(alone, 0) @ v


def multihead(case, layer):
    items, keys = case["items"]
    batch_first = case["arguments"]["batch_first"]

    def given(name, count):
        rows = case["rows"]
        return tensor(case["inputs"][name], *((rows, count) if batch_first else (count, rows)), layer.embed_dim)

    x = given("x", items)
    cross = case["kind"] == "cross"
    padding, added = case["inputs"].get("padding"), case["inputs"].get("added")
    hidden = torch.zeros(case["rows"], 1, items, keys, dtype=torch.float64)
    if padding:
        hidden = hidden.masked_fill((tensor(padding, case["rows"], keys) != 0)[:, None, None], -torch.inf)
    if added:
        hidden = hidden + tensor(added, items, keys)
    if case["kind"] == "causal":
        hidden = hidden.masked_fill(torch.ones(items, keys, dtype=torch.bool).triu(1), -torch.inf)
    mask = hidden.expand(-1, layer.num_heads, -1, -1).flatten(0, 1)  # repeated for each row's heads
    k, v = (given("keys", keys), given("values", keys)) if cross else (x, x)
    return layer(x, k, v, need_weights=False, attn_mask=mask)[0]


def expected(case):
    """The result, and gradients by name."""
    if "arguments" in case:
        layer = torch.nn.MultiheadAttention(**case["arguments"], dtype=torch.float64)
        parameters = {"layer." + name: parameter for name, parameter in layer.named_parameters()}
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(tensor(case["before"][name], *parameter.shape))
        y = multihead(case, layer)
    else:
        shapes = {op["attributes"]["state"]: op["types"][0]["shape"] for op in case["model"]["ops"] if op["op"] == "get"}
        parameters = {name: tensor(case["before"][name], *shapes[name]).requires_grad_()
                      for name in case["model"]["parameters"]}
        y = attended(case, parameters)
    loss = ((y + 0.5) ** 2).sum()
    loss.backward()
    return {"y": y, "loss": loss}, {name: parameter.grad for name, parameter in parameters.items()}


def problems(case):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
        return
    results, gradients = expected(case)
    if sorted(gradients) != sorted(case["model"]["parameters"]):
        yield f"{case['name']}: parameters {sorted(case['model']['parameters'])} in place of {sorted(gradients)}"
        return
    found = case["predicted"] | {"loss": case["trained"]["loss"]}
    found |= {name: case["after"][name + ".momentum_buffer"] for name in gradients}
    dtype = "f64" if "f64" in case["name"].split() else "f32"
    for name, value in (results | gradients).items():
        truth = value.detach().flatten()
        got = torch.tensor(found[name], dtype=torch.float64)
        if got.shape != truth.shape:
            yield f"{case['name']}: {name} has {got.numel()} elements in place of {truth.numel()}"
        elif not bool((got - truth).abs().max() <= ALLOWED[dtype] * truth.abs().max().clamp(min=1)):
            yield f"{case['name']}: {name} is off by {(got - truth).abs().max():.3g}"
