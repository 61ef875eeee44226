"""One network of the benchmarks' peers in PyTorch and in JAX, with equal weights: peers_forward.py PEERS NET FILE,
with a Python that has both. Writes arrays to FILE: a batch as `x` and `y`, and each weight by PyTorch's name. It
also writes the outputs of both in inference, the loss of these, and, for networks without dropout, the outputs in
training."""

import os
import sys

PEERS, NET, FILE = sys.argv[1:4]
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, PEERS)
sys.dont_write_bytecode = True

import jax  # noqa: E402
import layers_jax  # noqa: E402: of the folder named above
import nets_jax  # noqa: E402
import nets_torch  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

ROWS, LENGTH = 2, 8
# The flattening of images: the weight of the following product, and the shape of the images, whose channels are last in
# JAX.
FLATTENED = {"lenet": ("fc1.weight", (50, 4, 4)), "alexnet_s": ("fc6.weight", (256, 6, 6)), "alexnet_r": ("fc.weight", (64, 3, 3))}


def build():
    """Makes norms differ from the identity."""
    torch.manual_seed(1)
    module = nets_torch.NETS[NET].build()
    for part in module.modules():
        if isinstance(part, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            torch.nn.init.uniform_(part.weight, 0.5, 1.5)
            torch.nn.init.uniform_(part.bias, -0.5, 0.5)
    return module


def learned(module):
    for name, value in module.named_parameters():
        if value.requires_grad:
            value = value.detach().numpy()
            if FLATTENED.get(NET, ("",))[0] == name:
                value = value.reshape(-1, *FLATTENED[NET][1]).transpose(0, 2, 3, 1).reshape(value.shape)
            yield value


def fill(tree, values):
    """The same tree with these leaves, in the tree's order. Outputs are the last dimension of products and
    convolutions."""
    if isinstance(tree, list):
        return [fill(branch, values) for branch in tree]
    if isinstance(tree, dict):
        return {name: place(name, leaf, next(values)) if isinstance(leaf, np.ndarray) else fill(leaf, values) for name, leaf in tree.items()}
    raise TypeError(type(tree))


def place(name, leaf, value):
    if value.ndim == 4:
        value = value.transpose(2, 3, 1, 0)
    elif value.ndim == 2 and name in ("w", "wi", "wh"):
        value = value.T
    assert value.shape == leaf.shape, (NET, name, value.shape, leaf.shape)
    return value


def has_dropout(module):
    return any(getattr(part, "dropout", 0) or isinstance(part, torch.nn.Dropout) for part in module.modules())


def channels_last(x):
    return np.moveaxis(x, 1, -1) if x.ndim == 4 else x


def main():
    net, module = nets_torch.NETS[NET], build()
    x, y = net.batch(ROWS, LENGTH)
    arrays = {"x": x.numpy(), "y": y.numpy()}
    for name, value in module.state_dict().items():
        if value.is_floating_point() and "bias_hh" not in name:
            arrays[f"weight {name}"] = value.detach().numpy().copy()
    parameters, apply, loss, _, _ = nets_jax.NETS[NET]
    values = learned(module)
    tree = fill(parameters(), values)
    assert next(values, None) is None, NET
    for mode in ("infer", "train"):
        if mode == "train" and has_dropout(module):
            continue
        module.train(mode == "train")
        layers_jax.TRAINING[0] = mode == "train"
        with torch.no_grad():
            theirs = module(x)
        arrays[f"torch {mode}"] = theirs.numpy()
        out = jax.jit(lambda *of: apply(*of))(tree, channels_last(x.numpy()))  # traced again: the mode differs
        arrays[f"jax {mode}"] = np.moveaxis(np.asarray(out), -1, 1) if theirs.ndim == 4 else np.asarray(out)
        if mode == "infer":
            arrays["torch loss"], arrays["jax loss"] = net.loss(theirs, y).numpy(), np.asarray(loss(out, y.numpy()))
    np.savez(FILE, **arrays)


main()
