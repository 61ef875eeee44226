"""Times PyTorch: a training step of an MLP or of LeNet, as in arrays_training.cpp (arrays_torch.py NETWORK BATCH VARIANT
THREADS SECONDS), or an add (arrays_torch.py add ELEMENTS VARIANT THREADS SECONDS).

VARIANT is eager or compile. Prints one JSON object with the median in ms."""

import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def network(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return nn.Sequential(nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))


def training_step(name, batch, variant):
    net, x, y = network(name), torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss_of = (lambda: F.cross_entropy(net(x), y))
    if variant == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        optimizer.step()

    return step


def add_step(elements, variant):
    a, b = torch.ones(elements), torch.ones(elements)
    add = torch.compile(torch.add) if variant == "compile" else torch.add
    repeats = 1000 if elements < 100000 else 20

    def step():
        for _ in range(repeats):
            add(a, b)

    return step, repeats


def main(name, *arguments):
    if name == "add":
        elements, variant, threads, seconds = arguments
        step, repeats = add_step(int(elements), variant)
    else:
        batch, variant, threads, seconds = arguments
        step, repeats = training_step(name, int(batch), variant), 1
    torch.set_num_threads(int(threads))
    for _ in range(5):
        step()
    times, start = [], time.perf_counter()
    while len(times) < 20 or time.perf_counter() - start < float(seconds):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3 / repeats)
    print(json.dumps({"name": name, "variant": variant, "median_ms": statistics.median(times), "version": torch.__version__}))


main(*sys.argv[1:])
