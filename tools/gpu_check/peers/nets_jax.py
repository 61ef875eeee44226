"""Networks of models/ as pure JAX functions: NETS[name] = (parameters(), apply(parameters, x), loss(output, y), batch(rows, words),
settings of the optimizer)."""

import jax
import jax.numpy as jnp
import numpy as np

from convolutions_jax import (alexnet_r, alexnet_r_p, alexnet_s, alexnet_s_p, basic, basic_p, bottleneck, bottleneck_p, lenet, lenet_p, mobilenetv2,
                              mobilenetv2_p, resnet, resnet56, resnet56_p, resnet_p, unet, unet_p)
from layers_jax import lin, lin_p, rng
from recurrent_jax import lstm, lstm_p
from transformers_jax import bert, bert_p, gpt2, gpt2_p, mixer, mixer_p, vit, vit_p


def mlp(p, x):
    return lin(p["f3"], jax.nn.relu(lin(p["f2"], jnp.tanh(lin(p["f1"], x)))))


def mlp_p():
    return {"f1": lin_p(784, 256), "f2": lin_p(256, 128), "f3": lin_p(128, 10)}


def fcn(p, x):
    for layer in p[:-1]:
        x = jax.nn.sigmoid(lin(layer, x))
    return lin(p[-1], x)


def fcn_p(*widths):
    return lambda: [lin_p(a, b) for a, b in zip(widths, widths[1:])]


def ce(o, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(o), y[..., None], -1).mean()


def lstm_loss(o, y):
    return ce(o, y) * y.shape[1]


def image(c, s, k, labels=()):
    """Each image has one class, or several."""
    return lambda n, _length=0: (rng.random((n, s, s, c), np.float32), rng.integers(0, k, (n, *labels), np.int32))


def vector(d, k):
    return lambda n, _length=0: (rng.random((n, d), np.float32), rng.integers(0, k, n, np.int32))


def tokens(t, k, classes=None):
    """Each word's target is the next word, or each row has a class."""
    return lambda n, length=t: (rng.integers(0, k, (n, length), np.int32), rng.integers(0, classes or k, n if classes else (n, length), np.int32))


RESNET = dict(lr=0.1, momentum=0.9, nesterov=True, wd=1e-4)
ADAMW = dict(lr=6e-4, adamw=True, betas=(0.9, 0.999), wd=0.01)

NETS = {
    "lenet": (lenet_p, lenet, ce, image(1, 28, 10), dict(lr=0.1)),
    "mlp": (mlp_p, mlp, ce, vector(784, 10), dict(lr=0.05, momentum=0.9, wd=1e-3)),
    "fcn_s": (fcn_p(26752, 2048, 2048, 2048, 26752), fcn, ce, vector(26752, 26752), dict(lr=0.01)),
    "alexnet_s": (alexnet_s_p, alexnet_s, ce, image(3, 224, 1000), dict(lr=0.01)),
    "resnet50": (resnet_p(bottleneck_p, 4, (3, 4, 6, 3)), resnet(bottleneck), ce, image(3, 224, 1000), RESNET),
    "resnet18": (resnet_p(basic_p, 1, (2, 2, 2, 2)), resnet(basic), ce, image(3, 224, 1000), RESNET),
    "mobilenetv2": (mobilenetv2_p, mobilenetv2, ce, image(3, 224, 1000), dict(lr=0.01)),
    "unet": (unet_p, unet, ce, image(3, 256, 2, (256, 256)), dict(lr=0.01, momentum=0.9)),
    "fcn_r": (fcn_p(784, 2048, 4096, 1024, 10), fcn, ce, vector(784, 10), dict(lr=0.05, momentum=0.9)),
    "alexnet_r": (alexnet_r_p, alexnet_r, ce, image(3, 32, 10), dict(lr=0.01, momentum=0.9)),
    "resnet56": (resnet56_p, resnet56, ce, image(3, 32, 10), dict(lr=0.01, momentum=0.9, wd=1e-4)),
    "lstm": (lstm_p(256), lstm, lstm_loss, tokens(32, 10000), dict(lr=0.1, clip=5.0)),
    "lstm_lm": (lstm_p(650), lstm, lstm_loss, tokens(35, 10000), dict(lr=1.0, clip=5.0)),
    "gpt2": (gpt2_p, gpt2, ce, tokens(128, 50257), ADAMW | dict(betas=(0.9, 0.95), wd=0.1)),
    "bert_base": (bert_p, bert, ce, tokens(128, 30522, classes=2), ADAMW),
    "vit_s": (vit_p, vit, ce, image(3, 224, 1000), ADAMW | dict(wd=0.05)),
    "mlp_mixer": (mixer_p, mixer, ce, image(3, 224, 1000), dict(lr=0.01, momentum=0.9)),
}


def in_dtype(apply, dtype):
    """With parameters and inputs rounded to `dtype`, and the result in f32."""
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
            first, second = opt["betas"]
            m = tree(lambda a, b: first * a + (1 - first) * b, slots[0], g)
            v = tree(lambda a, b: second * a + (1 - second) * b * b, slots[1], g)
            t = slots[2] + 1
            c1, c2 = 1 - first**t, 1 - second**t
            params = tree(lambda p, a, b: p * (1 - opt["wd"] * opt["lr"]) - opt["lr"] * (a / c1) / (jnp.sqrt(b / c2) + 1e-8), params, m, v)
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
