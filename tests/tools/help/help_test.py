#!/usr/bin/env python3
"""Checks --help of every program, command and script: help_test.py SOURCE_ROOT BUILD_ROOT PROGRAM...

PROGRAMs are the executables that the build makes. Scripts are the executable files of tools/ and the Python files that
parse arguments. Commands come from the help of their program, verbs from that of a model compiled here."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, *PROGRAMS = map(os.path.abspath, sys.argv[1:])
del sys.argv[1:]
COLUMNS = 100
MOST_IN_ONE_GROUP = 10  # options
HEADING = re.compile(r"^[A-Z][\w ,]*:$", re.I)
OPTION = re.compile(r"^ {1,6}(-[\w-]+[^ ]*(?: (?! )\S+| (?=\S))*)(?:  +(\S.*))?$")
EXAMPLES = re.compile(r"^examples?:$", re.I)


def help_of(command):
    return subprocess.run([*command, "--help"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, COLUMNS=str(COLUMNS + 2)), timeout=60)


def indent_of(line):
    return len(line) - len(line.lstrip())


def options_of(lines):
    """The heading, the names and the help of each option."""
    heading = None
    for line, following in zip(lines, [*lines[1:], ""]):
        if HEADING.match(line):
            heading = line
        elif heading and not EXAMPLES.match(heading) and (option := OPTION.match(line)):
            below = following.strip() if indent_of(following) > indent_of(line) + 2 else ""
            yield heading, option[1], option[2] or below


def problems_of(page):
    """What is wrong with a page of help."""
    lines = page.splitlines()
    for line in lines:
        if len(line) > COLUMNS:
            yield f"{len(line)} columns: {line}"
    options = list(options_of(lines))
    if not options:
        yield "there is no group of options"
    for _, names, text in options:
        if not text:
            yield f"{names} has no help"
    headings = {heading for heading, *_ in options}
    if len(options) > MOST_IN_ONE_GROUP and len(headings) < 2:
        yield f"{len(options)} options are in one group"


def commands_of(page):
    lines = page.splitlines()
    if "Subcommands:" not in lines:
        return []
    listed = []
    for line in lines[lines.index("Subcommands:") + 1 :]:
        if not line:
            break
        if indent_of(line) == 2:
            listed.append(line.split()[0])
    return listed


def scripts():
    for folder in ("tools", "tests"):
        for directory, _, names in sorted(os.walk(os.path.join(SOURCE, folder))):
            for name in sorted(names):
                path = os.path.join(directory, name)
                if folder == "tools" and os.access(path, os.X_OK):
                    yield [path]
                elif name.endswith(".py"):
                    with open(path, encoding="utf-8") as file:
                        if re.search(r"^ +\w+ = argparse\.ArgumentParser\(", file.read(), re.M):
                            yield [sys.executable, "-B", path]


def with_commands(program):
    yield program
    for command in commands_of(help_of(program).stdout):
        yield [*program, command]


def with_wrong_option(command):
    return subprocess.run([*command, "--no-such-option"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)


class HelpTest(unittest.TestCase):
    def check(self, command):
        with self.subTest(" ".join(os.path.relpath(part, SOURCE) if part.startswith("/") else part for part in command)):
            done = help_of(command)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(list(problems_of(done.stdout)), [])

    def test_programs(self):
        count = 0
        for program in PROGRAMS:
            for command in with_commands([program]):
                self.check(command)
                count += 1
        self.assertGreater(count, len(PROGRAMS) + 6)  # `sluice` has 7 commands

    def check_error(self, command):
        """One form of errors in all programs: the program, the argument, and where to read on."""
        with self.subTest(" ".join(map(os.path.basename, command))):
            done = with_wrong_option(command)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            name = re.escape(os.path.basename(command[0]))
            rest = "".join(" " + word for word in command[1:])
            self.assertRegex(done.stderr, rf"^{name}: error: unknown option '--no-such-option'; see `\S*{name}{rest} --help`\n$")

    def test_errors_in_arguments_have_one_form(self):
        for program in PROGRAMS:
            if os.path.basename(program) != "sluice-opt":  # LLVM parses its arguments
                for command in with_commands([program]):
                    self.check_error(command)

    def test_scripts(self):
        found = list(scripts())
        for command in found:
            self.check(command)
        self.assertGreater(len(found), 15)

    def test_verbs_of_a_compiled_model(self):
        with tempfile.TemporaryDirectory() as folder:
            model, program = os.path.join(folder, "mlp.mlir"), os.path.join(folder, "mlp")
            subprocess.run([f"{BUILD}/bin/models/mlp", "-o", model], check=True, stderr=subprocess.DEVNULL)
            subprocess.run([f"{BUILD}/bin/sluice", "compile", model, "-q", "-o", program], check=True)
            commands = list(with_commands([program]))
            for command in commands:
                self.check(command)
                self.check_error(command)
        self.assertEqual([command[-1] for command in commands[1:]], ["train", "eval", "predict", "generate", "bench", "info"])


class PlantedTest(unittest.TestCase):
    """The checks find faults."""

    GOOD = "A program.\n\nUsage: a [OPTIONS]\n\nOptions:\n  -h, --help      Print this help and exit\n  --long-option-of-a TYPE\n                  Do this\n"

    def test_a_good_page_passes(self):
        self.assertEqual(list(problems_of(self.GOOD)), [])
        self.assertEqual([names for _, names, _ in options_of(self.GOOD.splitlines())], ["-h, --help", "--long-option-of-a TYPE"])

    def test_a_line_of_101_columns_fails(self):
        for columns, found in ((100, []), (101, ["101 columns: " + "x" * 101])):
            self.assertEqual(list(problems_of(self.GOOD + "x" * columns + "\n")), found)

    def test_an_option_without_help_fails(self):
        for fault in ("  --json\n", "  --json FILE\n", "  --json\n  --more  Print more\n"):
            self.assertRegex(next(problems_of(self.GOOD + fault)), "^--json.* has no help$")

    def test_an_example_is_no_option(self):
        self.assertEqual(list(problems_of(self.GOOD + "\nExamples:\n  --json\n")), [])

    def test_many_options_in_one_group_fail(self):
        many = "".join(f"  --option{i}  Do {i}\n" for i in range(MOST_IN_ONE_GROUP))
        self.assertRegex(next(problems_of(self.GOOD + many)), "in one group")
        self.assertEqual(list(problems_of(self.GOOD + "\nMore:\n" + many)), [])

    def test_no_options_fail(self):
        self.assertEqual(list(problems_of("usage: a\n")), ["there is no group of options"])

    def test_commands_are_found(self):
        self.assertEqual(commands_of(self.GOOD + "\nSubcommands:\n  run      Run\n           it\n  stop     Stop\n\nExamples:\n  a run\n"), ["run", "stop"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
