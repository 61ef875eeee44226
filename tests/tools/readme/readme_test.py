#!/usr/bin/env python3
"""Runs documents such as README.md: readme_test.py SOURCE_ROOT BUILD_ROOT DOCUMENT...

In a block ```console, a line that begins with `$ ` is a command. The lines up to the next command are its expected
output. Numbers may differ, and `...` matches any lines. The commands run one after another, in a folder that looks like
the repository after a build. They share a calibration file, and pkg-config finds the build tree as an installation.

Comments before a console block constrain its numbers, which `#` matches:
    <!-- within 1.1: "loss #", "# kB in" -->      at most this factor from the document's number; 1: equal
    <!-- agree 1.05: "# ms a call", "predicted # ms" -->     equal within this factor, in each line that has them
    <!-- within 1.5 unless sanitized: "# kB in" -->          not checked in a build with sanitizers
    <!-- unless sanitized -->                                the block does not run in a build with sanitizers
A pattern without a match in the block is an error.

A block ```cpp is checked in one of three ways:
    its first line is `// FOLDER/FILE.cpp`     the block is a part of this file of the repository
    its first line is `// FILE.cpp`            the block is a program, which is written for the commands of the document
    <!-- fragment --> before the block         the block compiles and runs inside a function, after the <!-- prologue -->
Any other block ```cpp is an error."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from sanitized import is_sanitized  # noqa: E402: of the folder named above

UNLESS_SANITIZED = "<!-- unless sanitized -->"
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"


def blocks(text, language):
    """Pairs of the comments just before a block and its content."""
    return re.findall(rf"((?:^<!-- [^\n]* -->\n)*)^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(block):
    """Pairs of a command and its expected output lines."""
    pairs = []
    for line in block.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:].split("   #")[0], []))
        else:
            pairs[-1][1].append(line)
    return pairs


class Mark:
    """Figures that stay within a factor: of the document's value, or of each other."""

    def __init__(self, kind, factor, patterns):
        self.kind, self.factor, self.patterns = kind, float(factor), patterns
        self.used = set()  # patterns that match a line of the document

    def figures(self, line):
        """By pattern, the figures in a line; a pattern of `#` alone matches the whole line."""
        found = {}
        for pattern in self.patterns:
            expression = re.escape(pattern).replace(r"\#", f"({NUMBER})")
            whole = re.fullmatch(expression, line.strip()) if pattern == "#" else None
            matches = [whole] if whole else re.finditer(expression, line) if pattern != "#" else []
            for match in matches:
                found.setdefault(pattern, []).append([float(figure.replace(",", "")) for figure in match.groups()])
        return found

    def near(self, a, b):
        return a == b or a > 0 and b > 0 and a <= self.factor * b and b <= self.factor * a

    def allows(self, expected, actual):
        said, printed = self.figures(expected), self.figures(actual)
        self.used |= said.keys()
        if self.kind == "agree":
            rows = [row for rows in printed.values() for row in rows]
            return printed.keys() == said.keys() and all(self.near(a, b) for row in rows[1:] for a, b in zip(rows[0], row))
        flat = [[figure for rows in side.values() for row in rows for figure in row] for side in (said, printed)]
        return len(flat[0]) == len(flat[1]) and all(self.near(a, b) for a, b in zip(*flat))


def marks_in(comments, sanitized):
    found = re.findall(r"^<!-- (within|agree) ([\d.]+)( unless sanitized)?: (.*) -->$", comments, re.M)
    if len(found) != len([line for line in comments.splitlines() if line != UNLESS_SANITIZED]):
        raise ValueError(f"no mark: {comments}")
    return [Mark(kind, factor, re.findall(r'"([^"]+)"', patterns)) for kind, factor, condition, patterns in found
            if not (condition and sanitized)]


def without_numbers(line):
    return re.sub(r"\s+", " ", re.sub(NUMBER, "#", line)).strip()


def matches(expected, actual, marks):
    """Whether the lines agree except for numbers that marks allow; `...` matches any number of lines."""
    if not expected:
        return not actual
    if expected[0].strip() == "...":
        return any(matches(expected[1:], actual[skipped:], marks) for skipped in range(len(actual) + 1))
    return (bool(actual) and without_numbers(expected[0]) == without_numbers(actual[0])
            and all([mark.allows(expected[0], actual[0]) for mark in marks])
            and matches(expected[1:], actual[1:], marks))


