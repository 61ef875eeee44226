"""Exports a network of models/ from PyTorch: export_onnx.py NET BATCH FILE.onnx. Also writes an input and its result,
FILE.onnx.x.npy and FILE.onnx.y.npy."""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu_check/peers"))
from nets_torch import NETS  # noqa: E402: of the folder named above


def main(name, batch, path):
    torch.manual_seed(0)
    module, (x, _) = NETS[name].build().eval(), NETS[name].batch(batch)
    np.save(f"{path}.x.npy", x.numpy())
    np.save(f"{path}.y.npy", module(x).detach().numpy())
    torch.onnx.export(module, (x,), path, dynamo=True, verbose=False)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
