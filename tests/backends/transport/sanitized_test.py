"""Transports and exchanges under a sanitizer of g++: sanitized_test.py GXX thread|address SOURCE_ROOT INCLUDE...
Their own tests run without a report, and a fault that is planted is reported."""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
# Each folder's files are compiled as one, for most of the time goes by in headers.
CODE = (("backends/transport/tcp/[!P]*.cpp", "backends/transport/tcp/Peer.cpp"), ("backends/exchange/*.cpp",), ("backends/cpu/runtime/*.cpp",))
TESTS = ("transport/store_test.cpp", "transport/mesh_test.cpp", "transport/rendezvous_test.cpp", "cpu/exchanges_test.cpp")
FAULT = "transport/sanitized_fault.cpp"
REPORTS = {"thread": r"ThreadSanitizer: data race", "address": r"AddressSanitizer: heap-buffer-overflow"}
LIBRARIES = ("-lgmock", "-lgtest", "-lgtest_main", "-ltbb", "-ldl")


def has_runtime(compiler, sanitizer):
    name = {"thread": "libtsan.so", "address": "libasan.so"}[sanitizer]
    return os.path.exists(compiler) and os.path.isabs(
        subprocess.run([compiler, "-print-file-name=" + name], capture_output=True, text=True, check=True).stdout.strip())


def main():
    compiler, sanitizer, root, *includes = sys.argv[1:]
    if not has_runtime(compiler, sanitizer):
        print(f"skipped: g++ has no runtime of the {sanitizer} sanitizer here")
        return SKIPPED
    flags = ["-std=c++20", "-O1", "-g1", "-w", f"-fsanitize={sanitizer}", "-pthread", f"-I{root}", *(f"-I{folder}" for folder in includes)]
    tests = [os.path.join(root, "tests", "backends", name) for name in TESTS]
    fault = os.path.join(root, "tests", "backends", FAULT)

    with tempfile.TemporaryDirectory() as folder:
        def object_of(source):
            return os.path.join(folder, os.path.relpath(source, root).replace(os.sep, "_") + ".o")

        def together(number, patterns):
            path = os.path.join(folder, f"code{number}.cpp")
            files = [file for pattern in patterns for file in sorted(glob.glob(os.path.join(root, pattern)))]
            with open(path, "w", encoding="utf-8") as text:
                text.writelines(f'#include "{file}"\n' for file in files)
            return path

        def run(*command):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            return done.returncode, done.stdout + done.stderr

        def build(*command):
            code, output = run(compiler, *flags, *command)
            if code != 0:
                raise RuntimeError(output[-4000:])

        sources = [together(number, patterns) for number, patterns in enumerate(CODE)]
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(lambda source: build("-c", source, "-o", object_of(source)), [*tests, fault, *sources]))
        programs = {name: os.path.join(folder, name) for name in ("tests", "fault")}
        objects = [object_of(source) for source in sources]
        build(*map(object_of, tests), *objects, *LIBRARIES, "-o", programs["tests"])
        build(object_of(fault), *objects, *LIBRARIES, "-o", programs["fault"])

        # Without random addresses: the thread sanitizer's shadow has its fixed places.
        failures = []
        code, output = run("setarch", "-R", programs["tests"])
        if code != 0 or not re.search(r"\[  PASSED  \] [1-9]\d* tests", output):
            failures.append(f"the tests, with code {code}:\n{output[-8000:]}")
        code, output = run("setarch", "-R", programs["fault"], sanitizer)
        if code == 0 or not re.search(REPORTS[sanitizer], output):
            failures.append(f"the planted fault gives code {code} and no '{REPORTS[sanitizer]}':\n{output[-4000:]}")
    for failure in failures:
        print("FAILED:", failure)
    return 1 if failures else 0


sys.exit(main())
