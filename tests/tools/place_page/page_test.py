"""The page of a placement in a real browser: page_test.py BUILD. Skipped if no browser is installed."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

import browser
import reports

RENDER = os.path.join(os.path.abspath(sys.argv.pop(1)), "tests", "render_page")
PROGRAM = browser.find()
if PROGRAM is None:
    print("skipped: there is no browser (chromium); tools/scripts/install-packages test installs one")
    sys.exit(77)

# The middle of a group's or copy's bar on the screen.
MIDDLE = """(() => {
  page.lanes.canvas.scrollIntoView({block: "center"});
  const canvas = page.lanes.canvas.getBoundingClientRect(), bar = page.lanes.boxOf(page.report.%s);
  return [canvas.left + bar.left + bar.width / 2, canvas.top + bar.top + bar.height / 2];
})()"""

# The middle of an element.
MIDDLE_OF = """(element => {
  element.scrollIntoView({block: "center"});
  const box = element.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
})(%s)"""


# Records the time of each frame from now on, and of its drawing.
NOTE_FRAMES = """page.frames = []; page.draws = [];
(function note(last) {
  requestAnimationFrame(now => {
    page.frames.push(now - last);
    page.draws.push(page.lanes.drawMs);
    note(now);
  });
})(performance.now())"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.browser = browser.Browser(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.scratch.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.misdeeds(), [])

    def write(self, name, text):
        path = os.path.join(self.scratch.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def open(self, report, measured=None):
        inputs = [self.write(f"{i}.json", json.dumps(data)) for i, data in enumerate((report, measured)) if data is not None]
        page = subprocess.run([RENDER, *inputs], capture_output=True, timeout=60, check=True, encoding="utf-8").stdout
        self.browser.open(self.write("page.html", page))

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText.replace(/\\s+/g, ' ').trim()")

    def texts(self, selector):
        return self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText.replace(/\\s+/g, ' ').trim())"
        )

    def click_bar(self, item):
        self.browser.click(*self.evaluate(MIDDLE % item))

    def click_element(self, element):
        self.browser.click(*self.evaluate(MIDDLE_OF % element))

    def search(self, text):
        self.evaluate("document.getElementById('search').focus()")
        self.browser.call("Input.insertText", text=text)
        self.browser.frame()

    def test_the_first_screen_says_what_the_report_says(self):
        self.open(reports.small())
        self.assertEqual(self.text("#title"), "small train_step · 64 rows · cpu + gpu(0) (sim:0) · 3 groups")
        self.assertEqual(self.text("#step .big"), "1.23 ms")
        self.assertEqual(self.text("#step .gap"), "Gap 0 %: none has less of the sum of all times, copies included")
        self.assertIn("2.59 times as fast as the best plain placement, as pinned", self.text("#step"))
        self.assertEqual(
            self.texts("#alternatives .bar-line"),
            ["chosen 1.23 ms", "as pinned 3.20 ms", "all cpu 9.10 ms", "all gpu(0) (sim:0) infeasible"],
        )
        cpu, accelerator = self.texts("#devices .device")
        self.assertEqual(
            cpu,
            "cpu costs measured 2 groups elementwise ×1, softmax ×1 300 µs, 24 % of the step would be 80.0 µs on gpu(0) (sim:0) "
            "without 1 that cannot run there 1× pinned at small.cpp:11:3 1× its result is read on the host 1.5 MB peak memory",
        )
        self.assertEqual(
            accelerator,
            "gpu(0) (sim:0) costs by roofline 1 group conv2d ×1 310 µs, 25 % of the step would be 2.90 ms on cpu "
            "1× 0.31 ms here, 2.9 ms on cpu 23.5 MB of 40.0 MB peak memory",
        )
        self.assertEqual(
            self.texts("#moves .bar-line"),
            [
                "cpu → gpu(0) (sim:0) 1.0 MB 1 copy, 100 µs, 100 µs of it not hidden link 12.0 GB/s, 5.00 µs, given",
                "gpu(0) (sim:0) → cpu 2.3 MB 1 copy, 90.0 µs, all hidden behind work",
            ],
        )

    def test_each_device_has_a_lane_and_its_copies_theirs(self):
        self.open(reports.small())
        self.assertEqual(
            self.evaluate("[...document.querySelectorAll('#lane-labels .lane')].map(e => e.dataset.queue)"),
            ["cpu", "sim:0", "sim:0.in", "sim:0.out"],
        )
        self.assertEqual(self.texts("#lane-labels .lane.copies"), ["→ gpu(0) (sim:0) 8.1 %", "gpu(0) (sim:0) → 7.3 %"])
        self.assertEqual(self.texts("#memory-labels .lane"), ["gpu(0) (sim:0) peak 23.5 MB state 3.5 MB cap 40.0 MB (59 %)"])

    def test_the_line_at_the_end_says_what_it_is(self):
        self.open(reports.small())
        self.assertEqual(self.evaluate("page.lanes.ends().map(end => end.text)"), ["predicted end 1.23 ms"])
        self.assertIn("predicted end", self.text("#legend"))
        self.assertNotIn("measured end", self.text("#legend"))

    def test_a_click_on_a_bar_shows_all_that_is_known(self):
        self.open(reports.small())
        self.click_bar("groups[1]")
        panel = self.text("#panel")
        for known in (
            "conv ",
            "conv2d on gpu(0) (sim:0)",
            "0.31 ms here, 2.9 ms on cpu",
            "300 µs to 610 µs",
            "small.cpp:12:3",
            "cpu 2.90 ms",
            "gpu(0) (sim:0) 310 µs",
            "sluice.conv2d",
            "Reads scale 200 µs",
            "Read by loss 100 µs",
        ):
            self.assertIn(known, panel)
        self.click_bar("groups[0]")
        self.assertIn("gpu(0) (sim:0) cannot run", self.text("#panel"))
        self.click_bar("copies[0]")
        for known in ("scaled", "copy, cpu → gpu(0) (sim:0)", "1.0 MB (1,048,576)", "10.5 GB/s", "no, the step waits for it"):
            self.assertIn(known, self.text("#panel"))
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
        self.assertIn("Where the time goes", self.text("#panel"))

    def test_copies_are_sorted_by_bytes_and_by_time(self):
        report = reports.report(200)
        self.open(report)
        rows = "#copies .row:first-child"
        self.assertEqual(
            self.evaluate("page.tables[0].shown.map(copy => copy.bytes)"),
            sorted((copy["bytes"] for copy in report["copies"]), reverse=True),
        )
        self.click_element("document.querySelectorAll('#copies .head button')[2]")
        least = min(report["copies"], key=lambda copy: copy["bytes"])
        self.assertIn(least["value"], self.text(rows))
        self.assertIn(f"{least['bytes']} B", self.text(rows))
        self.click_element("document.querySelectorAll('#copies .head button')[3]")
        longest = max(report["copies"], key=lambda copy: copy["predicted_ms"])
        self.assertIn(longest["value"], self.text(rows))
        self.click_element(f"document.querySelector('{rows}')")
        self.assertIn(f"({longest['bytes']:,})", self.text("#panel"))

    def test_a_search_leaves_what_it_finds(self):
        report = reports.report(400)
        self.open(report)
        self.search("einsum_")
        groups = [group["name"] for group in report["groups"] if group["kind"] == "einsum"]
        copies = [copy for copy in report["copies"] if "einsum_" in copy["value"]]
        self.assertEqual(self.text("#found"), f"{len(groups)} groups, {len(copies)} copies")
        self.assertEqual(self.evaluate("page.tables[1].shown.map(group => group.name).sort()"), sorted(groups))
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter")
        self.assertEqual(self.text("#panel h2"), groups[0])

    def test_predicted_stands_beside_measured(self):
        report = reports.report(300)
        measured = reports.measured(report)
        self.open(report, measured)
        off = 100 * (measured["measured_ms"] / report["predicted_ms"] - 1)
        self.assertIn(
            f"measured by the clock of the devices, {off:.1f} % longer than predicted", self.text("#step .measured")
        )
        ran = {work["name"]: work["end_ms"] - work["start_ms"] for work in measured["work"]}
        expected = {group["name"]: ran[group["name"]] / (group["end_ms"] - group["start_ms"]) for group in report["groups"]}
        ratios = dict(self.evaluate("page.report.groups.map(group => [group.name, ratioOf(group)])"))
        self.assertEqual(ratios.keys(), expected.keys())
        for name, ratio in expected.items():
            self.assertAlmostEqual(ratios[name], ratio, places=6)
        sums = [
            sum(times)
            for times in zip(
                *((g["end_ms"] - g["start_ms"], ran[g["name"]]) for g in report["groups"] if g["device"] == "sim:0")
            )
        ]
        row = next(text for text in self.texts("#measured .totals tr") if text.startswith("work on gpu(0) (sim:0)"))
        self.assertEqual(row.split(" ")[-1], f"×{sums[1] / sums[0]:.2f}")
        self.assertIn(f"{len(measured['work'])} of {len(measured['work'])} measured pieces", self.text("#measured .totals"))

    def test_equal_names_are_matched_in_the_order_of_time(self):
        report = reports.small()
        for group in report["groups"]:
            group["name"] = "same"
        work = [
            {"name": "same", "queue": queue, "start_ms": start, "end_ms": start + 0.1}
            for queue, start in (("cpu", 9), ("sim:0", 8), ("cpu", 7), ("cpu", 10))
        ]
        self.open(report, {"measured_ms": 1.5, "clock": "host", "work": work})
        self.assertEqual(self.evaluate("page.report.groups.map(group => Math.round(group.ran.start))"), [0, 1, 2])
        self.assertIn("3 of 4 measured pieces", self.text("#measured .totals"))

    def test_hostile_names_stay_text(self):
        report = reports.hostile()
        self.open(report, reports.measured(report))
        self.assertEqual(self.evaluate("typeof window.stolen"), "undefined")
        self.assertEqual(self.text("#title h1"), reports.NASTY[0])
        self.assertEqual(
            self.evaluate("page.report.groups.map(group => group.name)"), [group["name"] for group in report["groups"]]
        )
        self.assertEqual(self.evaluate("document.querySelectorAll('img, iframe, a').length"), 0)
        for i, name in enumerate(reports.NASTY):
            self.evaluate(f"page.select(page.report.groups[{i}])")
            self.assertEqual(self.evaluate("document.querySelector('#panel h2').textContent"), name)
            self.evaluate(f"page.select(page.report.copies[{i}])")
            self.assertEqual(self.evaluate("document.querySelector('#panel blockquote')?.textContent ?? ''"), name)
        self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), 1400)

    def test_a_report_without_anything_is_shown(self):
        self.open(
            {"model": "nothing", "predicted_ms": None, "devices": [{"name": "cpu"}], "groups": [], "copies": []},
            {"measured_ms": 1},
        )
        self.assertEqual(self.text("#step .big"), "unknown")
        self.assertEqual(self.texts("#lane-labels .lane b"), ["cpu"])

    def test_text_is_legible_in_light_and_dark(self):
        self.open(reports.small())
        for scheme in ("light", "dark"):
            self.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            self.browser.frame()
            back, *inks = (luminance(self.evaluate(f"page.palette.{name}")) for name in ("surface", "text", "muted"))
            for ink in inks:
                self.assertGreater((max(ink, back) + 0.05) / (min(ink, back) + 0.05), 4.5, scheme)
        self.browser.call("Emulation.setEmulatedMedia", features=[])

    def test_5000_groups_are_drawn_without_lag(self):
        self.open(reports.report(5000, accelerators=2))
        self.assertEqual(self.evaluate("document.querySelectorAll('.lane.work').length"), 3)
        self.assertLess(self.evaluate("document.querySelectorAll('*').length"), 1500)
        drawn = self.evaluate("page.lanes.firstDrawn")  # since the navigation
        x, y = self.evaluate(MIDDLE % "groups[2500]")
        self.browser.click(x, y)
        self.evaluate(NOTE_FRAMES)
        before = self.evaluate("page.axis.end - page.axis.start")
        for i in range(60):
            self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-60 if i < 30 else 60)
            self.browser.mouse("mouseMoved", x + i, y)
            if i == 29:
                self.assertLess(self.evaluate("page.axis.end - page.axis.start"), before / 20)
        self.browser.frame()
        frames, draws = self.evaluate("[page.frames, page.draws]")
        print(
            f"5,000 groups: drawn after {drawn:.0f} ms; over {len(frames)} frames of zooming the median takes "
            f"{statistics.median(frames):.1f} ms, the longest {max(frames):.0f} ms, of it drawing "
            f"{statistics.median(draws):.1f} ms and {max(draws):.0f} ms",
            file=sys.stderr,
        )
        self.assertLess(drawn, 5000)
        self.assertLess(statistics.median(frames), 200)
        self.assertLess(max(frames), 2000)


def luminance(colour):
    """The relative luminance of "#rrggbb", as defined by WCAG."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return sum(
        weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
        for weight, part in zip((0.2126, 0.7152, 0.0722), parts)
    )


if __name__ == "__main__":
    unittest.main(verbosity=2)
