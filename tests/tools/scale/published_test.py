"""Compares published measurements with predictions: published_test.py SOURCE_ROOT PROGRAM. Each point is printed,
the mean error matches the lines and is at most the documented error, and the shared constants are those of the
fit."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
DATA = os.path.join(ROOT, "tools", "scale", "published.json")
CLUSTERS = os.path.join(ROOT, "tools", "compiler", "scale", "clusters")
MOST = "7"  # percent: the value in SCALE.md, rounded up
LINE = re.compile(r"^(.{34}) +(\d+) +(\d+) +(\d+) +(\d+) +([+-][\d.]+) %(.*)$", re.M)


def published(*flags, data=DATA):
    return subprocess.run([PROGRAM, data, CLUSTERS, *flags], capture_output=True, text=True, timeout=60, check=False)


class PublishedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = published("--fit", "--most", MOST)
        with open(DATA, encoding="utf-8") as file:
            cls.data = json.load(file)

    def test_the_error_is_no_worse_than_documented(self):
        self.assertEqual(self.result.returncode, 0, self.result.stdout + self.result.stderr)

    def test_every_point_has_its_line(self):
        expected = [(case["name"], point["replicas"], point["batch"]) for case in self.data["cases"] for point in case["points"]]
        lines = [(name.strip(), int(replicas), int(batch)) for name, replicas, batch, *_ in LINE.findall(self.result.stdout)]
        self.assertEqual(lines, expected)

    def test_the_mean_is_that_of_the_points_that_were_not_fitted(self):
        errors = [abs(100 * (float(predicted) / float(measured) - 1))
                  for _, _, _, measured, predicted, _, fitted in LINE.findall(self.result.stdout) if not fitted]
        count, mean = re.search(r"of (\d+) points that were not fitted: ([\d.]+) %", self.result.stdout).groups()
        self.assertEqual(int(count), len(errors))
        self.assertAlmostEqual(float(mean), sum(errors) / len(errors), delta=0.06)

    def test_what_is_fitted_is_marked_in_the_data(self):
        kinds = [fitted.strip() for *_, fitted in LINE.findall(self.result.stdout)]
        marks = ["fitted: device" if point.get("fitted") else "fitted: constants" if case.get("calibrates") else ""
                 for case in self.data["cases"] for point in case["points"]]
        self.assertEqual(kinds, marks)

    def test_the_constants_in_use_are_those_that_the_fit_finds(self):
        fitted, used = re.findall(r"^(?:fitted|in use): (straggler.*)$", self.result.stdout, re.M)
        self.assertEqual(fitted, used)

    def test_a_worse_error_fails(self):
        result = published("--most", "0.5")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"the mean absolute error is [\d.]+ %, more than 0.5 %")

    def test_wrong_data_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "wrong.json")
            with open(path, "w", encoding="utf-8") as file:
                self.data["cases"][0]["points"][1]["replicas"] = 0
                json.dump(self.data, file)
            result = published(data=path)
        self.assertEqual(result.returncode, 3)
        self.assertIn("wrong.json: 'cases[0].points[1].replicas' is 0, not a whole number", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
