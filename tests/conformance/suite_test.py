"""The suite finds what is wrong: suite_test.py BUILD_ROOT. Each backend of build/tests/conformance has one fault."""

import json
import os
import subprocess
import sys
import tempfile
import shutil
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
FAULTY = os.path.join(BUILD, "tests", "conformance")
FAULTS = {
    "short_copies": ["copy.to_the_device_and_back", "queue.order"],
    "used_memory": ["memory.aligned_and_zero", "memory.zero_after_release"],
    "pretended_launches": ["error.unknown_function"],
    "no_reasons": ["error.absent_device", "error.unknown_setting", "memory.exhaustion"],
    "crashing_waits": ["queue.event_order"],
}


def conformance(backend, *flags, folder=FAULTY):
    command = [os.path.join(BUILD, "bin", "sluice"), "conformance", "--backend", backend, "--json", *flags]
    result = subprocess.run(command, text=True, capture_output=True, check=False, timeout=120,
                            env=dict(os.environ, SLUICE_BACKEND_PATH=folder))
    return result.returncode, result.stdout


class SuiteTest(unittest.TestCase):
    def test_every_fault_is_found(self):
        for fault, tests in FAULTS.items():
            with self.subTest(fault):
                code, report = conformance(fault)
                self.assertEqual(code, 1)
                found = {test["test"] for test in json.loads(report.splitlines()[0])["tests"] if test["result"] == "failed"}
                self.assertLessEqual(set(tests), found)

    def test_exclusions_need_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(FAULTY, "used_memory.so"), folder)
            exclusions = os.path.join(folder, "used_memory.exclusions")
            with open(exclusions, "w", encoding="utf-8") as out:
                out.write("# why\nmemory.*: it has one use\n")
            code, report = conformance("used_memory", "--only", "memory", folder=folder)
            self.assertEqual((code, json.loads(report)["excluded"]), (0, 6))
            with open(exclusions, "w", encoding="utf-8") as out:
                out.write("memory.*\n")
            code, report = conformance("used_memory", folder=folder)
            self.assertEqual(code, 3)
            self.assertIn("is not a test, a colon and a reason", report)

    def test_an_absent_backend_is_named(self):
        code, report = conformance("nobody")
        self.assertEqual(code, 4)
        self.assertIn("there is no backend 'nobody'", report)


if __name__ == "__main__":
    unittest.main(verbosity=2)
