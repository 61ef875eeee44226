#!/usr/bin/env python3
"""Tests the summary of tools/scripts/outcomes for a run of ctest: outcomes_test.py SOURCE_ROOT"""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.abspath(sys.argv.pop()), "tools", "scripts", "outcomes")
PASSED = '<testcase name="Runs" status="run"><system-out>[       OK ] Runs</system-out></testcase>'


def skipped_by_gtest(*names):
    """A suite that skips these cases and runs another."""
    cases = "".join(f"""
[ RUN      ] {name}
/here/long_test.cpp:53: Skipped
only LeNet runs

[  SKIPPED ] {name} (0 ms)""" for name in names)
    listed = "".join(f"\n[  SKIPPED ] {name}" for name in names)
    return f"""<testcase name="A" status="run"><system-out>
[ RUN      ] A.runs
[       OK ] A.runs (5 ms){cases}
[  PASSED  ] 1 test.
[  SKIPPED ] {len(names)} tests, listed below:{listed}</system-out></testcase>"""


SKIPPED_BY_CODE = """<testcase name="page" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>
no browser here
</system-out></testcase>"""
SKIPS_A_CASE = """<testcase name="cli.usage" status="run"><system-out>
test_flags (__main__.Usage.test_flags) ... ok
test_disk (__main__.Usage.test_disk)
A full disk. ... skipped "no mount (it isn't allowed)"

Ran 2 tests in 0.1s

OK (skipped=1)</system-out></testcase>"""

SKIPS_SUBTESTS = """<testcase name="cli.executables" status="run"><system-out>
test_pipes (__main__.Executables.test_pipes) ... ok
test_quiet (__main__.Executables.test_quiet) ...
  test_quiet (__main__.Executables.test_quiet) [['-q'] {}] ... skipped 'no terminal'
  test_quiet (__main__.Executables.test_quiet) (flag='--json')
Draws nothing. ... skipped 'no terminal'

Ran 2 tests in 0.1s

OK (skipped=2)</system-out></testcase>"""


class OutcomesTest(unittest.TestCase):
    def outcomes(self, *tests):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write("<testsuite>" + "".join(tests) + "</testsuite>")
            file.flush()
            return subprocess.run([SCRIPT, file.name], text=True, capture_output=True, check=True).stdout.splitlines()

    def test_nothing_is_skipped(self):
        self.assertEqual(self.outcomes(PASSED), ["nothing skipped, of 1 tests"])

    def test_reasons_are_counted(self):
        lines = self.outcomes(PASSED, skipped_by_gtest("A.x", "A.y"), SKIPPED_BY_CODE)
        self.assertEqual(lines, ["skipped 3, of 5 tests:", "     2  only LeNet runs  (A.x and 1 more)", "     1  no browser here  (page)"])

    def test_a_script_that_passes_may_skip_cases(self):
        lines = self.outcomes(SKIPS_A_CASE)
        self.assertEqual(lines, ["skipped 1, of 1 tests:", "     1  no mount (it isn't allowed)  (cli.usage.test_disk)"])

    def test_subtests_that_are_skipped_say_why(self):
        lines = self.outcomes(SKIPS_SUBTESTS)
        self.assertEqual(lines, ["skipped 2, of 1 tests:", "     2  no terminal  (cli.executables.test_quiet and 1 more)"])

    def test_a_case_without_a_reason_counts(self):
        lines = self.outcomes(SKIPS_A_CASE.replace("... skipped", "... s"))
        self.assertEqual(lines, ["skipped 1, of 1 tests:", "     1  no reason given  (cli.usage)"])

    def test_a_failure_is_told_last_with_the_end_of_its_output(self):
        printed = "\n".join(f"line {number}" for number in range(60))
        lines = self.outcomes(f'<testcase name="B.z" status="fail"><failure message=""/><system-out>{printed}</system-out></testcase>',
                              skipped_by_gtest("A.x"), PASSED)
        self.assertEqual(lines[:4], ["skipped 1, of 4 tests:", "     1  only LeNet runs  (A.x)", "failed 1, of 3 entries of ctest:", "  B.z"])
        self.assertEqual(lines[4:], [f"    | line {number}" for number in range(20, 60)])

    def test_each_failed_case_is_told(self):
        printed = """[ RUN      ] A.x
x is wrong
[  FAILED  ] A.x (1 ms)
[ RUN      ] A.y
y is right
[       OK ] A.y (1 ms)
[ RUN      ] A.z
z is wrong
[  FAILED  ] A.z (1 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.x
[  FAILED  ] A.z"""
        lines = self.outcomes(f'<testcase name="A" status="fail"><failure message=""/><system-out>{printed}</system-out></testcase>')
        self.assertEqual([line.removeprefix("    | ") for line in lines[3:]], printed.splitlines()[:3] + printed.splitlines()[6:9])

    def test_a_case_that_crashes_is_told(self):
        printed = "[ RUN      ] A.x\nx is wrong\n[  FAILED  ] A.x (1 ms)\n[ RUN      ] A.y\nfree(): invalid pointer"
        lines = self.outcomes(f'<testcase name="A" status="fail"><failure message=""/><system-out>{printed}</system-out></testcase>')
        self.assertEqual([line.removeprefix("    | ") for line in lines[3:]], printed.splitlines())

    def test_a_failure_that_prints_nothing_is_told(self):
        lines = self.outcomes('<testcase name="B.z" status="fail"><failure message=""/></testcase>')
        self.assertEqual(lines[1:], ["failed 1, of 1 entries of ctest:", "  B.z", "    | nothing was printed"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
