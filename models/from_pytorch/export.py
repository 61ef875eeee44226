"""Exports a ResNet-18 and a small transformer to ONNX, with inputs, outputs and the losses of a fine-tuning in PyTorch.

    export.py FOLDER [--dynamo] [--rows N]
"""

import argparse

import numpy
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(*(b for i, o, s in sizes for b in (Block(i, o, s), Block(o, o, 1))))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        y = self.layers(self.stem(x))
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


class Transformer(nn.Module):
    """Classifies sequences of tokens."""

    def __init__(self, words, width, heads, layers, classes):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.heads = heads
        self.parts = nn.ModuleList(
            nn.ModuleDict({"norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                           "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)})
            for _ in range(layers))
        self.fc = nn.Linear(width, classes)

    def forward(self, tokens):
        x = self.embed(tokens)
        for part in self.parts:
            n, t, width = x.shape
            q, k, v = part["qkv"](part["norm1"](x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            scores = (q @ k.transpose(-1, -2)) / (width // self.heads)**0.5
            y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, width)
            x = x + part["out"](y)
            x = x + part["down"](F.gelu(part["up"](part["norm2"](x))))
        return self.fc(x.mean(1))


def images(rows):
    count = rows * 3 * 64 * 64
    return torch.sin(torch.arange(count, dtype=torch.float64) * 0.37).float().view(rows, 3, 64, 64)


def tokens(rows):
    return torch.arange(rows * 24).view(rows, 24) * 7 % 50


def export(model, x, path, dynamo):
    """Writes a file whose batch has no size."""
    names = {"input_names": ["x"], "output_names": ["logits"]}
    if dynamo:
        torch.onnx.export(model, (x,), path, dynamo=True, dynamic_shapes=({0: "batch"},), **names)
    else:
        torch.onnx.export(model, x, path, dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}}, **names)


def fine_tune(model, x, label, steps):
    """The losses of steps that train the head alone. BatchNorm uses its stored statistics."""
    model.requires_grad_(False)
    model.fc.requires_grad_(True)
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--dynamo", action="store_true", help="use the new exporter (requires PyTorch 2.5 and onnxscript)")
    parser.add_argument("--rows", type=int, default=8, metavar="N", help="rows of the inputs (default: %(default)s)")
    options = parser.parse_args()
    torch.manual_seed(0)
    models = (("resnet18", ResNet18(10), images, 10), ("transformer", Transformer(50, 64, 4, 2, 5), tokens, 5))
    for name, model, inputs, classes in models:
        path = f"{options.folder}/{name}"
        model.eval()
        export(model, inputs(2), f"{path}.onnx", options.dynamo)
        x, label = inputs(options.rows), torch.arange(options.rows) % classes
        numpy.save(f"{path}_x.npy", x.numpy())
        numpy.save(f"{path}_label.npy", label.numpy())
        numpy.save(f"{path}_logits.npy", model(x).detach().numpy())
        numpy.savetxt(f"{path}_losses.txt", fine_tune(model, x, label, 20))


if __name__ == "__main__":
    main()
