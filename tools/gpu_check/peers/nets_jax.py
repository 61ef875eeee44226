"""Networks of models/ as pure JAX functions, NHWC and HWIO: NETS[name] = (parameters(), apply(parameters, x), loss(output, y),
batch(rows, words), settings of the optimizer). Batch normalisation uses the batch's statistics in training, in inference others
that are there; no averages are kept."""

import jax
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


def lin_p(a, b):
    return {"w": w(a, b), "b": zeros(b)}


def lin(p, x):
    return x @ p["w"] + p["b"]


def bn_p(c):
    return {"g": np.ones(c, np.float32), "b": zeros(c)}


TRAINING = [True]  # what is traced now


def bn(p, x):
    if TRAINING[0]:
        m = x.mean((0, 1, 2))
        v = ((x - m) ** 2).mean((0, 1, 2))
    else:
        m, v = 0.0, 1.0
    return (x - m) * lax.rsqrt(v + 1e-5) * p["g"] + p["b"]


def pool(x, k, s, pad=0, avg=False):
    window, stride, pads = (1, k, k, 1), (1, s, s, 1), [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    if avg:
        return lax.reduce_window(x, 0.0, lax.add, window, stride, pads) / (k * k)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, stride, pads)


relu = jax.nn.relu


def lenet(p, x):
    x = pool(relu(conv(p["c1"], x)), 2, 2, avg=True)
    x = pool(relu(conv(p["c2"], x)), 2, 2, avg=True)
    return lin(p["f2"], relu(lin(p["f1"], x.reshape(x.shape[0], -1))))


def lenet_p():
    return {"c1": conv_p(1, 20, 3), "c2": conv_p(20, 50, 5), "f1": lin_p(800, 128), "f2": lin_p(128, 10)}


def mlp(p, x):
    return lin(p["f3"], relu(lin(p["f2"], jnp.tanh(lin(p["f1"], x)))))


def mlp_p():
    return {"f1": lin_p(784, 256), "f2": lin_p(256, 128), "f3": lin_p(128, 10)}


def fcn(p, x):
    for layer in p[:-1]:
        x = jax.nn.sigmoid(lin(layer, x))
    return lin(p[-1], x)


def fcn_p(*widths):
    return lambda: [lin_p(a, b) for a, b in zip(widths, widths[1:])]


def alexnet_s(p, x):
    x = pool(relu(conv(p["c1"], x, 4, 2)), 3, 2)
    x = pool(relu(conv(p["c2"], x, 1, 2)), 3, 2)
    x = relu(conv(p["c4"], relu(conv(p["c3"], x, 1, 1)), 1, 1))
    x = pool(relu(conv(p["c5"], x, 1, 1)), 3, 2)
    return lin(p["f8"], relu(lin(p["f7"], relu(lin(p["f6"], x.reshape(x.shape[0], -1))))))


def alexnet_s_p():
    return {"c1": conv_p(3, 96, 11), "c2": conv_p(96, 256, 5), "c3": conv_p(256, 384, 3), "c4": conv_p(384, 384, 3), "c5": conv_p(384, 256, 3), "f6": lin_p(9216, 4096), "f7": lin_p(4096, 4096), "f8": lin_p(4096, 1000)}


def alexnet_r(p, x):
    x = relu(pool(conv(p["c1"], x, 1, 2), 3, 2))
    x = pool(relu(conv(p["c2"], x, 1, 2)), 3, 2)
    x = pool(relu(conv(p["c3"], x, 1, 2)), 3, 2, avg=True)
    return lin(p["f"], x.reshape(x.shape[0], -1))


def alexnet_r_p():
    return {"c1": conv_p(3, 32, 5), "c2": conv_p(32, 32, 5), "c3": conv_p(32, 64, 5), "f": lin_p(576, 10)}


def resnet50(p, x):
    x = pool(relu(bn(p["bn"], conv(p["c"], x, 2, 3))), 3, 2, 1)
    for i, b in enumerate(p["blocks"]):
        s = 2 if i in (3, 7, 13) else 1
        y = relu(bn(b["b1"], conv(b["c1"], x)))
        y = relu(bn(b["b2"], conv(b["c2"], y, s, 1)))
        y = bn(b["b3"], conv(b["c3"], y))
        x = relu(y + (bn(b["bs"], conv(b["cs"], x, s)) if "cs" in b else x))
    return lin(p["f"], x.mean((1, 2)))


