"""A network of models/ in TensorFlow with Keras: tensorflow_peer.py NET MODE BATCH VARIANT THREADS. MODE is train or
infer. VARIANT is graph or xla."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402: reads the environment
from keras import Model, layers, losses, optimizers  # noqa: E402

from nets_tensorflow import NETS  # noqa: E402
from steps import answer  # noqa: E402


def main(name, mode, batch, variant, threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if name not in NETS:
        return

    def prepare():
        body, shape, batch_of, settings = NETS[name]
        x, y = (tf.constant(array) for array in batch_of(batch))
        source = layers.Input(shape, dtype=x.dtype)
        model = Model(source, body(source))
        loss_of, optimizer = losses.SparseCategoricalCrossentropy(from_logits=True), optimizers.SGD(**settings)
        optimizer.build(model.trainable_variables)

        @tf.function(jit_compile=variant == "xla")
        def train(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss

        @tf.function(jit_compile=variant == "xla")
        def infer(x):
            return model(x, training=False)

        return (lambda: train(x, y).numpy()) if mode == "train" else (lambda: infer(x).numpy())

    answer(prepare, version=tf.__version__)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
