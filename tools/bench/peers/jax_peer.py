"""A network of models/ in JAX on the CPU: jax_peer.py NET MODE BATCH jit THREADS. MODE is train or infer. XLA uses the
processors that the process may run on."""

import sys
from pathlib import Path

import jax

from steps import answer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu_check/peers"))
from layers_jax import TRAINING  # noqa: E402: of the folder named above
from nets_jax import NETS, make_slots, make_step  # noqa: E402: of the same folder


def main(name, mode, batch):
    jax.config.update("jax_platforms", "cpu")
    jax.devices()

    def prepare():
        build, apply, loss, batch_of, settings = NETS[name]
        parameters = jax.tree.map(jax.numpy.asarray, build())
        x, y = map(jax.numpy.asarray, batch_of(batch))
        TRAINING[0] = mode == "train"
        if mode == "infer":
            predict = jax.jit(apply)
            return lambda: jax.block_until_ready(predict(parameters, x))
        state, run = [parameters, make_slots(parameters, settings), None], jax.jit(make_step(apply, loss, settings), donate_argnums=(0, 1))

        def train():
            state[:] = run(*state[:2], x, y)
            jax.block_until_ready(state)

        return train

    answer(prepare, version=jax.__version__)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
