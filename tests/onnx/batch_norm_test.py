"""Training with the statistics of batches, beside PyTorch in double precision: a network with two batch norms, one of
which is in training mode in the file. Both read one value as their statistics, under different names.

    batch_norm_test.py SOURCE_ROOT BUILD_ROOT
"""

import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path += [os.path.join(SOURCE, "tests"), os.path.dirname(os.path.abspath(__file__))]
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import torch  # noqa: E402: of the environment entered above
from torch import nn  # noqa: E402

from onnx_files import model, node, tensor, value  # noqa: E402

STATISTICS = ("running_mean", "running_var")
WEIGHTS = ("weight", "bias")


def network():
    torch.manual_seed(0)
    net = nn.Sequential()
    for name, layer in (("conv1", nn.Conv2d(3, 4, 3)), ("norm1", nn.BatchNorm2d(4, momentum=0.25)), ("relu", nn.ReLU()),
                        ("conv2", nn.Conv2d(4, 4, 3)), ("norm2", nn.BatchNorm2d(4, eps=1e-3)),
                        ("flat", nn.Flatten()), ("fc", nn.Linear(16, 5))):
        net.add_module(name, layer)
    for norm in (net.norm1, net.norm2):
        norm.weight.data.uniform_(0.5, 1.5)
        norm.bias.data.uniform_(-0.5, 0.5)
        norm.running_mean.copy_(torch.tensor([0.5, -0.25, 0.125, 0.0]))
        norm.running_var.copy_(torch.tensor([1.5, 0.5, 1.0, 2.0]))
    return net


def file_of(net):
    weights = [tensor(name, 1, list(x.shape), x.detach().numpy().tobytes())
               for name, x in net.state_dict().items() if x.dim() > 0 and not name.startswith("norm2.running")]

    def norm(name, x, results, **attributes):
        inputs = [x, *(f"{name}.{own}" for own in WEIGHTS + STATISTICS)]
        return node("BatchNormalization", inputs, results, epsilon=getattr(net, name).eps, **attributes)

    nodes = [node("Identity", [f"norm1.{name}"], [f"norm2.{name}"]) for name in STATISTICS]
    nodes += [node("Conv", ["x", "conv1.weight", "conv1.bias"], ["c"]), norm("norm1", "c", ["n"], momentum=0.75),
              node("Relu", ["n"], ["r"]), node("Conv", ["r", "conv2.weight", "conv2.bias"], ["d"]),
              norm("norm2", "d", ["m", "mean", "var"], training_mode=1), node("Flatten", ["m"], ["f"]),
              node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], transB=1)]
    return model(nodes, weights, [value("x", 1, "batch", 3, 6, 6)], [value("y", 1, "batch", 5)])


def trained(net):
    """What onnx_training prints."""
    x = torch.sin(torch.arange(6 * 3 * 6 * 6, dtype=torch.float64) * 0.37).float().double().view(6, 3, 6, 6)
    label = torch.arange(6) % 5
    net = net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    losses = []
    for _ in range(3):
        losses.append(nn.functional.cross_entropy(net(x), label))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    losses.append(nn.functional.cross_entropy(net.eval()(x), label))
    numbers = {f"loss {i}": loss.detach().view(1) for i, loss in enumerate(losses)}
    parameters = dict(net.named_parameters())
    for name, x in net.state_dict().items():
        if x.dim() > 0:
            numbers[f"{'parameter' if name in parameters else 'statistic'}:{name}"] = x.flatten()
    return numbers


def printed(text):
    numbers = {}
    for number, line in enumerate(text.splitlines()):
        name, *values = line.split()
        numbers[name if ":" in name else f"loss {number}"] = torch.tensor([float(each) for each in values]).double()
    return numbers


RELATIVE, ABSOLUTE = 1e-4, 1e-5  # f32 beside f64, after three steps


def main():
    net = network()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "norms.onnx")
        with open(path, "wb") as out:
            out.write(file_of(net))
        done = subprocess.run([os.path.join(BUILD, "tests", "onnx_training"), path], capture_output=True, text=True,
                              timeout=600, check=False)
    found, expected = printed(done.stdout), trained(net)
    wrong = sorted(set(found) ^ set(expected))
    for name in set(found) & set(expected):
        if found[name].shape != expected[name].shape or not torch.allclose(found[name], expected[name], RELATIVE, ABSOLUTE):
            wrong.append(f"{name}: {found[name].tolist()}, not {expected[name].tolist()}")
    print(done.stderr, *wrong, sep="\n")
    return 1 if wrong or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
