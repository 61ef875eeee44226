"""Compares two files of numbers, .npy or text: compare.py A B ALLOWED. Exits with 1 if they differ by more.

The difference is relative to the largest number of A.
"""

import sys

import numpy


def read(path):
    return numpy.load(path) if path.endswith(".npy") else numpy.loadtxt(path)


def main(first, second, allowed):
    a, b = read(first).astype(numpy.float64), read(second).astype(numpy.float64)
    if a.shape != b.shape:
        sys.exit(f"the shapes differ: {a.shape} and {b.shape}")
    difference = numpy.abs(a - b).max() / numpy.abs(a).max()
    if not difference <= float(allowed):
        sys.exit(f"the numbers differ by {difference:.1e} of the largest")
    print(f"{a.size} numbers agree to {allowed} of the largest")


if __name__ == "__main__":
    main(*sys.argv[1:])
