"""One network of models/ in PyTorch: peers_torch.py NET MODE BATCH VARIANT THREADS. MODE is train or infer; VARIANT
eager or compile, followed by +cl for channels_last.

Prints a line when its step is ready. Then, for each input line with a number of seconds, it prints the median of
steps that took at least that long. Prints nothing if the variant is compile and this PyTorch cannot compile."""

import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu_check/peers"))
from nets_torch import NETS  # noqa: E402: of the folder named above


def most_resident_mb():
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def say(**line):
    print(json.dumps(line), flush=True)


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
    base, compiles = most_resident_mb(), variant.startswith("compile")
    if compiles and not hasattr(torch, "compile"):
        return
    net = NETS[name]
    module, (x, y) = net.build(), net.batch(batch)
    if "+cl" in variant:
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    start = time.perf_counter()
    step = step_of_training(net, module, x, y, compiles) if mode == "train" else step_of_inference(module, x, compiles)
    step()
    first = time.perf_counter() - start
    for _ in range(3):
        step()
    say(ready=True, version=torch.__version__, first_s=first)
    for line in sys.stdin:
        times, start = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < float(line):
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        say(median_ms=statistics.median(times), resident_mb=most_resident_mb() - base)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
