"""One measurement in PyTorch: columns_torch.py OP SHAPE DIM THREADS SECONDS. Prints one JSON object with the median in ms."""

import json
import statistics
import sys
import time

import torch


def main(op, shape, dim, threads, seconds):
    torch.set_num_threads(threads)
    x, out = torch.rand(shape) + 0.5, torch.empty(shape)
    if op == "pow":
        exponent = torch.rand(shape) * 3
        run = lambda: torch.pow(x, exponent, out=out)
    elif op == "linear":
        weight = torch.rand(dim, shape[-1])
        run = lambda: torch.nn.functional.linear(x, weight)
    else:
        run = lambda: getattr(torch, op)(x, dim, out=out) if op == "softmax" else torch.log_softmax(x, dim, out=out)
    for _ in range(5):
        run()
    times, start = [], time.perf_counter()
    while len(times) < 20 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"median_ms": statistics.median(times), "version": torch.__version__}))


if __name__ == "__main__":
    with torch.no_grad():
        main(sys.argv[1], [int(size) for size in sys.argv[2].split("x")], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
