"""The transformers of models/ beside PyTorch in double precision, small ones with the same weights: what they predict, the loss,
and the gradients of all parameters. They are written with torch.nn's layers and products alone."""

import math

import torch
import torch.nn.functional as F

ALLOWED = 1e-9  # of the largest element


class Weights:
    """Parameters by name, shaped where they are used."""

    def __init__(self, before):
        self.parameters = {name: torch.tensor(values, dtype=torch.float64).requires_grad_() for name, values in before.items()}

    def __call__(self, name, *shape):
        return self.parameters[name].reshape(shape)

    def linear(self, name, x, width):
        return F.linear(x, self(name + ".weight", width, x.shape[-1]), self.parameters[name + ".bias"])

    def transposed(self, name, x, width):
        return x @ self(name + ".weight", x.shape[-1], width) + self.parameters[name + ".bias"]

    def norm(self, name, x, eps):
        return F.layer_norm(x, x.shape[-1:], self.parameters[name + ".weight"], self.parameters[name + ".bias"], eps)


def attention(q, k, v, hidden=None):
    """All scores at once, in heads of 64."""
    q, k, v = (x.reshape(*x.shape[:2], -1, 64).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) / 8
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)


def vit_s(weights, inputs, rows):
    width = weights.parameters["norm.weight"].numel()
    image = inputs["image"].reshape(rows, 3, 224, 224)
    x = F.conv2d(image, weights("patch_embed.proj.weight", width, 3, 16, 16), weights.parameters["patch_embed.proj.bias"],
                 stride=16).flatten(2).transpose(1, 2)
    x = torch.cat([weights("cls_token", 1, 1, width).expand(rows, 1, width), x], 1) + weights("pos_embed", 1, 197, width)
    for block in (f"blocks.{number}." for number in range(2)):
        q, k, v = weights.linear(block + "attn.qkv", weights.norm(block + "norm1", x, 1e-6), 3 * width).chunk(3, 2)
        x = x + weights.linear(block + "attn.proj", attention(q, k, v), width)
        hidden = F.gelu(weights.linear(block + "mlp.fc1", weights.norm(block + "norm2", x, 1e-6), 4 * width))
        x = x + weights.linear(block + "mlp.fc2", hidden, width)
    logits = weights.linear("head", weights.norm("norm", x, 1e-6)[:, 0], 1000)
    return logits, F.cross_entropy(logits, inputs["label"].long())


def bert_base(weights, inputs, rows):
    width = weights.parameters["bert.embeddings.LayerNorm.weight"].numel()
    words, types = (inputs[name].reshape(rows, -1).long() for name in ("input_ids", "token_type_ids"))
    table = {name: weights(f"bert.embeddings.{name}_embeddings.weight", -1, width)
             for name in ("word", "position", "token_type")}
    x = table["word"][words] + table["token_type"][types] + table["position"][:words.shape[1]]
    x = weights.norm("bert.embeddings.LayerNorm", x, 1e-12)
    hidden = (inputs["attention_mask"].reshape(rows, 1, 1, -1) == 0)
    for layer in (f"bert.encoder.layer.{number}." for number in range(2)):
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
    words, following = (inputs[name].reshape(rows, -1).long() for name in ("input_ids", "labels"))
    table = weights("wte.weight", -1, width)
    x = table[words] + weights("wpe.weight", -1, width)[:words.shape[1]]
    later = torch.ones(words.shape[1], words.shape[1], dtype=torch.bool).triu(1)
    for layer in (f"h.{number}." for number in range(2)):
        q, k, v = weights.transposed(layer + "attn.c_attn", weights.norm(layer + "ln_1", x, 1e-5), 3 * width).chunk(3, 2)
        x = x + weights.transposed(layer + "attn.c_proj", attention(q, k, v, later), width)
        hidden = weights.transposed(layer + "mlp.c_fc", weights.norm(layer + "ln_2", x, 1e-5), 4 * width)
        x = x + weights.transposed(layer + "mlp.c_proj", F.gelu(hidden, approximate="tanh"), width)
    logits = weights.norm("ln_f", x, 1e-5) @ table.T
    return logits, F.cross_entropy(logits.flatten(0, 1), following.flatten())


NETWORKS = {"vit_s": vit_s, "bert_base": bert_base, "gpt2": gpt2}


def problems(case):
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
        return
    weights = Weights(case["before"])
    inputs = {name: torch.tensor(values, dtype=torch.float64) for name, values in case["inputs"].items()}
    logits, loss = NETWORKS[case["name"]](weights, inputs, case["rows"])
    loss.backward()
    truth = {"logits": logits, "loss": loss} | {name: parameter.grad for name, parameter in weights.parameters.items()}
    found = case["gradients"] | {"logits": case["predicted"]["logits"], "loss": [case["loss"]]}
    for name, value in truth.items():
        if value is None:
            yield f"{case['name']}: {name} has no gradient in PyTorch"
            continue
        value = value.detach().flatten()
        got = torch.tensor(found[name], dtype=torch.float64)
        if got.shape != value.shape:
            yield f"{case['name']}: {name} has {got.numel()} elements in place of {value.numel()}"
        elif not bool((got - value).abs().max() <= ALLOWED * value.abs().max().clamp(min=1e-3)):
            yield f"{case['name']}: {name} is off by {(got - value).abs().max():.3g} of {value.abs().max():.3g}"
