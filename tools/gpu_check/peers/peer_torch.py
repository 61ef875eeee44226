"""A peer in PyTorch: peer_torch.py NET BATCH VARIANT DEVICE

VARIANT is eager or compile, followed by any of +cl (channels_last), +graphs (CUDA graphs) and +tf32 (tensor cores on f32).
A step begins with the batch in pinned memory of the host, and ends with the device idle."""

import sys

import torch
import torch.nn.functional as F

from nets_torch import NETS
from serve import serve


def main(name, batch, variant, device):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = "+tf32" in variant
    torch.backends.cudnn.benchmark = True
    build, image, classes, optimizer_of = NETS[name]
    module, x, y = build().train().to(device), torch.rand(batch, *image), torch.randint(classes, (batch,))
    if "+cl" in variant and len(image) == 3:
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if device != "cpu":
        x, y = x.pin_memory(), y.pin_memory()
    optimizer = optimizer_of(module.parameters())

    def loss_of(x, y):
        return F.cross_entropy(module(x), y)

    if "compile" in variant:
        loss_of = torch.compile(loss_of, mode="reduce-overhead" if "+graphs" in variant else None)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x.to(device, non_blocking=True), y.to(device, non_blocking=True)).backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()

    serve(step, version=torch.__version__)


main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