def resnet50_p():
    blocks, cin = [], 64
    for n, width in zip((3, 4, 6, 3), (64, 128, 256, 512)):
        for i in range(n):
            b = {"c1": conv_p(cin, width, 1, False), "b1": bn_p(width), "c2": conv_p(width, width, 3, False), "b2": bn_p(width), "c3": conv_p(width, 4 * width, 1, False), "b3": bn_p(4 * width)}
            if i == 0:
                b |= {"cs": conv_p(cin, 4 * width, 1, False), "bs": bn_p(4 * width)}
            blocks.append(b)
            cin = 4 * width
    return {"c": conv_p(3, 64, 7, False), "bn": bn_p(64), "blocks": blocks, "f": lin_p(2048, 1000)}


def resnet56(p, x):
    x = relu(bn(p["bn"], conv(p["c"], x, 1, 1)))
    for i, b in enumerate(p["blocks"]):
        s = 2 if i in (9, 18) else 1
        y = bn(b["b2"], conv(b["c2"], relu(bn(b["b1"], conv(b["c1"], x, s, 1))), 1, 1))
        if s == 2:
            e = y.shape[-1] - x.shape[-1]
            x = jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (e // 2, e - e // 2)))
        x = relu(y + x)
    return lin(p["f"], x.mean((1, 2)))


def resnet56_p():
    blocks = []
    for s, (a, b) in enumerate(((16, 16), (16, 32), (32, 64))):
        for i in range(9):
            c = a if i == 0 else b
            blocks.append({"c1": conv_p(c, b, 3, False), "b1": bn_p(b), "c2": conv_p(b, b, 3, False), "b2": bn_p(b)})
    return {"c": conv_p(3, 16, 3, False), "bn": bn_p(16), "blocks": blocks, "f": lin_p(64, 10)}


def lstm(p, x):
    h = p["e"][x]
    for layer in p["l"]:
        zx = h @ layer["wi"] + layer["b"]

        def cell(carry, z, layer=layer):
            hh, c = carry
            i, f, g, o = jnp.split(z + hh @ layer["wh"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            hh = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (hh, c), hh

        start = (jnp.zeros((x.shape[0], 256), h.dtype),) * 2
        h = lax.scan(cell, start, zx.swapaxes(0, 1))[1].swapaxes(0, 1)
    return lin(p["f"], h)


def lstm_p():
    return {"e": w(10000, 256), "l": [{"wi": w(256, 1024), "wh": w(256, 1024), "b": zeros(1024)} for _ in range(2)], "f": lin_p(256, 10000)}


def ln(p, x):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * p["g"] + p["b"]


def gpt2(p, x):
    t = x.shape[1]
    h = p["wte"][x] + p["wpe"][:t]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for b in p["h"]:
        q, k, v = (s.reshape(*s.shape[:2], 12, 64).transpose(0, 2, 1, 3) for s in jnp.split(lin(b["qkv"], ln(b["l1"], h)), 3, -1))
        a = jax.nn.softmax(jnp.where(mask, q @ k.swapaxes(2, 3) / 8, -jnp.inf), -1) @ v
        h = h + lin(b["o"], a.transpose(0, 2, 1, 3).reshape(h.shape))
        h = h + lin(b["f2"], jax.nn.gelu(lin(b["f1"], ln(b["l2"], h)), approximate=True))
    return ln(p["lf"], h) @ p["wte"].T


def gpt2_p():
    block = lambda: {"l1": bn_p(768), "l2": bn_p(768), "qkv": lin_p(768, 2304), "o": lin_p(768, 768), "f1": lin_p(768, 3072), "f2": lin_p(3072, 768)}
    return {"wte": w(50257, 768), "wpe": w(1024, 768), "h": [block() for _ in range(12)], "lf": bn_p(768)}


def ce(o, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(o), y[..., None], -1).mean()


def lstm_loss(o, y):
    return ce(o, y) * y.shape[1]


def image(c, s, k):
    return lambda n, _length=0: (rng.random((n, s, s, c), np.float32), rng.integers(0, k, n, np.int32))


def vector(d, k):
    return lambda n, _length=0: (rng.random((n, d), np.float32), rng.integers(0, k, n, np.int32))


def tokens(t, k):
    return lambda n, length=t: (rng.integers(0, k, (n, length), np.int32), rng.integers(0, k, (n, length), np.int32))


NETS = {
    "lenet": (lenet_p, lenet, ce, image(1, 28, 10), dict(lr=0.1)),
    "mlp": (mlp_p, mlp, ce, vector(784, 10), dict(lr=0.05, momentum=0.9, wd=1e-3)),
    "fcn_s": (fcn_p(26752, 2048, 2048, 2048, 26752), fcn, ce, vector(26752, 26752), dict(lr=0.01)),
    "alexnet_s": (alexnet_s_p, alexnet_s, ce, image(3, 224, 1000), dict(lr=0.01)),
    "resnet50": (resnet50_p, resnet50, ce, image(3, 224, 1000), dict(lr=0.01, momentum=0.9, nesterov=True, wd=1e-4)),
    "fcn_r": (fcn_p(784, 2048, 4096, 1024, 10), fcn, ce, vector(784, 10), dict(lr=0.05, momentum=0.9)),
    "alexnet_r": (alexnet_r_p, alexnet_r, ce, image(3, 32, 10), dict(lr=0.01, momentum=0.9)),
    "resnet56": (resnet56_p, resnet56, ce, image(3, 32, 10), dict(lr=0.01, momentum=0.9, wd=1e-4)),
    "lstm": (lstm_p, lstm, lstm_loss, tokens(32, 10000), dict(lr=0.1, clip=5.0)),
    "gpt2": (gpt2_p, gpt2, ce, tokens(128, 50257), dict(lr=3e-4, adamw=True)),
}


def in_dtype(apply, dtype):
    """With parameters and numbers rounded to `dtype`, and the result in f32 again."""
    def rounded(value):
        return value.astype(dtype) if jnp.issubdtype(value.dtype, jnp.floating) else value

    return lambda params, x: apply(jax.tree.map(rounded, params), rounded(x)).astype(jnp.float32)


def make_step(apply, loss, opt):
    """(params, slots, x, y) -> (params, slots, loss), to be jitted with params and slots donated."""

    def step(params, slots, x, y):
        value, g = jax.value_and_grad(lambda p: loss(apply(p, x), y))(params)
        tree = jax.tree.map
        if "clip" in opt:
            norm = jnp.sqrt(sum(jnp.sum(v * v) for v in jax.tree.leaves(g)))
            g = tree(lambda v: v * jnp.minimum(1.0, opt["clip"] / norm), g)
        if opt.get("adamw"):
            m = tree(lambda a, b: 0.9 * a + 0.1 * b, slots[0], g)
            v = tree(lambda a, b: 0.95 * a + 0.05 * b * b, slots[1], g)
            t = slots[2] + 1
            c1, c2 = 1 - 0.9**t, 1 - 0.95**t
            params = tree(lambda p, a, b: p * (1 - 0.1 * opt["lr"]) - opt["lr"] * (a / c1) / (jnp.sqrt(b / c2) + 1e-8), params, m, v)
            return params, (m, v, t), value
        if "wd" in opt:
            g = tree(lambda a, p: a + opt["wd"] * p, g, params)
        if "momentum" in opt:
            slots = tree(lambda m, a: opt["momentum"] * m + a, slots, g)
            g = tree(lambda a, m: a + opt["momentum"] * m, g, slots) if opt.get("nesterov") else slots
        return tree(lambda p, a: p - opt["lr"] * a, params, g), slots, value

    return step


def make_slots(params, opt):
    zeros_like = lambda: jax.tree.map(jnp.zeros_like, params)
    if opt.get("adamw"):
        return (zeros_like(), zeros_like(), jnp.zeros(()))
    return zeros_like() if "momentum" in opt else ()
