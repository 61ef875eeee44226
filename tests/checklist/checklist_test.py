#!/usr/bin/env python3
"""Prints the statements of the checklist with their tests: checklist_test.py SOURCE_ROOT. Fails if one has no test.

The statements come from documents about GPUs (models/documents/README.md). A test of statement 7 has the name
checklist_07_WORDS: of a suite of GoogleTest, of a method of a Python test, or of a test of CMake."""

import os
import re
import sys

STATEMENTS = """cpu(), gpu() and gpu(1) print as written
all cpu(k) are one device
gpu(i) is one accelerator with separate memory
texts are parsed as devices
an absent GPU can be named, and its use is an error
gpu_count is 0 without a driver or a backend
try_gpu and try_all_gpus
the name, cores, clock, peak and memory of a device
a scope sets the device of new values and moves none
names of hosts in devices
an array of integers is on the default device
arrays are created on their device without a copy
memory counts of one device; freed memory is reused
exhausted memory is an error, and the process continues
printing costs one copy
ops preserve dtype and device
new_zeros and new_full inherit dtype and device
normal_ and fill_ in place
broadcast, reshape and slices as in NumPy
the random numbers of JAX, on every device
to copies if needed, copy_to always
cpu and cuda
copies between all devices preserve bits
copy_ alone accepts another device or dtype
copy_to an existing array allocates nothing
operands on two devices, or of two dtypes, are an error
a sum after a move is on the common device
counts of transfers
benchmark: bandwidth between and within devices
enqueue returns before completion
no device blocks another
a log on the device has one transfer
benchmark: many small ops or one big op
one submitted graph or calls with reads between
modules move all states
a network computes on its device
parameters and input on two devices are an error
lazy layers
functional form: init and apply
gradients are on the device of their parameter
Trainer
save on one device, load on another
programs run without a GPU
split a batch among devices
uneven splits
DataParallel
get_params, allreduce and train_batch
replicas
a group of processes with rank and size
benchmark: large and tiny products
parameters are read and written on the device
benchmark: norms that are read each time or at the end
benchmark: two products on two devices
a third backend needs no change of the frontend
all networks run on all backends
exactly n threads; more threads than cores
dead layers are reported; parameters are counted
options of other tools""".splitlines()

PATTERNS = {
    ".cpp": re.compile(r"^TEST(?:_[FP])?\(checklist_(\d\d)_(\w+), (\w+)\)", re.M),
    ".py": re.compile(r"^    def test_checklist_(\d\d)_(\w+)()\(", re.M),
    "CMakeLists.txt": re.compile(r"add_test\(NAME checklist_(\d\d)_(\w+)()"),
}


def tests_of(root):
    """The names of the tests of each statement."""
    tests = {number: set() for number in range(1, len(STATEMENTS) + 1)}
    for folder, _, files in os.walk(os.path.join(root, "tests")):
        for file in files:
            for ending, pattern in PATTERNS.items():
                if not file.endswith(ending):
                    continue
                with open(os.path.join(folder, file), encoding="utf-8") as source:
                    for number, words, case in pattern.findall(source.read()):
                        tests.setdefault(int(number), set()).add(f"{words}.{case}" if case else words)
    return tests


def main():
    tests = tests_of(sys.argv[1])
    for number, names in sorted(tests.items()):
        statement = STATEMENTS[number - 1] if number <= len(STATEMENTS) else "no such statement"
        print(f"{number:2}  {statement}")
        for name in sorted(names) or ["(no test)"]:
            print(f"      {name}")
    missing = [number for number, names in tests.items() if not names]
    unknown = [number for number in tests if not 1 <= number <= len(STATEMENTS)]
    print(f"{len(STATEMENTS)} statements, {sum(map(len, tests.values()))} tests; without a test: {missing or 'none'}")
    if unknown:
        print(f"tests of statements that do not exist: {unknown}")
    return bool(missing or unknown)


if __name__ == "__main__":
    sys.exit(main())
