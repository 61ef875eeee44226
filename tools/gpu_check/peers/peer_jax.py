"""A peer in JAX: peer_jax.py NET BATCH VARIANT DEVICE

VARIANT is jit, with +tf32 for tensor cores on f32. A step begins with the batch in the host's memory, and ends with the device idle."""

import os
import sys

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # or there is no memory for the program that it alternates with

import jax  # noqa: E402
import numpy as np  # noqa: E402

from nets_jax import NETS, make_step, rng  # noqa: E402
from serve import serve  # noqa: E402


def main(name, batch, variant, device):
    jax.config.update("jax_platforms", device)
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if "+tf32" in variant else "float32")
    build, apply, image, classes, settings = NETS[name]
    parameters = jax.tree.map(jax.numpy.asarray, build())
    state = [parameters, jax.tree.map(jax.numpy.zeros_like, parameters)]
    x, y = rng.random((batch, *image), dtype=np.float32), rng.integers(0, classes, batch)
    run = jax.jit(make_step(apply, settings), donate_argnums=(0, 1))

    def step():
        state[0], state[1], loss = run(*state, x, y)
        jax.block_until_ready((state, loss))

    serve(step, version=jax.__version__)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