def run_block(comments, block, folder, document, sanitized=False):
    problems, marks = [], marks_in(comments, sanitized)
    if sanitized and UNLESS_SANITIZED in comments:
        return []
    environment = os.environ | {"SLUICE_CALIBRATION": os.path.join(folder, "calibration.json"), "PKG_CONFIG_PATH": folder}
    for command, expected in commands(block):
        result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=240, check=False)
        actual = result.stdout.splitlines()
        if result.returncode != 0:
            problems.append(f"$ {command}\nexit code {result.returncode}:\n{result.stdout}")
        elif not matches(expected, actual, marks):
            problems.append(f"$ {command}\n{document} says:\n" + "\n".join(expected) + "\nit prints:\n" + "\n".join(actual)
                            + "".join(f"\n{mark.kind} {mark.factor}: {mark.patterns}" for mark in marks))
    unused = [pattern for mark in marks for pattern in mark.patterns if pattern not in mark.used]
    return problems + [f"{document}: no line has the marked '{pattern}':\n{block}" for pattern in unused if not problems]


def check_part(path, code, root):
    with open(os.path.join(root, path), encoding="utf-8") as source:
        return [] if code.strip() in source.read() else [f"this is not in {path}:\n{code}"]


def check_code(text, document, root, folder):
    """Checks the parts of files, and writes the programs. Returns the problems, the prologue and the fragments."""
    problems, prologue, fragments = [], "", []
    for comments, block in blocks(text, "cpp"):
        kind, (first, _, code) = comments.strip(), block.partition("\n")
        name = re.fullmatch(r"// ([\w./]+)", first)
        if kind == "<!-- prologue -->":
            prologue = block
        elif kind == "<!-- fragment -->":
            fragments.append(block)
        elif kind or not name:
            problems.append(f"{document}: a block of C++ is neither a part of a file, nor a program, nor a fragment:\n{block}")
        elif "/" in name[1]:
            problems += check_part(name[1], code, root)
        else:
            with open(os.path.join(folder, name[1]), "w", encoding="utf-8") as out:
                out.write(block)
    return problems, prologue, fragments


def program_of(prologue, fragments):
    """A program that runs each fragment in a function, after the prologue."""
    functions = [f"static void fragment{number}() {{\n{prologue}{fragment}}}\n" for number, fragment in enumerate(fragments)]
    calls = "".join(f"  run({number}, fragment{number});\n" for number in range(len(fragments)))
    return f"""#include <sluice/array.h>
#include <sluice/compile.h>
#include <sluice/sluice.h>
#include <cstdio>
#include <iostream>
using namespace sluice;
{"".join(functions)}static int failed = 0;
static void run(int number, void (*fragment)()) {{
  try {{
    fragment();
  }} catch (const Error &error) {{
    failed = 1;
    std::printf("fragment %d: %s\\n", number, error.what());
  }}
}}
int main() {{
{calls}  return failed;
}}
"""


def check_fragments(prologue, fragments, folder, document):
    with open(os.path.join(folder, "fragments.cpp"), "w", encoding="utf-8") as out:
        out.write(program_of(prologue, fragments))
    command = "g++ -std=c++20 -w fragments.cpp -o fragments $(pkg-config --cflags --libs sluice) && ./fragments"
    return [f"{document}: {problem}" for problem in run_block("", f"$ {command}\n...\n", folder, document)]


def check_document(document, root, folder, sanitized):
    with open(os.path.join(root, document), encoding="utf-8") as file:
        text = file.read()
    problems, prologue, fragments = check_code(text, document, root, folder)
    if fragments and not sanitized:
        problems += check_fragments(prologue, fragments, folder, document)
    return problems + [problem for block in blocks(text, "console") for problem in run_block(*block, folder, document, sanitized)]


def write_package(root, build, folder):
    """A sluice.pc for the build tree, in place of that of an installation."""
    includes = " ".join(f"-I{os.path.join(root, part, 'include')}" for part in ("frontend", "backends", "runtime"))
    library = os.path.join(build, "lib")
    with open(os.path.join(folder, "sluice.pc"), "w", encoding="utf-8") as out:
        out.write(f"Name: sluice\nDescription: a build tree\nVersion: 0\nCflags: {includes}\nLibs: -L{library} -lsluice -Wl,-rpath,{library}\n")


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    documents = sys.argv[3:]
    folder = tempfile.mkdtemp()
    try:
        os.makedirs(os.path.join(folder, "build"))
        os.symlink(build, os.path.join(folder, "build", "release"))
        for part in ("models", "tools"):
            os.symlink(os.path.join(root, part), os.path.join(folder, part))
        write_package(root, build, folder)
        problems = [problem for document in documents for problem in check_document(document, root, folder, is_sanitized(build))]
    finally:
        shutil.rmtree(folder)
    print("\n\n".join(problems) if problems else f"{', '.join(documents)}: true")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
