"""A peer in JAX: peer_jax.py NET MODE BATCH VARIANT DEVICE

MODE is train or infer; BATCH rows, or rows and their length, as 4x1024. VARIANT is jit, with +tf32 for tensor cores on f32 or
+bf16 for all of the network in bf16, from weights in f32. A step begins with the batch in the host's memory."""

import os
import sys

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # leaves memory for the program that it alternates with

import jax  # noqa: E402

from layers_jax import TRAINING  # noqa: E402
from nets_jax import NETS, in_dtype, make_slots, make_step  # noqa: E402
from serve import serve  # noqa: E402


def main(name, mode, batch, variant, device):
    jax.config.update("jax_platforms", device)
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if "+tf32" in variant else "float32")
    build, apply, loss, batch_of, settings = NETS[name]
    if "+bf16" in variant:
        apply = in_dtype(apply, jax.numpy.bfloat16)
    parameters = jax.tree.map(jax.numpy.asarray, build())
    state, (x, y) = [parameters, make_slots(parameters, settings), None], batch_of(*map(int, batch.split("x")))
    TRAINING[0] = mode == "train"
    run, predict = jax.jit(make_step(apply, loss, settings), donate_argnums=(0, 1)), jax.jit(apply)

    def train():
        state[:] = run(*state[:2], x, y)

    def infer():
        state[2] = predict(state[0], x)

    serve(train if mode == "train" else infer, lambda: jax.block_until_ready(state), version=jax.__version__)


main(*sys.argv[1:6])
