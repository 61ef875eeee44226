#!/usr/bin/env python3
"""The programs of models/documents print the texts of tests/models/documents: documents_test.py BUILD_ROOT [--update]

Times are not compared. --update writes the texts anew."""

import difflib
import os
import re
import subprocess
import sys
import unittest

UPDATE = "--update" in sys.argv
BUILD = os.path.abspath(next(argument for argument in sys.argv[1:] if argument != "--update"))
TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "documents")
PROGRAMS = ["djl", "jax", "mxnet", "notebook", "pytorch", "slides", "tensorflow"]
DEVICES = {"cpu": "cpu", "sim": "cpu,sim:0,sim:1"}


def printed(program, devices):
    result = subprocess.run([os.path.join(BUILD, "documents", program), "--devices", devices],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode or result.stderr:
        raise AssertionError(f"{program} on {devices} ended with {result.returncode}: {result.stderr}")
    return re.sub(r"[\d.]+ sec/epoch", "T sec/epoch", result.stdout)


class DocumentsTest(unittest.TestCase):
    def test_programs_print_what_the_documents_print(self):
        for program in PROGRAMS:
            for name, devices in DEVICES.items():
                path = os.path.join(TEXTS, f"{program}.{name}.txt")
                with self.subTest(program=program, devices=devices):
                    text = printed(program, devices)
                    if UPDATE:
                        with open(path, "w", encoding="utf-8") as file:
                            file.write(text)
                    with open(path, encoding="utf-8") as file:
                        expected = file.read()
                    difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), path, program, lineterm="")
                    self.assertEqual(text, expected, "\n" + "\n".join(difference))

    def test_every_program_has_its_texts(self):
        self.assertEqual(sorted(os.listdir(TEXTS)), sorted(f"{program}.{name}.txt" for program in PROGRAMS for name in DEVICES))

    def test_wrong_devices_are_refused(self):
        result = subprocess.run([os.path.join(BUILD, "documents", "pytorch"), "--devices", "cpu,sim:x"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("set_devices: ", result.stderr)


unittest.main(argv=sys.argv[:1])
