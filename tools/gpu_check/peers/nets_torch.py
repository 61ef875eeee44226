"""The networks of models/ in PyTorch, as peers of the benchmarks: NETS[name] has module, batch, loss and optimizer."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Net:
    build: Callable[[], nn.Module]
    batch: Callable[..., tuple]  # of so many rows, and of so many words each: inputs and targets
    optimizer: Callable
    loss: Callable = F.cross_entropy
    clip: float = 0.0  # of the norm of all gradients


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 3), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class MLP(nn.Module):
    """784-256-128-10, tanh then ReLU: the small oracle for momentum and weight decay."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(torch.tanh(self.fc1(x)))))


class AlexNetS(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 11, 4, 2)
        self.conv2 = nn.Conv2d(96, 256, 5, 1, 2)
        self.conv3 = nn.Conv2d(256, 384, 3, 1, 1)
        self.conv4 = nn.Conv2d(384, 384, 3, 1, 1)
        self.conv5 = nn.Conv2d(384, 256, 3, 1, 1)
        self.fc6, self.fc7, self.fc8 = nn.Linear(9216, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, 2)
        x = F.relu(self.conv4(F.relu(self.conv3(x))))
        x = F.max_pool2d(F.relu(self.conv5(x)), 3, 2)
        return self.fc8(F.relu(self.fc7(F.relu(self.fc6(x.flatten(1))))))


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride, project):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = (
            nn.Sequential(nn.Conv2d(cin, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)) if project else None
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        cin = 64
        for stage, (blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512))):
            layers = []
            for block in range(blocks):
                layers.append(Bottleneck(cin, width, 2 if stage and block == 0 else 1, block == 0))
                cin = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Basic(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.stride, self.extra = (2 if cin != cout else 1), cout - cin
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, self.stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.extra:  # option A: subsample, then zero channels on both sides
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))
        return F.relu(y + x)


class ResNet56(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        for stage, (cin, cout) in enumerate(((16, 16), (16, 32), (32, 64))):
            setattr(self, f"layer{stage + 1}", nn.Sequential(*(Basic(cin if b == 0 else cout, cout) for b in range(9))))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


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


def sgd(lr, **settings):
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, **settings)


def images(shape, classes):
    return lambda rows, _length=0: (torch.rand(rows, *shape), torch.randint(classes, (rows,)))


def words(length, count, classes=None):
    """Each word's target is the next one, or each row has a class."""

    def of(rows, length=length):
        return torch.randint(count, (rows, length)), torch.randint(classes or count, (rows,) if classes else (rows, length))

    return of


def of_each_word(logits, following):
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def of_each_row(logits, following):
    return F.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="sum") / following.shape[0]


def adamw(**settings):
    return lambda parameters: torch.optim.AdamW(parameters, lr=6e-4, **settings)


def fused(optimizer_of):
    """With the one kernel for all parameters that PyTorch has for the optimizer, where it has one."""

    def make(parameters):
        parameters = [p for p in parameters if p.requires_grad]
        optimizer = optimizer_of(parameters)
        try:
            return type(optimizer)(parameters, **{**optimizer.defaults, "foreach": None, "fused": True})
        except (TypeError, RuntimeError, ValueError):
            return optimizer

    return make


NETS = {
    "lenet": Net(LeNet, images((1, 28, 28), 10), fused(sgd(0.1))),
    "mlp": Net(MLP, images((784,), 10), fused(sgd(0.05, momentum=0.9, weight_decay=1e-3))),
    "resnet56": Net(ResNet56, images((3, 32, 32), 10), fused(sgd(0.01, momentum=0.9, weight_decay=1e-4))),
    "alexnet_s": Net(AlexNetS, images((3, 224, 224), 1000), fused(sgd(0.01))),
    "resnet50": Net(ResNet50, images((3, 224, 224), 1000), fused(sgd(0.1, momentum=0.9, nesterov=True, weight_decay=1e-4))),
    "fcn_s": Net(lambda: FCN(26752, 2048, 2048, 2048, 26752), images((26752,), 26752), fused(sgd(0.01))),
    "fcn_r": Net(lambda: FCN(784, 2048, 4096, 1024, 10), images((784,), 10), fused(sgd(0.05, momentum=0.9))),
    "alexnet_r": Net(AlexNetR, images((3, 32, 32), 10), fused(sgd(0.01, momentum=0.9))),
    "mobilenetv2": Net(MobileNetV2, images((3, 224, 224), 1000), fused(sgd(0.01))),
    "lstm": Net(LSTM, words(32, 10000), fused(sgd(0.1)), of_each_row, clip=5.0),
    "gpt2": Net(GPT2, words(128, 50257), fused(adamw(betas=(0.9, 0.95), weight_decay=0.1)), of_each_word),
    "bert_base": Net(BERT, words(128, 30522, classes=2), fused(adamw())),
    "vit_s": Net(ViTS16, images((3, 224, 224), 1000), fused(adamw(weight_decay=0.05))),
}
