#!/usr/bin/env python3
"""Checks who includes whom: check_layers.py SOURCE_ROOT. Prints every include that crosses a layer, every op on values that
a pass names, every header that may be read twice, and every line of a .td file above 120 columns; fails if there is one."""

import os
import re
import sys

# Folders of runtime/ that only executables and tools use, from the bottom up: each may include those before it.
RUNTIME = [
    "io", "plugins", "launch", "device", "exec", "instance", "arrays", "data/tables", "data/images", "data/text", "data",
    "runner/machine", "runner/report", "runner/session", "runner/processes", "runner/verbs", "runner",
]

# What each #include belongs to: the first pattern that matches. A quoted include that exists beside its file belongs
# to that file's own layer.
OWNERS = [
    (r"(mlir|mlir-c|llvm|llvm-c|lld|clang)/", "llvm"),
    (r"(oneapi/tbb|tbb)[/.]", "tbb"),
    (r"zlib\.h$", "zlib"),
    (r"CLI/", "cli11"),
    (r"nlohmann/", "json"),
    (r"fmt/", "fmt"),
    (r"(gtest|gmock)/", "gtest"),
    (r"sluice/runtime/", "runtime api"),
    (r"sluice/backend/(blocks|dtypes|halves)\.h$", "dtypes"),
    (r"sluice/backend/", "backend abi"),
    (r"sluice/(compile_options\.(h|def)|dtype\.h|language\.h)$", "options"),
    (r"sluice/", "frontend api"),
    (r"runtime/plan/", "runtime plan"),
    (r"runtime/base/", "runtime base"),
    (r"runtime/io/(MappedFile|Npy|Safetensors|TensorSource)\.h$", "tensor files"),
    (r"backends/loops/", "loops"),
    (r"backends/exchange/", "exchange"),
    (r"backends/transport/", "transport"),
    (r"backends/(\w+)/(compiler|libraries|runtime)/", r"backend \1 \2"),
    (r"runtime/files/", "files"),
    *((f"runtime/{folder}/", f"runtime {folder}") for folder in RUNTIME),
    (r"runtime/help/", "help"),
    (r"(frontend|ir|passes|runtime|models|tests|tools)/", r"\1"),
    (r"(sys|linux|arpa|netinet|bits|asm)/|[\w.]+$", "system"),
]

LIBRARIES = {"system", "tbb", "zlib", "cli11", "json", "fmt"}
CONTRACTS = {"runtime api", "backend abi", "dtypes"}
RUNTIME_COMMON = {"files", "help", "runtime base", "runtime plan", "tensor files"} | CONTRACTS | LIBRARIES - {"fmt"}

# Folder -> what its files may include beside their own layer; the first that matches.
LAYERS = [
    (r"runtime/include/", "runtime api", {"system", "backend abi"}),
    (r"runtime/files/", "files", {"system"}),
    (r"runtime/help/", "help", {"system", "cli11", "runtime base"}),
    (r"runtime/base/", "runtime base", {"system", "json", "files"}),
    (r"runtime/plan/", "runtime plan", {"system", "json", "zlib", "runtime base", "runtime api", "dtypes"}),
    *((f"runtime/{folder}/", f"runtime {folder}", RUNTIME_COMMON | {f"runtime {below}" for below in RUNTIME[:at]})
      for at, folder in enumerate(RUNTIME)),
    (r"ir/", "ir", {"system", "llvm", "files", "dtypes"}),
    (r"passes/", "passes", {"system", "llvm", "ir", "files", "runtime plan", "options"} | CONTRACTS),
    (r"backends/include/", "backend abi", {"system", "dtypes"}),
    (r"backends/loops/", "loops", {"system", "llvm", "ir", "backend abi"}),
    (r"backends/exchange/", "exchange", {"system", "backend abi"}),
    (r"backends/transport/", "transport", {"system", "backend abi", "exchange"}),
    (r"backends/(\w+)/libraries/", r"backend \1 libraries", {"system"}),
    (r"backends/(\w+)/compiler/", r"backend \1 compiler", {"system", "llvm", "files", "ir", "loops", "fmt", "json", r"backend \1 libraries"} | CONTRACTS),
    (r"backends/(\w+)/runtime/", r"backend \1 runtime", {"system", "tbb", "exchange", r"backend \1 libraries"} | CONTRACTS),
    (r"frontend/include/", "frontend api", {"system", "dtypes", "options"}),
    (r"frontend/", "frontend", {"system", "llvm", "ir", "fmt", "json", "files", "tensor files", "runtime base", "frontend api", "options", "dtypes"}),
    (r"models/", "models", {"system", "frontend api", "options", "cli11", "help"}),
]
UNCHECKED = re.compile(r"(tools|tests)/")  # where everything meets

