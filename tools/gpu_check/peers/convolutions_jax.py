"""Convolutional networks of models/ as pure JAX functions: for each its parameters and its forward pass."""

import jax
import jax.numpy as jnp

from layers_jax import bn, bn_p, conv, conv_p, lin, lin_p, pool, up, up_p

relu = jax.nn.relu


def lenet(p, x):
    x = pool(relu(conv(p["c1"], x)), 2, 2, avg=True)
    x = pool(relu(conv(p["c2"], x)), 2, 2, avg=True)
    return lin(p["f2"], relu(lin(p["f1"], x.reshape(x.shape[0], -1))))


def lenet_p():
    return {"c1": conv_p(1, 20, 3), "c2": conv_p(20, 50, 5), "f1": lin_p(800, 128), "f2": lin_p(128, 10)}


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


def shortcut(b, x, stride):
    return bn(b["bs"], conv(b["cs"], x, stride)) if "cs" in b else x


def shortcut_p(cin, cout, stride):
    return {"cs": conv_p(cin, cout, 1, False), "bs": bn_p(cout)} if cin != cout or stride != 1 else {}


def basic(b, x, stride):
    y = relu(bn(b["b1"], conv(b["c1"], x, stride, 1)))
    return relu(bn(b["b2"], conv(b["c2"], y, 1, 1)) + shortcut(b, x, stride))


def basic_p(cin, width, stride):
    return {"c1": conv_p(cin, width, 3, False), "b1": bn_p(width), "c2": conv_p(width, width, 3, False), "b2": bn_p(width),
            **shortcut_p(cin, width, stride)}


def bottleneck(b, x, stride):
    y = relu(bn(b["b1"], conv(b["c1"], x)))
    y = relu(bn(b["b2"], conv(b["c2"], y, stride, 1)))
    return relu(bn(b["b3"], conv(b["c3"], y)) + shortcut(b, x, stride))


def bottleneck_p(cin, width, stride):
    return {"c1": conv_p(cin, width, 1, False), "b1": bn_p(width), "c2": conv_p(width, width, 3, False), "b2": bn_p(width),
            "c3": conv_p(width, 4 * width, 1, False), "b3": bn_p(4 * width), **shortcut_p(cin, 4 * width, stride)}


def resnet(block):
    """For 224 x 224 images of 1000 classes."""

    def apply(p, x):
        x = pool(relu(bn(p["bn"], conv(p["c"], x, 2, 3))), 3, 2, 1)
        for number, stage in enumerate(p["stages"]):
            for i, b in enumerate(stage):
                x = block(b, x, 2 if number and i == 0 else 1)
        return lin(p["f"], x.mean((1, 2)))

    return apply


def resnet_p(block, expansion, blocks):
    """With this number of blocks in each stage."""

    def build():
        stages, cin = [], 64
        for number, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512))):
            stages.append([])
            for i in range(count):
                stages[-1].append(block(cin, width, 2 if number and i == 0 else 1))
                cin = expansion * width
        return {"c": conv_p(3, 64, 7, False), "bn": bn_p(64), "stages": stages, "f": lin_p(cin, 1000)}

    return build


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
            blocks.append({"c1": conv_p(c, b, 3, False), "c2": conv_p(b, b, 3, False), "b1": bn_p(b), "b2": bn_p(b)})
    return {"c": conv_p(3, 16, 3, False), "bn": bn_p(16), "blocks": blocks, "f": lin_p(64, 10)}


# MobileNetV2: expansion factor, channels, number of blocks, and the stride of the first block.
INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenetv2(p, x):
    x = jax.nn.relu6(bn(p["bn"], conv(p["c"], x, 2, 1)))
    strides = [stride if i == 0 else 1 for _, _, count, stride in INVERTED for i in range(count)]
    for b, stride in zip(p["blocks"], strides):
        y = jax.nn.relu6(bn(b["be"], conv(b["ce"], x))) if "ce" in b else x
        y = jax.nn.relu6(bn(b["bd"], conv(b["cd"], y, stride, 1, groups=y.shape[-1])))
        y = bn(b["bp"], conv(b["cp"], y))
        x = x + y if x.shape == y.shape else y
    x = jax.nn.relu6(bn(p["bh"], conv(p["ch"], x)))
    return lin(p["f"], x.mean((1, 2)))


def mobilenetv2_p():
    blocks, cin = [], 32
    for widen, cout, count, _ in INVERTED:
        for _ in range(count):
            mid = cin * widen
            first = {"ce": conv_p(cin, mid, 1, False), "be": bn_p(mid)} if widen > 1 else {}
            blocks.append({**first, "cd": conv_p(mid, mid, 3, False, groups=mid), "bd": bn_p(mid), "cp": conv_p(mid, cout, 1, False), "bp": bn_p(cout)})
            cin = cout
    return {"c": conv_p(3, 32, 3, False), "bn": bn_p(32), "blocks": blocks, "ch": conv_p(320, 1280, 1, False), "bh": bn_p(1280), "f": lin_p(1280, 1000)}


def double(p, x):
    return relu(bn(p["b2"], conv(p["c2"], relu(bn(p["b1"], conv(p["c1"], x, 1, 1))), 1, 1)))


def double_p(cin, cout):
    return {"c1": conv_p(cin, cout, 3, False), "b1": bn_p(cout), "c2": conv_p(cout, cout, 3, False), "b2": bn_p(cout)}


def unet(p, x):
    """Scores of all pixels' classes in sequence, as for words."""
    skipped = [double(p["in"], x)]
    for d in p["down"]:
        skipped.append(double(d, pool(skipped[-1], 2, 2)))
    x = skipped.pop()
    for u in p["up"]:
        x = double(u["conv"], jnp.concatenate((skipped.pop(), up(u["up"], x)), -1))
    return conv(p["out"], x)


def unet_p():
    return {"in": double_p(3, 64), "down": [double_p(c, 2 * c) for c in (64, 128, 256, 512)],
            "up": [{"up": up_p(c, c // 2, 2), "conv": double_p(c, c // 2)} for c in (1024, 512, 256, 128)], "out": conv_p(64, 2, 1)}
