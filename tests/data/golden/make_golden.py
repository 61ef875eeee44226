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
from nets_torch import NETS  # noqa: E402: of the folder named above
from transformers_torch import by_products  # noqa: E402


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


NETWORKS = {  # shape of a row, classes
    "lenet": ((1, 28, 28), 10),
    "mlp": ((784,), 10),
    "fcn_s": ((26752,), 26752),
    "fcn_r": ((784,), 10),
    "alexnet_s": ((3, 224, 224), 1000),
    "alexnet_r": ((3, 32, 32), 10),
    "resnet56": ((3, 32, 32), 10),
    "resnet18": ((3, 224, 224), 1000),
    "resnet50": ((3, 224, 224), 1000),
    "mobilenetv2": ((3, 224, 224), 1000),
    "unet": ((3, 256, 256), 2),
    "lstm": ((32,), 10000),
    "gpt2": ((128,), 50257),
}
# By which op PyTorch attends the fastest differs among versions and machines.
OPTIONS = {"gpt2": {"dropout": 0.0, "attention": by_products}}
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
    shape, classes = NETWORKS[net]
    shape = (*shape[:-2], *(size * len(shape[-2:]))) if size else shape
    labels = shape[1:] if net in PIXELS else ()
    sizes = SIZES.get(name, ())
    classes = sizes[0] if sizes else classes
    module = NETS[net].build(*sizes, **OPTIONS.get(net, {}))
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
    torch.set_num_threads(1)  # with more, Debian's PyTorch 1.13 gets a convolution in float64 wrong now and then
    for wanted in sys.argv[1:]:
        write(wanted)
