"""A peer in PyTorch: peer_torch.py NET MODE BATCH VARIANT DEVICE

MODE is train or infer; BATCH rows, or rows and their length, as 4x1024. VARIANT is eager or compile, followed by any of +cl
(channels_last), +graphs (CUDA graphs), +tf32 (tensor cores on f32) and +bf16 (autocast). A step begins with the batch in pinned
memory of the host."""

import contextlib
import sys

import torch

from nets_torch import NETS
from serve import serve


def training(net, module, forward):
    module.train()
    optimizer = net.optimizer(module.parameters())
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        forward(x, y).backward()
        if net.clip:
            torch.nn.utils.clip_grad_norm_(parameters, net.clip)
        optimizer.step()

    return step


def inference(module, forward):
    module.eval()

    def step(x, _y):
        with torch.no_grad():
            forward(x)

    return step


def main(name, mode, batch, variant, device):
    options = variant.split("+")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = "tf32" in options
    torch.backends.cudnn.benchmark = True
    net = NETS[name]
    module, (x, y) = net.build().to(device), net.batch(*map(int, batch.split("x")))
    if "cl" in options and x.dim() == 4:
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if device != "cpu":
        x, y = x.pin_memory(), y.pin_memory()

    def forward(x, *y):
        with torch.autocast(device, torch.bfloat16) if "bf16" in options else contextlib.nullcontext():
            result = module(x)
            return net.loss(result.float(), *y) if y else result

    if options[0] == "compile":
        forward = torch.compile(forward, mode="reduce-overhead" if "graphs" in options else None)
    run = training(net, module, forward) if mode == "train" else inference(module, forward)

    def step():
        run(x.to(device, non_blocking=True), y.to(device, non_blocking=True))

    serve(step, torch.cuda.synchronize if device != "cpu" else lambda: None, version=torch.__version__)


main(*sys.argv[1:6])
