#!/usr/bin/env python3
"""Runs documents such as README.md: readme_test.py SOURCE_ROOT BUILD_ROOT DOCUMENT...

In a block ```console, a line that begins with `$ ` is a command, and the lines up to the next are what it prints: the same
but for numbers, where `...` stands for any lines. A block ```cpp is a part of the file that its first line names.
Commands run in a folder that looks like the repository after a build, one after another, with a calibration file of
their own."""

import os
import re
import shutil
import subprocess
import sys
import tempfile


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(block):
    """Pairs of a command and the lines that it should print."""
    pairs = []
    for line in block.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:].split("   #")[0], []))
        else:
            pairs[-1][1].append(line)
    return pairs


def without_numbers(line):
    line = re.sub(r"\d[\d,]*(\.\d+)?(e[-+]\d+)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def matches(expected, actual):
    """Whether the lines agree but for numbers; `...` matches any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(matches(expected[1:], actual[skipped:]) for skipped in range(len(actual) + 1))
    return bool(actual) and without_numbers(expected[0]) == without_numbers(actual[0]) and matches(expected[1:], actual[1:])


def run_block(block, folder, document):
    problems = []
    environment = os.environ | {"SLUICE_CALIBRATION": os.path.join(folder, "calibration.json")}
    for command, expected in commands(block):
        result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=240, check=False)
        actual = result.stdout.splitlines()
        if result.returncode != 0:
            problems.append(f"$ {command}\nexit code {result.returncode}:\n{result.stdout}")
        elif not matches(expected, actual):
            problems.append(f"$ {command}\n{document} says:\n" + "\n".join(expected) + "\nit prints:\n" + "\n".join(actual))
    return problems


def check_code(block, root):
    name, _, code = block.partition("\n")
    path = name.removeprefix("// ")
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return [] if code.strip() in source.read() else [f"this is not in {path}:\n{code}"]


def check_document(document, root, folder):
    with open(os.path.join(root, document), encoding="utf-8") as file:
        text = file.read()
    problems = [problem for block in blocks(text, "cpp") for problem in check_code(block, root)]
    return problems + [problem for block in blocks(text, "console") for problem in run_block(block, folder, document)]


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    documents = sys.argv[3:]
    folder = tempfile.mkdtemp()
    try:
        os.makedirs(os.path.join(folder, "build"))
        os.symlink(build, os.path.join(folder, "build", "release"))
        for part in ("models", "tools"):
            os.symlink(os.path.join(root, part), os.path.join(folder, part))
        problems = [problem for document in documents for problem in check_document(document, root, folder)]
    finally:
        shutil.rmtree(folder)
    print("\n\n".join(problems) if problems else f"{', '.join(documents)}: true")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
