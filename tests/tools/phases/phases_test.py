#!/usr/bin/env python3
"""Checks that dumps, and the tables of phases and passes, match passes/PHASES.md, and the table of options tools/sluice/COMMANDS.md:
phases_test.py SOURCE_ROOT BUILD_FOLDER FILECHECK.

A comment `<!-- dump: NAME PHASE -->` precedes each block; NAME is one of the models below, or a dump of `fused`
in tests/e2e/devices/trees. The lines of a block are consecutive in the dump of that phase; `...` matches any
lines, or the rest of a line."""

import os
import re
import subprocess
import sys
import tempfile

FLAGS = {"mixed": ["--precision", "bf16"], "scaled": ["--precision", "f16"], "replicas": ["--replicas", "4", "--devices", "sim:0-3"], "microbatches": ["--accumulate", "4"]}
PROGRAMS = {"gradients": "lenet_data_parallel"}  # all others are of lenet
MODELS = {
    "gradients": ["--batch", "256", "--devices", "sim:0-1"],
    "lenet": ["--batch", "256"],
    "microbatches": ["--batch", "250"],
    "mixed": ["--batch", "256"],
    "scaled": ["--batch", "256"],
    "replicas": ["--batch", "250"],
    "split": ["--batch", "256", "--devices", "cpu,sim:0", "--pin", "conv=gpu:0", "--copies", "insert"],
}
TABLES = re.compile(r"<!-- tables of sluice-opt --phases -->\n\n(.*?)\n<!-- end of the tables -->", re.S)
OPTIONS = re.compile(r"<!-- table of sluice-opt --options -->\n\n(.*?)\n<!-- end of the table -->", re.S)
OPERATORS = re.compile(r"<!-- operators of sluice-opt --onnx-operators -->\n\n(.*?)\n<!-- end of the operators -->", re.S)
BLOCK = re.compile(r"<!-- dump: (\w+) (\w+) -->\n```mlir\n(.*?)```", re.S)


def checks(block):
    """The block as FileCheck patterns."""
    lines, follows = [], False
    for line in block.splitlines():
        if line.strip() == "...":
            follows = False
            continue
        text = line.strip()
        rest = text.endswith(" ...")
        literal = "".join("{{\\" + c + "}}" if c in "[{" else c for c in (text[:-4] if rest else text))
        lines.append(f"CHECK{'-NEXT' if follows else ''}: {literal}" + ("" if rest else "{{$}}"))
        follows = True
    return "\n".join(lines) + "\n"


def dump(root, build, folder, name, phase):
    place = folder if name in MODELS else os.path.join(root, "tests/e2e/devices/trees")
    model, tool = os.path.join(place, f"{name}.mlir"), os.path.join(build, "bin", "sluice")
    if not os.path.exists(model):
        program = os.path.join(build, "bin", "models", PROGRAMS.get(name, "lenet"))
        subprocess.run([program, *MODELS[name], "-o", model], check=True, stderr=subprocess.DEVNULL)
    return subprocess.run([tool, "show", model, "--phase", phase, *FLAGS.get(name, [])], check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    root, build, filecheck = sys.argv[1:]
    with open(os.path.join(root, "passes", "PHASES.md"), encoding="utf-8") as document:
        text = document.read()
    blocks = BLOCK.findall(text)
    failed = len(blocks) < 10
    with open(os.path.join(root, "tools/sluice/COMMANDS.md"), encoding="utf-8") as document:
        commands = document.read()
    with open(os.path.join(root, "frontend/ONNX.md"), encoding="utf-8") as document:
        onnx = document.read()
    for name, flag, found in (("PHASES.md", "--phases", TABLES.findall(text)), ("COMMANDS.md", "--options", OPTIONS.findall(commands)),
                              ("ONNX.md", "--onnx-operators", OPERATORS.findall(onnx))):
        printed = subprocess.run([os.path.join(build, "bin", "sluice-opt"), flag], check=True, stdout=subprocess.PIPE, text=True).stdout
        if found != [printed]:
            print(f"{name} differs from the output of sluice-opt {flag}")
            failed = True
    with tempfile.TemporaryDirectory() as folder:
        for name, phase, block in blocks:
            expected = os.path.join(folder, "expected")
            with open(expected, "w", encoding="utf-8") as out:
                out.write(checks(block))
            text = dump(root, build, folder, name, phase)
            result = subprocess.run([filecheck, expected], input=text, text=True)
            if result.returncode != 0:
                print(f"PHASES.md does not show {phase} of {name} as it is")
                failed = True
    print(f"{len(blocks)} blocks")
    sys.exit(failed)


if __name__ == "__main__":
    main()
