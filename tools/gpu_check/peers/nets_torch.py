"""The networks of models/ in PyTorch, as peers of the benchmarks: NETS[name] has module, batch, loss and optimizer."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

from convolutions_torch import AlexNetR, AlexNetS, BasicBlock, Bottleneck, LeNet, MobileNetV2, ResNet, ResNet56, UNet
from recurrent_torch import LSTM, LanguageModel
from transformers_torch import BERT, GPT2, MlpMixer, ViTS16


@dataclass
class Net:
    build: Callable[[], nn.Module]
    batch: Callable[..., tuple]  # of n rows, and n words each: inputs and targets
    optimizer: Callable
    loss: Callable = F.cross_entropy
    clip: float = 0.0  # maximum norm of all gradients


class MLP(nn.Module):
    """784-256-128-10, tanh then ReLU: the small reference for momentum and weight decay."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(torch.tanh(self.fc1(x)))))


class FCN(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.fc = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.fc[:-1]:
            x = torch.sigmoid(layer(x))
        return self.fc[-1](x)


def sgd(lr, **settings):
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, **settings)


def images(shape, classes, labels=()):
    """Each image has one class, or several."""
    return lambda rows, _length=0: (torch.rand(rows, *shape), torch.randint(classes, (rows, *labels)))


def words(length, count, classes=None):
    """Each word's target is the next word, or each row has a class."""

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
    """With PyTorch's fused kernel for all parameters, if the optimizer has one."""

    def make(parameters):
        parameters = [p for p in parameters if p.requires_grad]
        optimizer = optimizer_of(parameters)
        try:
            return type(optimizer)(parameters, **{**optimizer.defaults, "foreach": None, "fused": True})
        except (TypeError, RuntimeError, ValueError):
            return optimizer

    return make


RESNET = fused(sgd(0.1, momentum=0.9, nesterov=True, weight_decay=1e-4))

NETS = {
    "lenet": Net(LeNet, images((1, 28, 28), 10), fused(sgd(0.1))),
    "mlp": Net(MLP, images((784,), 10), fused(sgd(0.05, momentum=0.9, weight_decay=1e-3))),
    "resnet56": Net(ResNet56, images((3, 32, 32), 10), fused(sgd(0.01, momentum=0.9, weight_decay=1e-4))),
    "alexnet_s": Net(AlexNetS, images((3, 224, 224), 1000), fused(sgd(0.01))),
    "resnet50": Net(lambda: ResNet(Bottleneck, (3, 4, 6, 3)), images((3, 224, 224), 1000), RESNET),
    "resnet18": Net(lambda: ResNet(BasicBlock, (2, 2, 2, 2)), images((3, 224, 224), 1000), RESNET),
    "unet": Net(UNet, images((3, 256, 256), 2, (256, 256)), fused(sgd(0.01, momentum=0.9))),
    "fcn_s": Net(lambda: FCN(26752, 2048, 2048, 2048, 26752), images((26752,), 26752), fused(sgd(0.01))),
    "fcn_r": Net(lambda: FCN(784, 2048, 4096, 1024, 10), images((784,), 10), fused(sgd(0.05, momentum=0.9))),
    "alexnet_r": Net(AlexNetR, images((3, 32, 32), 10), fused(sgd(0.01, momentum=0.9))),
    "mobilenetv2": Net(MobileNetV2, images((3, 224, 224), 1000), fused(sgd(0.01))),
    "lstm": Net(LSTM, words(32, 10000), fused(sgd(0.1)), of_each_row, clip=5.0),
    "lstm_lm": Net(LanguageModel, words(35, 10000), fused(sgd(1.0)), of_each_row, clip=5.0),
    "gpt2": Net(GPT2, words(128, 50257), fused(adamw(betas=(0.9, 0.95), weight_decay=0.1)), of_each_word),
    "bert_base": Net(BERT, words(128, 30522, classes=2), fused(adamw())),
    "vit_s": Net(ViTS16, images((3, 224, 224), 1000), fused(adamw(weight_decay=0.05))),
    "mlp_mixer": Net(MlpMixer, images((3, 224, 224), 1000), fused(sgd(0.01, momentum=0.9))),
}
