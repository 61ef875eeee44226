"""The networks of models/ as pure JAX functions, NHWC and HWIO: NETS[name] gives the parameters, the function, the shape
of an image, the number of classes and the optimizer's settings. Batch normalisation uses the batch's statistics."""

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


def bn(p, x):
    m = x.mean((0, 1, 2))
    v = ((x - m) ** 2).mean((0, 1, 2))
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


def alexnet_s(p, x):
    x = pool(relu(conv(p["c1"], x, 4, 2)), 3, 2)
    x = pool(relu(conv(p["c2"], x, 1, 2)), 3, 2)
    x = relu(conv(p["c4"], relu(conv(p["c3"], x, 1, 1)), 1, 1))
    x = pool(relu(conv(p["c5"], x, 1, 1)), 3, 2)
    return lin(p["f8"], relu(lin(p["f7"], relu(lin(p["f6"], x.reshape(x.shape[0], -1))))))


def alexnet_s_p():
    return {"c1": conv_p(3, 96, 11), "c2": conv_p(96, 256, 5), "c3": conv_p(256, 384, 3), "c4": conv_p(384, 384, 3), "c5": conv_p(384, 256, 3), "f6": lin_p(9216, 4096), "f7": lin_p(4096, 4096), "f8": lin_p(4096, 1000)}


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


NETS = {
    "lenet": (lenet_p, lenet, (28, 28, 1), 10, {"lr": 0.1}),
    "mlp": (mlp_p, mlp, (784,), 10, {"lr": 0.05, "momentum": 0.9, "decay": 1e-3}),
    "resnet56": (resnet56_p, resnet56, (32, 32, 3), 10, {"lr": 0.01, "momentum": 0.9, "decay": 1e-4}),
    "alexnet_s": (alexnet_s_p, alexnet_s, (224, 224, 3), 1000, {"lr": 0.01}),
    "resnet50": (resnet50_p, resnet50, (224, 224, 3), 1000, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "decay": 1e-4}),
}


def make_step(apply, settings):
    """(parameters, velocities, x, y) -> the same after a step, and the loss."""
    momentum = settings.get("momentum", 0.0)

    def loss_of(p, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(apply(p, x)), y[:, None], -1).mean()

    def step(p, velocities, x, y):
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        g = jax.tree.map(lambda a, b: a + settings.get("decay", 0.0) * b, g, p)
        if momentum:
            velocities = jax.tree.map(lambda v, a: momentum * v + a, velocities, g)
            g = jax.tree.map(lambda v, a: a + momentum * v, velocities, g) if settings.get("nesterov") else velocities
        return jax.tree.map(lambda a, b: a - settings["lr"] * b, p, g), velocities, loss

    return step
