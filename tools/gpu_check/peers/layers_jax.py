"""Layers of the networks in JAX, NHWC and HWIO, and their parameters. The parameters of a layer, and the layers of a
network, are in PyTorch's order. Batch normalization uses the batch's statistics in training and stored ones in
inference; no averages are kept."""

import jax.numpy as jnp
import numpy as np
from jax import lax

rng = np.random.default_rng(0)


def w(*shape):
    fan = int(np.prod(shape[:-1]))
    return (rng.uniform(-1, 1, shape) * (3 / fan) ** 0.5).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def conv(p, x, stride=1, pad=0, groups=1):
    y = lax.conv_general_dilated(x, p["w"], (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
    return y + p["b"] if "b" in p else y


def conv_p(cin, cout, k, bias=True, groups=1):
    p = {"w": w(k, k, cin // groups, cout)}
    return {**p, "b": zeros(cout)} if bias else p


def up(p, x):
    """A transposed convolution that scales images by its window size. Its weights have the layout of the convolution
    in the opposite direction."""
    stride = p["w"].shape[0]
    return lax.conv_transpose(x, p["w"], (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), transpose_kernel=True) + p["b"]


def up_p(cin, cout, k):
    return {"w": w(k, k, cout, cin), "b": zeros(cout)}


def lin_p(a, b):
    return {"w": w(a, b), "b": zeros(b)}


def lin(p, x):
    return x @ p["w"] + p["b"]


def bn_p(c):
    return {"g": np.ones(c, np.float32), "b": zeros(c)}


TRAINING = [True]  # mode of the current trace


def bn(p, x):
    if TRAINING[0]:
        m = x.mean((0, 1, 2))
        v = ((x - m) ** 2).mean((0, 1, 2))
    else:
        m, v = 0.0, 1.0
    return (x - m) * lax.rsqrt(v + 1e-5) * p["g"] + p["b"]


def ln(p, x, eps=1e-5):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + eps) * p["g"] + p["b"]


def pool(x, k, s, pad=0, avg=False):
    window, stride, pads = (1, k, k, 1), (1, s, s, 1), [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    if avg:
        return lax.reduce_window(x, 0.0, lax.add, window, stride, pads) / (k * k)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, stride, pads)
