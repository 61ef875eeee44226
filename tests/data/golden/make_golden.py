"""Writes <name>.json: what PyTorch computes for a model program from portable initial values and batches.

    python make_golden.py NAME...        needs PyTorch (a file says which made it) and numpy, and safetensors
                                         for `lenet` and `mlp`

A name is a network's, or one with a variant: fewer rows and steps (`resnet50.batch2`), smaller images (`unet.size32`) or
another optimizer (`mlp.nesterov`); RUNS lists them. A file holds the optimizer's settings, the loss before every update in
float64 (the truth) and in float32 (PyTorch's own rounding, the yardstick); for every parameter its first gradient, for every
parameter and running statistic its value after the last step, and what is predicted then of the first batch, each as L2 norm,
sum and eight samples (float64) with the relative L2 error of PyTorch's float32. `lenet` and `mlp` also write their float32
weights before and after, as safetensors. tests/e2e/Portable.h makes the same numbers in C++.
"""

import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(FOLDER, "../../../tools/gpu_check/peers"))
from nets_torch import FCN, AlexNetR, MobileNetV2  # noqa: E402: of the folder named above


# Numbers that any program can reproduce: uniform values from splitmix64, keyed by a name.


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def bits(name, count):
    with np.errstate(over="ignore"):
        s = np.uint64(fnv1a64(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (s ^ (s >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(name, shape, lo=0.0, hi=1.0):
    u = (bits(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
    return torch.from_numpy((np.float32(lo) + np.float32(hi - lo) * u).reshape(shape))


def integers(name, shape, n):
    z = bits(name, int(np.prod(shape))) >> np.uint64(32)
    return torch.from_numpy(((z * np.uint64(n)) >> np.uint64(32)).astype(np.int64).reshape(shape))


def batch(net, step, rows, shape, classes, labels):
    """Noise in [0, 1), and for images a value in [-1, 1) for each quarter of each channel, so that they differ by more, with
    labels, of one row in that shape; words of a language model, each with the next."""
    key = f"{net}/batch{step}"
    if net in WORDS:
        return integers(f"{key}/x", (rows, *shape), classes), integers(f"{key}/y", (rows, *shape), classes)
    x = uniform(f"{key}/x", (rows, *shape))
    if len(shape) == 3:
        half = shape[1] // 2
        patch = uniform(f"{key}/patch", (rows, shape[0], 2, 2), -1, 1)
        x = x + patch.repeat_interleave(half, 2).repeat_interleave(half, 3)
    return x, integers(f"{key}/y", (rows, *labels), classes)


WORDS = ("lstm", "gpt2")
LAST_NORMS = {"resnet18": ".bn2.", "resnet50": ".bn3.", "resnet56": ".bn2."}


@torch.no_grad()
def set_initial(module, net):
    """Weights +-sqrt(3 / fan_in); those of norms 1 +- 0.1, of a residual branch's last norm 0.2 +- 0.1; the rest
    +-0.1, embeddings too."""
    for name, p in module.named_parameters():
        centre, spread = 0.0, 0.1
        if not p.requires_grad:
            continue
        if name.startswith(("embedding", "wte", "wpe")):
            pass
        elif p.dim() >= 2:
            spread = (3.0 / p[0].numel()) ** 0.5
        elif name.endswith("weight"):
            last = LAST_NORMS.get(net, " ") in name
            centre = 0.2 if last else 1.0
        p.copy_(uniform(f"{net}/{name}", p.shape, centre - spread, centre + spread))


# The networks of models/, under the same names.


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
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(torch.tanh(self.fc1(x)))))


class AlexNetS(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 96, 11, 4, 2), nn.Conv2d(96, 256, 5, 1, 2)
        self.conv3, self.conv4 = nn.Conv2d(256, 384, 3, 1, 1), nn.Conv2d(384, 384, 3, 1, 1)
        self.conv5 = nn.Conv2d(384, 256, 3, 1, 1)
        self.fc6, self.fc7, self.fc8 = nn.Linear(9216, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 3, 2)
        x = F.relu(self.conv4(F.relu(self.conv3(x))))
        x = F.max_pool2d(F.relu(self.conv5(x)), 3, 2)
        return self.fc8(F.relu(self.fc7(F.relu(self.fc6(x.flatten(1))))))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = projection(cin, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (self.downsample(x) if self.downsample else x))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.downsample = projection(cin, width, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


def projection(cin, cout, stride):
    if cin == cout and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))


class ResNet(nn.Module):
    def __init__(self, block, blocks):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        cin = 64
        for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512))):
            layers = []
            for number in range(count):
                layers.append(block(cin, width, 2 if stage and number == 0 else 1))
                cin = block.expansion * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(cin, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Basic(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.extra = cout - cin
        self.conv1 = nn.Conv2d(cin, cout, 3, 2 if self.extra else 1, 1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.extra:  # subsample, then zero channels on both sides
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


class DoubleConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        layers = []
        for channels in (cin, cout):
            layers += [nn.Conv2d(channels, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, cin):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(cin, 2 * cin))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, cin):
        super().__init__()
        self.up, self.conv = nn.ConvTranspose2d(cin, cin // 2, 2, 2), DoubleConv(cin, cin // 2)

    def forward(self, x, skipped):
        return self.conv(torch.cat((skipped, self.up(x)), 1))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(3, 64)
        self.down1, self.down2, self.down3, self.down4 = (Down(width) for width in (64, 128, 256, 512))
        self.up1, self.up2, self.up3, self.up4 = (Up(width) for width in (1024, 512, 256, 128))
        self.outc = Head()

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        return self.outc(self.up4(self.up3(self.up2(x, x3), x2), x1))


class LSTM(nn.Module):
    """Each row of a batch begins with what the same row of the batch before left."""

    def __init__(self, words=10000, width=256):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True)
        for layer in range(2):  # one bias each: the second stays zero
            getattr(self.lstm, f"bias_hh_l{layer}").data.zero_()
            getattr(self.lstm, f"bias_hh_l{layer}").requires_grad_(False)
        self.fc = nn.Linear(width, words)
        self.state = None

    def forward(self, x):
        rows = x.shape[0]
        before = self.state and tuple(s[:, :rows].contiguous() for s in self.state)
        y, state = self.lstm(self.embedding(x), before)
        if self.state:  # rows that are not in the batch keep what they have
            state = tuple(torch.cat([new, old[:, rows:]], 1) for new, old in zip(state, self.state))
        self.state = tuple(s.detach() for s in state)
        return self.fc(y)


class GPT2Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, 1e-5), nn.LayerNorm(width, 1e-5)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        """Heads of 64 elements; PyTorch 1.13 has no function for it."""
        q, k, v = (part.unflatten(2, (-1, 64)).transpose(1, 2) for part in self.c_attn(x).chunk(3, 2))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(2, 3) / 8).masked_fill(later, -torch.inf)
        return self.c_proj((scores.softmax(3) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.c_mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Without dropout."""

    def __init__(self, words=50257, width=768, layers=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(1024, width)
        self.h, self.ln_f = nn.Sequential(*(GPT2Block(width) for _ in range(layers))), nn.LayerNorm(width, 1e-5)

    def forward(self, x):
        return self.ln_f(self.h(self.wte(x) + self.wpe.weight[:x.shape[1]])) @ self.wte.weight.T


NETWORKS = {  # module, shape of a row, classes
    "lenet": (LeNet, (1, 28, 28), 10),
    "mlp": (MLP, (784,), 10),
    "fcn_s": (lambda: FCN(26752, 2048, 2048, 2048, 26752), (26752,), 26752),
    "fcn_r": (lambda: FCN(784, 2048, 4096, 1024, 10), (784,), 10),
    "alexnet_s": (AlexNetS, (3, 224, 224), 1000),
    "alexnet_r": (AlexNetR, (3, 32, 32), 10),
    "resnet56": (ResNet56, (3, 32, 32), 10),
    "resnet18": (lambda: ResNet(BasicBlock, (2, 2, 2, 2)), (3, 224, 224), 1000),
    "resnet50": (lambda: ResNet(Bottleneck, (3, 4, 6, 3)), (3, 224, 224), 1000),
    "mobilenetv2": (MobileNetV2, (3, 224, 224), 1000),
    "unet": (UNet, (3, 256, 256), 2),
    "lstm": (LSTM, (32,), 10000),
    "gpt2": (GPT2, (128,), 50257),
}
PIXELS = ("unet",)  # each has a label
RESNET50 = {"lr": 0.002, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}
RESNET56 = {"lr": 0.001, "momentum": 0.9, "weight_decay": 1e-4}
FCN_R = {"lr": 0.05, "momentum": 0.9}
ALEXNET_R = {"lr": 0.01, "momentum": 0.9}
RESNET18 = {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}
MOBILENETV2 = {"lr": 1e-4, "momentum": 0.9}
UNET = {"lr": 0.01, "momentum": 0.9}
GPT2_ADAMW = {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
RUNS = {  # rows, steps, arguments of torch.optim.SGD or AdamW, and the size of images that are smaller, or of shorter rows
    "lenet": (256, 20, {"lr": 0.02}),
    "mlp": (64, 20, {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3}),
    "fcn_s": (64, 10, {"lr": 0.01}),
    "fcn_r": (1024, 10, FCN_R),
    "alexnet_s": (16, 10, {"lr": 0.002}),
    "alexnet_r": (1024, 10, ALEXNET_R),
    "resnet56": (128, 10, RESNET56),
    "resnet50": (16, 10, RESNET50),
    "resnet18": (4, 2, RESNET18),
    "mobilenetv2": (4, 2, MOBILENETV2),
    "unet": (2, 2, UNET),
    "resnet18.size64": (4, 3, RESNET18, 64),
    "mobilenetv2.size64": (4, 3, MOBILENETV2, 64),
    "unet.size32": (3, 3, UNET, 32),
    "fcn_s.batch2": (2, 3, {"lr": 0.01, "momentum": 0.9}),
    "fcn_r.batch8": (8, 3, FCN_R),
    "alexnet_s.batch2": (2, 3, {"lr": 0.002}),
    "alexnet_r.batch8": (8, 3, ALEXNET_R),
    "resnet56.batch4": (4, 3, RESNET56),
    "resnet50.batch2": (2, 3, RESNET50),
    "lstm": (128, 10, {"lr": 0.1}),
    "lstm.small": (3, 4, {"lr": 0.1}),
    "gpt2": (1, 10, GPT2_ADAMW),
    # What rounding leaves of the gradients of keys' biases, which are zero, is divided by eps.
    "gpt2.small": (2, 3, {**GPT2_ADAMW, "eps": 1e-4}, 16),
    "mlp.momentum": (16, 5, {"lr": 0.05, "momentum": 0.8}),
    "mlp.nesterov": (16, 5, {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
    "mlp.dampening": (16, 5, {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    "mlp.decay": (16, 5, {"lr": 0.05, "weight_decay": 0.04}),
    "mlp.dampening_decay": (16, 5, {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.04}),
    "mlp.nesterov_decay": (16, 5, {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.04}),
}
SIZES = {"lstm.small": (50, 32), "gpt2.small": (50, 128, 2)}  # arguments of a network, the first its classes
SHORT = {"lstm.small": {"1": 2}}  # the rows of steps that have fewer
CLIP = {"lstm": 5.0, "lstm.small": 2.0}  # the norm of all gradients
SETTINGS = {"SGD": ("lr", "momentum", "dampening", "weight_decay", "nesterov"),
            "AdamW": ("lr", "betas", "eps", "weight_decay", "amsgrad")}


def save_weights(module, name, when):
    if name in ("lenet", "mlp") and next(module.parameters()).dtype == torch.float32:
        from safetensors.torch import save_file  # nothing else needs it

        save_file(module.state_dict(), os.path.join(FOLDER, f"{name}.{when}.safetensors"))


def kind_of(name):
    return "AdamW" if "betas" in RUNS[name][2] else "SGD"


def run(name, dtype):
    """Losses, first gradients and final values of all steps, what is predicted then, and the optimizer's settings."""
    net, (rows, steps, settings, *size) = name.partition(".")[0], RUNS[name]
    build, shape, classes = NETWORKS[net]
    shape = (*shape[:-2], *(size * len(shape[-2:]))) if size else shape
    labels = shape[1:] if net in PIXELS else ()
    sizes = SIZES.get(name, ())
    classes = sizes[0] if sizes else classes
    module = build(*sizes)
    set_initial(module, net)
    module = module.to(dtype).train()
    save_weights(module, name, "init")
    optimizer = getattr(torch.optim, kind_of(name))(module.parameters(), **settings)
    losses, gradients = [], {}

    def cast(x):
        return x.to(dtype) if x.is_floating_point() else x

    for step in range(steps):
        x, y = batch(net, step, SHORT.get(name, {}).get(str(step), rows), shape, classes, labels)
        optimizer.zero_grad()
        logits = module(cast(x))
        if net in WORDS:
            logits, y = logits.flatten(0, 1), y.flatten()
        loss = F.cross_entropy(logits, y)
        if net == "lstm":  # a sum over the steps, a mean over the rows
            loss = loss * shape[0]
        loss.backward()
        gradients = gradients or {
            k: p.grad.detach().double().clone() for k, p in module.named_parameters() if p.requires_grad
        }
        if name in CLIP:
            nn.utils.clip_grad_norm_(module.parameters(), CLIP[name])
        optimizer.step()
        losses.append(loss.item())
    save_weights(module, name, "final")
    single = [k for k in module.state_dict() if "bias_hh" not in k]  # it has one bias a layer
    final = {k: v.detach().double() for k, v in module.state_dict().items() if v.is_floating_point() and k in single}
    module.state = None  # what is predicted begins with zeros
    with torch.no_grad():
        logits = module.eval()(cast(batch(net, 0, rows, shape, classes, labels)[0]))
    used = {key: optimizer.param_groups[0][key] for key in SETTINGS[kind_of(name)]}
    return losses, gradients, final, {"logits": logits.double()}, used


def samples(value):
    flat = value.flatten()
    index = [flat.numel() * i // 8 for i in range(8)] if flat.numel() >= 8 else list(range(flat.numel()))
    return {"index": index, "value": flat[index].tolist()}


def digest(truth, single):
    def error(k, v):
        return ((single[k] - v).norm() / v.norm().clamp_min(1e-300)).item()

    return {k: {"shape": list(v.shape), "norm": v.norm().item(), "sum": v.sum().item(), "samples": samples(v),
                "f32_rel_error": error(k, v)} for k, v in truth.items()}


def write(name):
    losses, gradients, final, predicted, settings = run(name, torch.float64)
    losses32, gradients32, final32, predicted32, _ = run(name, torch.float32)
    figures = {
        "net": name.partition(".")[0],
        "pytorch": torch.__version__,
        "batch": RUNS[name][0],
        **({"short_steps": SHORT[name]} if name in SHORT else {}),
        **dict(zip(["size"], RUNS[name][3:])),
        "optimizer": {"kind": kind_of(name), **settings, **({"global_norm_clip": CLIP[name]} if name in CLIP else {})},
        "loss_f64": losses,
        "loss_f32": losses32,
        "loss_f32_max_rel_error": max(abs(a - b) / abs(a) for a, b in zip(losses, losses32)),
        "first_gradient": digest(gradients, gradients32),
        "final": digest(final, final32),
        "predicted": digest(predicted, predicted32),
    }
    with open(os.path.join(FOLDER, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(figures, file, separators=(",", ":"))
    worst = [max(v["f32_rel_error"] for v in figures[k].values()) for k in ("first_gradient", "final")]
    print(f"{name}: float32 errs by {figures['loss_f32_max_rel_error']:.1e} in losses, {worst[0]:.1e} in first gradients, "
          f"{worst[1]:.1e} in final values")


if __name__ == "__main__":
    torch.set_num_threads(2)
    for wanted in sys.argv[1:]:
        write(wanted)
