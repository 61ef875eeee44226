"""The page of a scaling curve in a real browser: page_test.py BUILD. Skipped if no browser is installed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "place_page"))
import browser  # noqa: E402: of the folder named above

BUILD = os.path.abspath(sys.argv.pop(1))
CLUSTERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "compiler", "scale", "clusters")
PROGRAM = browser.find()
if PROGRAM is None:
    print("skipped: there is no browser (chromium); tools/scripts/install-packages test installs one")
    sys.exit(77)


class ScalePageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.browser = browser.Browser(PROGRAM)
        cls.run_program("models/lenet", "--batch", "64", "-o", "lenet.mlir")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.scratch.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.misdeeds(), [])

    @classmethod
    def run_program(cls, name, *arguments):
        command = [os.path.join(BUILD, "bin", name), *arguments]
        return subprocess.run(command, cwd=cls.scratch.name, capture_output=True, text=True, timeout=60, check=True).stdout

    def open(self, name, cluster, *arguments):
        """The page's report."""
        report = self.run_program("sluice", "scale", "lenet.mlir", "--cluster", cluster, "--html", name, "--json", *arguments)
        self.browser.open(os.path.join(self.scratch.name, name))
        return json.loads(report)

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def count(self, selector):
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def test_each_point_is_drawn_and_listed(self):
        report = self.open("scale.html", os.path.join(CLUSTERS, "h100x8x128.json"))
        points = len(report["points"])
        self.assertEqual(points, 11)
        self.assertEqual(self.count("#efficiency .dot"), points)
        self.assertEqual(self.count("#step rect.compute"), points)
        self.assertEqual(self.count("#step rect.exposed"), points - 1)
        self.assertEqual(self.count("#figures tr"), points + 1)
        last = self.evaluate("[...document.querySelectorAll('#figures tr:last-child td')].map(e => e.innerText)")
        self.assertEqual((last[0], last[-1]), ("1,024", report["points"][-1]["limit"]))
        tips = self.evaluate("[...document.querySelectorAll('#efficiency .dot title')].map(e => e.textContent)")
        self.assertRegex(tips[0], "^1 replicas: 100 %$")

    def test_bars_are_shares_of_the_step(self):
        report = self.open("strong.html", os.path.join(CLUSTERS, "h100x8x128.json"), "--strong", "--replicas", "1,8,1024")
        self.assertEqual(self.heights("compute"), self.expected(report, lambda point: point["efficiency"]))
        self.assertEqual(self.heights("exposed"),
                         self.expected(report, lambda point: point["exposed_ms"] / point["predicted_ms"])[1:])
        tops = self.evaluate("[...document.querySelectorAll('#step rect')].map(e => +e.getAttribute('y'))")
        self.assertAlmostEqual(min(tops), 12, places=3)  # the parts add up to the whole step

    def heights(self, part):
        found = self.evaluate(f"[...document.querySelectorAll('#step rect.{part}')].map(e => +e.getAttribute('height'))")
        return [round(height, 3) for height in found]

    @staticmethod
    def expected(report, share):
        return [round(218 * share(point), 3) for point in report["points"]]

    def test_hostile_names_stay_text(self):
        with open(os.path.join(CLUSTERS, "h100x8x128.json"), encoding="utf-8") as file:
            cluster = json.load(file)
        cluster["name"] = "</script><script>window.stolen = 1</script><img src=x onerror=alert(1)>{{script}}"
        path = os.path.join(self.scratch.name, "hostile.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(cluster, file)
        self.open("hostile.html", path)
        self.assertEqual(self.evaluate("typeof window.stolen"), "undefined")
        self.assertEqual(self.count("img"), 0)
        self.assertIn(cluster["name"], self.evaluate("document.getElementById('title').textContent"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
