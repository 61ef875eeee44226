"""Transformers and MLP-Mixer of models/ compared with PyTorch in double precision, with the same weights:
predictions, loss, and the gradients of all parameters. The references use only torch.nn's layers and products."""

import math
import os

import torch
import torch.nn.functional as F
from safetensors import safe_open

ALLOWED = 1e-9  # relative to the largest element


class Weights:
    """Parameters by name; shapes are asserted at their uses."""

    def __init__(self, parameters):
        self.parameters = {name: value.requires_grad_() for name, value in parameters.items()}

    def __call__(self, name, *shape):
        parameter = self.parameters[name]
        assert all(size in (-1, its) for size, its in zip(shape, parameter.shape, strict=True)), f"{name}: {parameter.shape}"
        return parameter

    def linear(self, name, x, width):
        return F.linear(x, self(name + ".weight", width, x.shape[-1]), self.parameters[name + ".bias"])

    def transposed(self, name, x, width):
        return x @ self(name + ".weight", x.shape[-1], width) + self.parameters[name + ".bias"]

    def norm(self, name, x, eps):
        return F.layer_norm(x, x.shape[-1:], self.parameters[name + ".weight"], self.parameters[name + ".bias"], eps)

    def blocks(self, prefix):
        """The prefixes of modules numbered from 0."""
        numbers = {int(name[len(prefix):].partition(".")[0]) for name in self.parameters if name.startswith(prefix)}
        assert numbers == set(range(len(numbers)))
        return [f"{prefix}{number}." for number in sorted(numbers)]

    def mlp(self, name, x, width):
        return self.linear(name + ".fc2", F.gelu(self.linear(name + ".fc1", x, width)), x.shape[-1])

    def patches(self, name, image, width):
        weight, bias = self(name + ".weight", width, 3, 16, 16), self(name + ".bias", width)
        return F.conv2d(image, weight, bias, stride=16).flatten(2).transpose(1, 2)


def attention(q, k, v, hidden=None):
    """All attention scores at once, in heads of 64."""
    q, k, v = (x.reshape(*x.shape[:2], -1, 64).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) / 8
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)


def vit_s(weights, inputs, rows):
    width = weights.parameters["norm.weight"].numel()
    x = weights.patches("patch_embed.proj", inputs["image"].reshape(rows, 3, 224, 224), width)
    x = torch.cat([weights("cls_token", 1, 1, width).expand(rows, 1, width), x], 1) + weights("pos_embed", 1, 197, width)
    for block in weights.blocks("blocks."):
        q, k, v = weights.linear(block + "attn.qkv", weights.norm(block + "norm1", x, 1e-6), 3 * width).chunk(3, 2)
        x = x + weights.linear(block + "attn.proj", attention(q, k, v), width)
        x = x + weights.mlp(block + "mlp", weights.norm(block + "norm2", x, 1e-6), 4 * width)
    logits = weights.linear("head", weights.norm("norm", x, 1e-6)[:, 0], 1000)
    return logits, F.cross_entropy(logits, inputs["label"].long())


def mlp_mixer(weights, inputs, rows):
    width = weights.parameters["norm.weight"].numel()
    x = weights.patches("stem.proj", inputs["image"].reshape(rows, 3, 224, 224), width)
    for block in weights.blocks("blocks."):
        tokens = weights.norm(block + "norm1", x, 1e-6).transpose(1, 2)
        x = x + weights.mlp(block + "mlp_tokens", tokens, 256).transpose(1, 2)
        x = x + weights.mlp(block + "mlp_channels", weights.norm(block + "norm2", x, 1e-6), 4 * width)
    logits = weights.linear("head", weights.norm("norm", x, 1e-6).mean(1), 1000)
    return logits, F.cross_entropy(logits, inputs["label"].long())


