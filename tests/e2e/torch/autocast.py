"""Networks in mixed precision compared with PyTorch's autocast. The reference networks use PyTorch's own layers and
optimizer, with the same weights and images, in double precision and under autocast to bf16. The yardstick of a
tensor is the distance of autocast from the exact result. It is measured for these images and for slightly different
ones, which take other sides of kinks. A compiled network may be at most three times as far as the farthest. It must
be at least a tenth as far as the closest, because closer results would mean f32.

This PyTorch has no autocast to f16 on CPUs, and a GradScaler only for CUDA. For f16, layers round their operands and
results as autocast does, and autograd rounds the gradients of rounded values. The loss is scaled by GradScaler's
initial scale, and gradients are divided by it."""

import contextlib

import torch
import torch.nn.functional as F

FURTHEST, CLOSEST, DRAWS, CHANGE = 3, 0.1, 8, 0.01


def mlp(layer, x):
    x = torch.tanh(layer(F.linear, "fc1", x))
    return layer(F.linear, "fc3", F.relu(layer(F.linear, "fc2", x)))


def lenet(layer, x):
    for name in ("conv1", "conv2"):
        x = F.avg_pool2d(F.relu(layer(F.conv2d, name, x)), 2)
    return layer(F.linear, "fc2", F.relu(layer(F.linear, "fc1", x.flatten(1))))


def small_resnet(layer, x):
    x = F.relu(layer.norm("stem.bn", layer(F.conv2d, "stem.conv", x, padding=1)))
    for name, stride in (("identity", 1), ("strided", 2)):
        beside = layer(F.conv2d, f"{name}.projection", x, stride=stride) if stride > 1 else x
        y = F.relu(layer.norm(f"{name}.bn1", layer(F.conv2d, f"{name}.conv1", x, padding=1, stride=stride)))
        x = F.relu(layer.norm(f"{name}.bn2", layer(F.conv2d, f"{name}.conv2", y, padding=1)) + beside)
    return layer(F.linear, "fc", x.mean((2, 3)))


# The forward pass, the shape of an image, and the weight decay.
NETWORKS = {"mlp": (mlp, (784,), 1e-3), "lenet": (lenet, (1, 28, 28), 0.0), "small_resnet": (small_resnet, (3, 9, 9), 1e-4)}


class Layers:
    """Parameters and statistics by name, and their layers, which round to `narrow` if it is a type."""

    def __init__(self, case, dtype, training, narrow=None):
        shapes = {op["attributes"]["state"]: op["types"][0]["shape"] for op in case["model"]["ops"] if op["op"] == "get"}
        self.states = {name: torch.tensor(case["before"][name], dtype=dtype).reshape(shape) for name, shape in shapes.items()}
        self.parameters = {name: self.states[name].requires_grad_() for name in case["model"]["parameters"]}
        self.training, self.narrow = training, narrow

    def rounded(self, x):
        return x if x is None or self.narrow is None else x.to(self.narrow).to(x.dtype)

    def __call__(self, function, name, x, **options):
        operands = (x, self.states[f"{name}.weight"], self.states.get(f"{name}.bias"))
        return self.rounded(function(*map(self.rounded, operands), **options))

    def norm(self, name, x):
        mean, variance, weight, bias = (self.states[f"{name}.{part}"]
                                        for part in ("running_mean", "running_var", "weight", "bias"))
        return self.rounded(F.batch_norm(x, mean, variance, weight, bias, self.training))


def results(case, image, dtype, context=contextlib.nullcontext(), narrow=None, scale=1.0):
    """All results of a compiled network, by part of the case and name."""
    network, shape, decay = NETWORKS[case["name"].split()[0]]
    image = image.to(dtype).reshape(-1, *shape)
    label = torch.tensor(case["inputs"]["label"]).long()
    with torch.no_grad(), context:
        found = {("predicted", "logits"): network(Layers(case, dtype, False, narrow), image)}
    layers = Layers(case, dtype, True, narrow)
    with context:
        loss = F.cross_entropy(network(layers, image), label)
    found["trained", "loss"] = loss
    (loss * scale).backward()
    for parameter in layers.parameters.values():
        parameter.grad /= scale
    optimizer = torch.optim.SGD(layers.parameters.values(), lr=0.0, momentum=0.9, weight_decay=decay)
    optimizer.step()
    for name, parameter in layers.parameters.items():
        found["after", f"{name}.momentum_buffer"] = optimizer.state[parameter]["momentum_buffer"]
    for name, state in layers.states.items():
        if name not in layers.parameters:
            found["after", name] = state
    return {key: value.detach().double().flatten() for key, value in found.items()}


def in_halves(case, image):
    if case["name"].endswith("bf16"):
        return results(case, image, torch.float32, torch.autocast("cpu", torch.bfloat16))
    return results(case, image, torch.float32, narrow=torch.float16, scale=65536.0)


def yardsticks(case, image):
    """The exact results for the images, and the minimum and maximum distance of autocast for these and similar
    images."""
    truths, closest, furthest = [], {}, {}
    for draw in range(DRAWS):
        torch.manual_seed(draw)
        changed = image + CHANGE * torch.randn_like(image) * (draw > 0)
        truth = results(case, changed, torch.float64)
        for key, theirs in in_halves(case, changed).items():
            error = (theirs - truth[key]).norm() / truth[key].norm()
            closest[key], furthest[key] = min(closest.get(key, error), error), max(furthest.get(key, error), error)
        truths.append(truth)
    return truths[0], closest, furthest


def problems(case):
    """The differences, one line each."""
    if "error" in case:
        return [f"{case['name']}: {case['error']}"]
    truth, closest, furthest = yardsticks(case, torch.tensor(case["inputs"]["image"], dtype=torch.float64))
    wrong, shares = [], []
    for key, exact in truth.items():
        ours = torch.tensor([float("nan") if x is None else x for x in case[key[0]][key[1]]], dtype=torch.float64)
        error = (ours - exact).norm() / exact.norm()
        shares.append(error / furthest[key])
        if not CLOSEST * closest[key] <= error <= FURTHEST * furthest[key]:
            wrong.append(f"{case['name']}: {key[1]} has an error of {error:.2e}, autocast {closest[key]:.2e} to {furthest[key]:.2e}")
    print(f"{case['name']}: {len(shares)} results, errors {min(shares):.2f} to {max(shares):.2f} of autocast's largest")
    return wrong
