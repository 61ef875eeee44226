"""A network of models/ in PyTorch: torch_peer.py NET MODE BATCH VARIANT THREADS. MODE is train or infer. VARIANT is
eager or compile, followed by +cl for channels_last."""

import sys
from pathlib import Path

import torch

from steps import answer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu_check/peers"))
from nets_torch import NETS  # noqa: E402: of the folder named above


def step_of_training(net, module, x, y, compiles):
    module.train()
    parameters = list(module.parameters())
    optimizer = net.optimizer(parameters)

    def loss_of(x, y):
        return net.loss(module(x), y)

    if compiles:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        if net.clip:
            torch.nn.utils.clip_grad_norm_(parameters, net.clip)
        optimizer.step()

    return step


def step_of_inference(module, x, compiles):
    module.eval()
    if compiles:
        torch._inductor.config.freezing = True
        module = torch.compile(module)

    def step():
        with torch.no_grad() if compiles else torch.inference_mode():
            module(x)

    return step


def main(name, mode, batch, variant, threads):
    torch.set_num_threads(threads)
    compiles = variant.startswith("compile")
    if compiles and not hasattr(torch, "compile"):
        return

    def prepare():
        net = NETS[name]
        module, (x, y) = net.build(), net.batch(batch)
        if "+cl" in variant:
            module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
        return step_of_training(net, module, x, y, compiles) if mode == "train" else step_of_inference(module, x, compiles)

    answer(prepare, version=torch.__version__)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
