"""Networks of models/ in Keras, NHWC. NETS[name] = (body(x), shape of a row, batch(rows), settings of SGD)."""

import numpy as np
import tensorflow as tf
from keras import layers

rng = np.random.default_rng(0)
relu = layers.ReLU()


def conv(channels, kernel, stride=1, pad=0, bias=True, activation=None):
    def run(x):
        if pad:
            x = layers.ZeroPadding2D(pad)(x)
        return layers.Conv2D(channels, kernel, stride, use_bias=bias, activation=activation)(x)

    return run


def bn(x):
    return layers.BatchNormalization(epsilon=1e-5, momentum=0.9)(x)


def lenet(x):
    x = layers.AveragePooling2D(2)(conv(20, 3, activation="relu")(x))
    x = layers.AveragePooling2D(2)(conv(50, 5, activation="relu")(x))
    return layers.Dense(10)(layers.Dense(128, "relu")(layers.Flatten()(x)))


def fcn(*widths):
    def run(x):
        for width in widths[:-1]:
            x = layers.Dense(width, "sigmoid")(x)
        return layers.Dense(widths[-1])(x)

    return run


def alexnet_s(x):
    x = layers.MaxPooling2D(3, 2)(conv(96, 11, 4, 2, activation="relu")(x))
    x = layers.MaxPooling2D(3, 2)(conv(256, 5, 1, 2, activation="relu")(x))
    x = conv(384, 3, 1, 1, activation="relu")(conv(384, 3, 1, 1, activation="relu")(x))
    x = layers.MaxPooling2D(3, 2)(conv(256, 3, 1, 1, activation="relu")(x))
    return layers.Dense(1000)(layers.Dense(4096, "relu")(layers.Dense(4096, "relu")(layers.Flatten()(x))))


def alexnet_r(x):
    x = relu(layers.MaxPooling2D(3, 2)(conv(32, 5, 1, 2)(x)))
    x = layers.MaxPooling2D(3, 2)(conv(32, 5, 1, 2, activation="relu")(x))
    x = layers.AveragePooling2D(3, 2)(conv(64, 5, 1, 2, activation="relu")(x))
    return layers.Dense(10)(layers.Flatten()(x))


def resnet50(x):
    x = layers.ZeroPadding2D(1)(relu(bn(conv(64, 7, 2, 3, False)(x))))
    x = layers.MaxPooling2D(3, 2)(x)
    for stage, (count, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512))):
        for number in range(count):
            stride = 2 if stage and number == 0 else 1
            y = relu(bn(conv(width, 1, bias=False)(x)))
            y = relu(bn(conv(width, 3, stride, 1, False)(y)))
            y = bn(conv(4 * width, 1, bias=False)(y))
            x = relu(layers.add([y, bn(conv(4 * width, 1, stride, bias=False)(x)) if number == 0 else x]))
    return layers.Dense(1000)(layers.GlobalAveragePooling2D()(x))


def resnet56(x):
    x = relu(bn(conv(16, 3, 1, 1, False)(x)))
    for stage, width in enumerate((16, 32, 64)):
        for number in range(9):
            stride = 2 if stage and number == 0 else 1
            y = bn(conv(width, 3, 1, 1, False)(relu(bn(conv(width, 3, stride, 1, False)(x)))))
            if stride == 2:  # option A: subsample, then zero channels on both sides
                x = layers.Lambda(lambda v, extra=width // 4: tf.pad(v[:, ::2, ::2], [[0, 0], [0, 0], [0, 0], [extra, extra]]))(x)
            x = relu(layers.add([y, x]))
    return layers.Dense(10)(layers.GlobalAveragePooling2D()(x))


def lstm(x):
    x = layers.Embedding(10000, 256)(x)
    for _ in range(2):
        x = layers.LSTM(256, return_sequences=True, unit_forget_bias=False)(x)
    return layers.Dense(10000)(x)


def rows(shape, classes):
    return shape, lambda count: (rng.random((count, *shape), np.float32), rng.integers(0, classes, count))


def words(length, classes):
    """Each word's target is the next word."""
    return (length,), lambda count: tuple(rng.integers(0, classes, (count, length)) for _ in range(2))


NETS = {
    "lenet": (lenet, *rows((28, 28, 1), 10), dict(learning_rate=0.1)),
    "fcn_s": (fcn(2048, 2048, 2048, 26752), *rows((26752,), 26752), dict(learning_rate=0.01)),
    "alexnet_s": (alexnet_s, *rows((224, 224, 3), 1000), dict(learning_rate=0.01)),
    "resnet50": (resnet50, *rows((224, 224, 3), 1000), dict(learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)),
    "fcn_r": (fcn(2048, 4096, 1024, 10), *rows((784,), 10), dict(learning_rate=0.05, momentum=0.9)),
    "alexnet_r": (alexnet_r, *rows((32, 32, 3), 10), dict(learning_rate=0.01, momentum=0.9)),
    "resnet56": (resnet56, *rows((32, 32, 3), 10), dict(learning_rate=0.01, momentum=0.9, weight_decay=1e-4)),
    "lstm": (lstm, *words(32, 10000), dict(learning_rate=0.1, global_clipnorm=5.0)),
}
