"""The networks of models/ in PyTorch as peers of the benchmark: NETS[name] has module, batch, loss and optimizer. Those that are
measured on a GPU, too, are in tools/gpu_check/peers/nets_torch.py."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu_check/peers"))
from nets_torch import NETS as ON_GPUS, sgd  # noqa: E402


@dataclass
class Net:
    build: Callable[[], nn.Module]
    batch: Callable[[int], tuple]  # of so many rows: inputs and targets
    optimizer: Callable
    loss: Callable = F.cross_entropy
    clip: float = 0.0  # of the norm of all gradients


class FCN(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.fc = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.fc[:-1]:
            x = torch.sigmoid(layer(x))
        return self.fc[-1](x)


class AlexNetR(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(3, 32, 5, 1, 2), nn.Conv2d(32, 32, 5, 1, 2), nn.Conv2d(32, 64, 5, 1, 2)
        self.fc = nn.Linear(576, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 3, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, 2)
        x = F.avg_pool2d(F.relu(self.conv3(x)), 3, 2)
        return self.fc(x.flatten(1))


class InvertedResidual(nn.Module):
    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        mid = cin * expand
        layers = [] if expand == 1 else [nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU6()]
        layers += [nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.ReLU6()]
        self.conv = nn.Sequential(*layers, nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout))
        self.residual = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        layers, cin = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for expand, cout, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                            (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                layers.append(InvertedResidual(cin, cout, stride if i == 0 else 1, expand))
                cin = cout
        self.features = nn.Sequential(*layers, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6())
        self.fc = nn.Linear(1280, 1000)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


class LSTM(nn.Module):
    """One bias a layer: the second of torch.nn stays zero. Each batch begins with what the one before left."""

    def __init__(self, words=10000, width=256, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        for layer in range(layers):
            getattr(self.lstm, f"bias_hh_l{layer}").data.zero_()
            getattr(self.lstm, f"bias_hh_l{layer}").requires_grad_(False)
        self.fc = nn.Linear(width, words)
        self.state = None

    def forward(self, x):
        y, state = self.lstm(self.embedding(x), self.state)
        if self.training:
            self.state = tuple(part.detach() for part in state)
        return self.fc(y)


def attention(q, k, v, is_causal=False):
    """In heads of 64. An old PyTorch has no op for it."""
    q, k, v = (x.reshape(*x.shape[:2], -1, 64).transpose(1, 2) for x in (q, k, v))
    if hasattr(F, "scaled_dot_product_attention"):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    else:
        scores = q @ k.transpose(2, 3) / 8
        if is_causal:
            scores = scores + torch.full(scores.shape[2:], -torch.inf).triu(1)
        y = scores.softmax(3) @ v
    return y.transpose(1, 2).flatten(2)


class Block(nn.Module):
    """One layer of a transformer: norms before what is added, or behind it."""

    def __init__(self, width, eps, before, gelu="none", is_causal=False, dropout=0.0):
        super().__init__()
        self.before, self.gelu, self.is_causal, self.dropout = before, gelu, is_causal, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def attend(self, x):
        return F.dropout(self.out(attention(*self.qkv(x).chunk(3, 2), self.is_causal)), self.dropout, self.training)

    def think(self, x):
        return F.dropout(self.fc2(F.gelu(self.fc1(x), approximate=self.gelu)), self.dropout, self.training)

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.norm1(x))
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.think(x))


class GPT2(nn.Module):
    def __init__(self, width=768, words=50257):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.h = nn.Sequential(*(Block(width, 1e-5, True, "tanh", True, 0.1) for _ in range(12)))
        self.ln_f = nn.LayerNorm(width, 1e-5)

    def forward(self, x):
        x = F.dropout(self.wte(x) + self.wpe.weight[: x.shape[1]], 0.1, self.training)
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


class BERT(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.word, self.position, self.kind = nn.Embedding(30522, width), nn.Embedding(512, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.Sequential(*(Block(width, 1e-12, False) for _ in range(12)))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x):
        x = self.norm(self.word(x) + self.position.weight[: x.shape[1]] + self.kind.weight[0])
        return self.classifier(torch.tanh(self.pooler(self.layers(x)[:, 0])))


class ViTS16(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.first, self.position = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 197, width))
        self.layers = nn.Sequential(*(Block(width, 1e-6, True) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


def images(shape, classes):
    return lambda rows: (torch.rand(rows, *shape), torch.randint(classes, (rows,)))


def words(length, count, classes=None):
    """Each word's target is the next one, or each row has a class."""
    return lambda rows: (torch.randint(count, (rows, length)), torch.randint(classes or count, (rows,) if classes else (rows, length)))


def of_each_word(logits, following):
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def of_each_row(logits, following):
    return F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="sum") / following.shape[0]


def adamw(**settings):
    return lambda parameters: torch.optim.AdamW(parameters, lr=6e-4, **settings)


def fused(optimizer_of):
    """With the one kernel for all parameters that PyTorch has for the optimizer, where it has one for the CPU."""

    def make(parameters):
        parameters = [p for p in parameters if p.requires_grad]
        optimizer = optimizer_of(parameters)
        try:
            return type(optimizer)(parameters, **{**optimizer.defaults, "foreach": None, "fused": True})
        except (TypeError, RuntimeError, ValueError):
            return optimizer

    return make


NETS = {name: Net(build, images(shape, classes), fused(optimizer)) for name, (build, shape, classes, optimizer) in ON_GPUS.items()}
NETS |= {
    "fcn_s": Net(lambda: FCN(26752, 2048, 2048, 2048, 26752), images((26752,), 26752), fused(sgd(0.01))),
    "fcn_r": Net(lambda: FCN(784, 2048, 4096, 1024, 10), images((784,), 10), fused(sgd(0.05, momentum=0.9))),
    "alexnet_r": Net(AlexNetR, images((3, 32, 32), 10), fused(sgd(0.01, momentum=0.9))),
    "mobilenetv2": Net(MobileNetV2, images((3, 224, 224), 1000), fused(sgd(0.01))),
    "lstm": Net(LSTM, words(32, 10000), fused(sgd(0.1)), of_each_row, clip=5.0),
    "gpt2": Net(GPT2, words(128, 50257), fused(adamw(betas=(0.9, 0.95), weight_decay=0.1)), of_each_word),
    "bert_base": Net(BERT, words(128, 30522, classes=2), fused(adamw())),
    "vit_s": Net(ViTS16, images((3, 224, 224), 1000), fused(adamw(weight_decay=0.05))),
}
