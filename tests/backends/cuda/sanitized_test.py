"""The kernels' own text, in emulated threads, under a sanitizer of g++: sanitized_test.py GXX PROGRAMS thread|address|undefined.
Kernels run without a report, and a fault that is planted in one of them is reported as what it is.
Without SLUICE_TEST_FULL, only kernels with shared memory and barriers of each kind run."""

import os
import re
import subprocess
import sys

SKIPPED = 77

# Programs, and the tests of theirs that run kernels.
KERNELS = (
    ("cuda_attention_kernel_test", ["AttentionKernel.ReadsAndWritesItemsAsTheyLie",
                                    "AttentionKernel.AddsOneMaskOnTensorCores"]),
    ("cuda_grid_kernel_test", ["GridKernel.MovesSquaresThroughSharedMemory"]),
    ("cuda_product_kernel_test", ["ProductKernel.CopiesTilesAhead"]),
)
ALL_KERNELS = (
    ("cuda_attention_kernel_test", ["AttentionKernel.MultipliesHalvesOnTensorCores", "AttentionKernel.AddsMasks",
                                    "AttentionKernel.RoundsOperandsForTensorCores"]),
    ("cuda_grid_kernel_test", ["GridKernel.MatchesTheReference"]),
    ("cuda_product_kernel_test", ["ProductKernel.MatchesTheReference", "ProductKernel.TakesTheOpsBehindItOnAnyCores",
                                  "ProductKernel.TakesTheOpsBehindIt", "ProductKernel.MultipliesOnTensorCores",
                                  "ProductKernel.MultipliesHalvesOnTensorCores"]),
)
# The sanitizer that detects a fault, and its report.
FAULTS = {
    "missing_barrier": ("thread", r"ThreadSanitizer: data race"),
    "copies_not_awaited": ("thread", r"ThreadSanitizer: data race"),
    "stage_overwritten": ("thread", r"ThreadSanitizer: data race"),
    "row_too_many": ("address", r"AddressSanitizer: heap-buffer-overflow"),
    "small_shared_array": ("undefined", r"runtime error: index \d+ out of bounds for type 'float"),
    "misaligned_load": ("undefined", r"runtime error: .*misaligned address"),
    "divergent_barrier": ("undefined", r"cuda_emu: .*wait"),
}


def runtime(compiler, sanitizer):
    """The shared object of the sanitizer's runtime; None if this compiler has none."""
    name = {"thread": "libtsan.so", "address": "libasan.so", "undefined": "libubsan.so"}[sanitizer]
    path = subprocess.run([compiler, "-print-file-name=" + name], capture_output=True, text=True, check=True).stdout.strip()
    return os.path.realpath(path) if os.path.isabs(path) else None


def main():
    compiler, programs, sanitizer = sys.argv[1:]
    library = runtime(compiler, sanitizer) if os.path.exists(compiler) else None
    if not library:
        print(f"skipped: g++ has no runtime of the {sanitizer} sanitizer here")
        return SKIPPED
    environment = dict(os.environ, CUDA_EMU_SANITIZE=sanitizer, LD_PRELOAD=library,
                       TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1",
                       ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=0")

    def run(program, *arguments):
        # Without random addresses: the thread sanitizer's shadow has its fixed places.
        command = ["setarch", "-R", os.path.join(programs, program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr

    failures = []
    for program, tests in KERNELS + (ALL_KERNELS if os.environ.get("SLUICE_TEST_FULL") else ()):
        code, output = run(program, "--gtest_filter=" + ":".join(tests))
        if code != 0 or f"[  PASSED  ] {len(tests)} test" not in output:
            failures.append(f"{program}, with code {code}:\n{output[-4000:]}")
    code, output = run("cuda_faulty_kernel", "none")
    if code != 0 or "ran to its end" not in output:
        failures.append(f"a kernel without a fault, with code {code}:\n{output[-4000:]}")
    for fault, (sees, report) in FAULTS.items():
        if sees != sanitizer:
            continue
        code, output = run("cuda_faulty_kernel", fault)
        if code == 0 or not re.search(report, output):
            failures.append(f"{fault} gives code {code} and no '{report}':\n{output[-4000:]}")
        else:
            print(f"{fault}: {re.search(report + '.*', output)[0]}")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


sys.exit(main())