# What passes may name: the ops that programs are held together by, and interfaces. What they ask of ops on values, they ask
# through interfaces.
STRUCTURAL_OPS = set(
    "AllGather AllReduce Arena Broadcast Communicate Copy Device Entry Exchange Function Get Gradient Graph If Kernel Launch Loop Metric Minimize Model "
    "Module Next Output Parts Queue Receive ReduceScatter Relayout Return Saved Scan Set State Step Transfer Updated Variable Yield".split()
)
INTERFACES = set("Action ActionList Blockwise Collective Composite Contraction Differentiable Element Elementwise FormulaGradient Index Linear Mode Reference RowFlow SameElements Splat StepSum Update".split())
MOST_COLUMNS = 120  # of .clang-format
NAMED_OP = re.compile(r"\b([A-Z]\w*)Op\b|\"sluice\.(\w+)\"")
COMMENT = re.compile(r"//[^\n]*")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def layer_of(path):
    for pattern, layer, allowed in LAYERS:
        if match := re.match(pattern, path):
            return match.expand(layer), set(map(match.expand, allowed))
    return None, set()


def owner_of(include, quoted, path, root):
    if quoted and os.path.exists(os.path.join(root, os.path.dirname(path), include)):
        return layer_of(os.path.join(os.path.dirname(path), include))[0]
    for pattern, owner in OWNERS:
        if match := re.match(pattern, include):
            return match.expand(owner)
    return f"unknown ({include.split('/')[0]})"


def sources(root):
    for folder in sorted({pattern.split("/")[0] for pattern, *_ in LAYERS}):
        for directory, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".h", ".hpp", ".c", ".cpp", ".inc", ".td")):
                    yield os.path.relpath(os.path.join(directory, name), root)


def check(root):
    problems, count = [], 0
    for path in sources(root):
        if path.endswith(".td"):
            problems += long_lines(path, os.path.join(root, path))
        if UNCHECKED.match(path) or path.endswith(".td"):
            continue
        count += 1
        layer, allowed = layer_of(path)
        with open(os.path.join(root, path), encoding="utf-8") as source:
            text = source.read()
        if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
            problems.append(f"{path}:1: a header without #pragma once")
        if layer is None:
            problems.append(f"{path}:1: belongs to no layer; see LAYERS in tests/layers/check_layers.py")
            continue
        for match in INCLUDE.finditer(text):
            owner = owner_of(match[2], match[1] == '"', path, root)
            if owner != layer and owner not in allowed:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line}: {layer} may not include {match[2]} ({owner})")
        if layer == "passes":
            problems += ops_named(path, text)
    return problems, count


def long_lines(path, file):
    """Problems: lines of a .td file that are longer than those that clang-format leaves in C++."""
    with open(file, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if len(line.rstrip("\n")) > MOST_COLUMNS:
                yield f"{path}:{number}: longer than {MOST_COLUMNS} columns"


def ops_named(path, text):
    """Problems: ops on values that a pass names."""
    text = COMMENT.sub("", text)
    for match in NAMED_OP.finditer(text):
        name = match[1] or "".join(word.capitalize() for word in match[2].split("_"))
        if name not in STRUCTURAL_OPS | INTERFACES:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: passes may not name the op {match[0]}; ask an interface"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems, count = check(sys.argv[1])
    print("\n".join(problems) if problems else f"{count} files keep their layers")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
