"""Networks of models/ with equal blocks of products, as pure JAX functions without dropout: transformers and a
mixer."""

import jax
import jax.numpy as jnp

from layers_jax import bn_p, conv, conv_p, lin, lin_p, ln, w, zeros


def attend(b, x, mask=None):
    """In heads of 64."""
    q, k, v = (s.reshape(*s.shape[:2], -1, 64).transpose(0, 2, 1, 3) for s in jnp.split(lin(b["qkv"], x), 3, -1))
    scores = q @ k.swapaxes(2, 3) / 8
    a = jax.nn.softmax(scores if mask is None else jnp.where(mask, scores, -jnp.inf), -1) @ v
    return lin(b["o"], a.transpose(0, 2, 1, 3).reshape(x.shape))


def think(b, x, approximate=False):
    return lin(b["f2"], jax.nn.gelu(lin(b["f1"], x), approximate=approximate))


def block_p(width):
    return {"l1": bn_p(width), "l2": bn_p(width), "qkv": lin_p(width, 3 * width), "o": lin_p(width, width), "f1": lin_p(width, 4 * width),
            "f2": lin_p(4 * width, width)}


def gpt2(p, x):
    t = x.shape[1]
    h = p["wte"][x] + p["wpe"][:t]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for b in p["h"]:
        h = h + attend(b, ln(b["l1"], h), mask)
        h = h + think(b, ln(b["l2"], h), approximate=True)
    return ln(p["lf"], h) @ p["wte"].T


def gpt2_p():
    return {"wte": w(50257, 768), "wpe": w(1024, 768), "h": [block_p(768) for _ in range(12)], "lf": bn_p(768)}


def bert(p, x):
    h = ln(p["l"], p["word"][x] + p["position"][:x.shape[1]] + p["kind"][0], 1e-12)
    for b in p["h"]:
        h = ln(b["l1"], h + attend(b, h), 1e-12)
        h = ln(b["l2"], h + think(b, h), 1e-12)
    return lin(p["classifier"], jnp.tanh(lin(p["pooler"], h[:, 0])))


def bert_p():
    return {"word": w(30522, 768), "position": w(512, 768), "kind": w(2, 768), "l": bn_p(768), "h": [block_p(768) for _ in range(12)],
            "pooler": lin_p(768, 768), "classifier": lin_p(768, 2)}


def patches(p, x):
    y = conv(p, x, 16)
    return y.reshape(y.shape[0], -1, y.shape[-1])


def vit(p, x):
    h = patches(p["patch"], x)
    h = jnp.concatenate((jnp.broadcast_to(p["first"], (h.shape[0], 1, h.shape[2])), h), 1) + p["position"]
    for b in p["h"]:
        h = h + attend(b, ln(b["l1"], h, 1e-6))
        h = h + think(b, ln(b["l2"], h, 1e-6))
    return lin(p["f"], ln(p["l"], h, 1e-6)[:, 0])


def vit_p():
    return {"first": zeros(1, 1, 384), "position": zeros(1, 197, 384), "patch": conv_p(3, 384, 16), "h": [block_p(384) for _ in range(12)],
            "l": bn_p(384), "f": lin_p(384, 1000)}


def mixer(p, x):
    h = patches(p["patch"], x)
    for b in p["blocks"]:
        h = h + think(b["tokens"], ln(b["l1"], h, 1e-6).swapaxes(1, 2)).swapaxes(1, 2)
        h = h + think(b["channels"], ln(b["l2"], h, 1e-6))
    return lin(p["f"], ln(p["l"], h, 1e-6).mean(1))


def mixer_p():
    mlp = lambda features, hidden: {"f1": lin_p(features, hidden), "f2": lin_p(hidden, features)}
    block = lambda: {"l1": bn_p(512), "tokens": mlp(196, 256), "l2": bn_p(512), "channels": mlp(512, 2048)}
    return {"patch": conv_p(3, 512, 16), "blocks": [block() for _ in range(8)], "l": bn_p(512), "f": lin_p(512, 1000)}
