"""Networks of models/ with LSTM layers, as pure JAX functions, without dropout. Each batch starts from zeros."""

import jax
import jax.numpy as jnp
from jax import lax

from layers_jax import lin, lin_p, w, zeros


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

        start = (jnp.zeros((x.shape[0], layer["wh"].shape[0]), h.dtype),) * 2
        h = lax.scan(cell, start, zx.swapaxes(0, 1))[1].swapaxes(0, 1)
    return lin(p["f"], h)


def lstm_p(width):
    layer = lambda: {"wi": w(width, 4 * width), "wh": w(width, 4 * width), "b": zeros(4 * width)}
    return lambda: {"e": w(10000, width), "l": [layer() for _ in range(2)], "f": lin_p(width, 10000)}