def bert_base(weights, inputs, rows):
    width = weights.parameters["bert.embeddings.LayerNorm.weight"].numel()
    words, types = (inputs[name].reshape(rows, -1).long() for name in ("input_ids", "token_type_ids"))
    table = {name: weights(f"bert.embeddings.{name}_embeddings.weight", -1, width)
             for name in ("word", "position", "token_type")}
    x = table["word"][words] + table["token_type"][types] + table["position"][:words.shape[1]]
    x = weights.norm("bert.embeddings.LayerNorm", x, 1e-12)
    hidden = (inputs["attention_mask"].reshape(rows, 1, 1, -1) == 0)
    for layer in weights.blocks("bert.encoder.layer."):
        q, k, v = (weights.linear(layer + "attention.self." + name, x, width) for name in ("query", "key", "value"))
        y = weights.linear(layer + "attention.output.dense", attention(q, k, v, hidden), width)
        x = weights.norm(layer + "attention.output.LayerNorm", x + y, 1e-12)
        y = weights.linear(layer + "output.dense", F.gelu(weights.linear(layer + "intermediate.dense", x, 4 * width)), width)
        x = weights.norm(layer + "output.LayerNorm", x + y, 1e-12)
    pooled = torch.tanh(weights.linear("bert.pooler.dense", x[:, 0], width))
    logits = weights.linear("classifier", pooled, 2)
    return logits, F.cross_entropy(logits, inputs["label"].long())


def gpt2(weights, inputs, rows):
    width = weights.parameters["ln_f.weight"].numel()
    words, following = (inputs[name].reshape(rows, -1).long() for name in ("tokens", "label"))
    table = weights("wte.weight", -1, width)
    x = table[words] + weights("wpe.weight", -1, width)[:words.shape[1]]
    later = torch.ones(words.shape[1], words.shape[1], dtype=torch.bool).triu(1)
    for layer in weights.blocks("h."):
        q, k, v = weights.transposed(layer + "attn.c_attn", weights.norm(layer + "ln_1", x, 1e-5), 3 * width).chunk(3, 2)
        x = x + weights.transposed(layer + "attn.c_proj", attention(q, k, v, later), width)
        hidden = weights.transposed(layer + "mlp.c_fc", weights.norm(layer + "ln_2", x, 1e-5), 4 * width)
        x = x + weights.transposed(layer + "mlp.c_proj", F.gelu(hidden, approximate="tanh"), width)
    logits = weights.norm("ln_f", x, 1e-5) @ table.T
    return logits, F.cross_entropy(logits.flatten(0, 1), following.flatten())


NETWORKS = {"vit_s": vit_s, "mlp_mixer": mlp_mixer, "bert_base": bert_base, "gpt2": gpt2}
# For the networks in full size; BERT has a classifier of two classes.
PARAMETERS = {"vit_s": 22_050_664, "mlp_mixer": 18_528_264, "bert_base": 109_482_240 + 2 * 768 + 2, "gpt2": 124_439_808}
KEPT = {".exp_avg": 0.1, ".momentum_buffer": 1}  # share of the first gradient that AdamW and SGD keep


def states(path, wanted):
    """Tensors of a file, which is deleted afterwards."""
    with safe_open(path, "pt") as file:
        found = {name: file.get_tensor(name) for name in file.keys() if wanted(name)}
    os.remove(path)
    return found


def problems(case, size):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
        return
    kept = states(case["after"], lambda name: name.endswith(tuple(KEPT)))
    gradients = {name.removesuffix(end): value / share
                 for name, value in kept.items() for end, share in KEPT.items() if name.endswith(end)}
    weights = Weights(states(case["before"], gradients.__contains__))
    count = sum(parameter.numel() for parameter in weights.parameters.values())
    if size == "full" and count != PARAMETERS[case["name"]]:
        yield f"{case['name']}: {count} parameters in place of {PARAMETERS[case['name']]}"
    inputs = {name: torch.tensor(values, dtype=torch.float64) for name, values in case["inputs"].items()}
    logits, loss = NETWORKS[case["name"]](weights, inputs, case["rows"])
    loss.backward()
    truth = {"logits": logits, "loss": loss} | {name: parameter.grad for name, parameter in weights.parameters.items()}
    found = gradients | {"logits": case["predicted"]["logits"], "loss": [case["loss"]]}
    for name, value in truth.items():
        if value is None:
            yield f"{case['name']}: {name} has no gradient in PyTorch"
            continue
        value = value.detach().flatten()
        got = torch.as_tensor(found[name], dtype=torch.float64).flatten()
        if got.shape != value.shape:
            yield f"{case['name']}: {name} has {got.numel()} elements in place of {value.numel()}"
        elif not bool((got - value).abs().max() <= ALLOWED * value.abs().max().clamp(min=1e-6)):
            yield f"{case['name']}: {name} is off by {(got - value).abs().max():.3g} of {value.abs().max():.3g}"
