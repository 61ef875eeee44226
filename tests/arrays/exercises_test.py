"""The benchmark of exercises with small sizes: exercises_test.py BUILD_ROOT. Its times have no criterion here."""

import os
import subprocess
import sys
import unittest

PROGRAM = os.path.join(os.path.abspath(sys.argv.pop(1)), "bin", "arrays_exercises")


class ExercisesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        flags = ["--devices", "cpu,sim:0,sim:1", "--largest", "64", "--products", "60", "--megabytes", "4"]
        result = subprocess.run([PROGRAM, *flags], stdout=subprocess.PIPE, text=True, check=False)
        cls.code, cls.text = result.returncode, result.stdout

    def test_checklist_29_bandwidth_of_copies_and_within_a_device(self):
        for device in (0, 1):
            self.assertRegex(self.text, rf"gpu\({device}\): [\d.]+ GB/s from the host, [\d.]+ GB/s to it, [\d.]+ GB/s within")

    def test_checklist_50_size_from_which_a_device_is_faster(self):
        self.assertRegex(self.text, r"n +cpu\(\) +gpu\(0\) +gpu\(1\)")
        for size in (16, 32, 64):
            self.assertRegex(self.text, rf"\n +{size}( +[\d.]+){{3}}\n")
        self.assertRegex(self.text, r"gpu\(0\) is (faster from n = \d+ on|slower at all sizes)")

    def test_checklist_52_norms_are_read_each_time_or_at_the_end(self):
        self.assertEqual(self.code, 0, "the norms differ")
        for device in ("cpu()", "gpu(0)", "gpu(1)"):
            self.assertIn(device, self.text[self.text.index("read each time"):])

    def test_checklist_53_two_products_at_once(self):
        self.assertRegex(self.text, r"two products of n = 64: [\d.]+ ms on gpu\(0\), [\d.]+ ms on gpu\(0\) and gpu\(1\) at once: [\d.]+x")


if __name__ == "__main__":
    unittest.main()
