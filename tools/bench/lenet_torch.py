"""One measurement of LeNet's training step in PyTorch: lenet_torch.py VARIANT THREADS SECONDS

VARIANT is eager or compile, followed by +cl for channels_last. Prints one JSON object with the median and p90 in ms.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu_check/peers"))
from convolutions_torch import LeNet  # noqa: E402: of the folder named above

BATCH = 256


def main(variant, threads, seconds):
    torch.set_num_threads(threads)
    module, x, y = LeNet().train(), torch.rand(BATCH, 1, 28, 28), torch.randint(10, (BATCH,))
    if "+cl" in variant:
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, fused=True)
    loss_of = lambda x, y: F.cross_entropy(module(x), y)
    if "compile" in variant:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    times, start = [], time.perf_counter()
    while len(times) < 20 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    print(json.dumps({"median_ms": statistics.median(times), "p90_ms": times[len(times) * 9 // 10], "version": torch.__version__}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
