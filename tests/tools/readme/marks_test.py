#!/usr/bin/env python3
"""The problems that readme_test.py finds in a document."""

import os
import tempfile
import unittest

import readme_test


class MarksTest(unittest.TestCase):
    def problems(self, comments, block, sanitized=False):
        with tempfile.TemporaryDirectory() as folder:
            (found,) = readme_test.blocks(f"text\n\n{comments}```console\n{block}```\n", "console")
            return readme_test.run_block(*found, folder, "DOC.md", sanitized)

    def test_numbers_are_free_unless_marked(self):
        self.assertEqual(self.problems("", "$ echo loss 2.5\nloss 1.5\n"), [])
        self.assertEqual(len(self.problems("", "$ echo loss 2.5\nlost 1.5\n")), 1)

    def test_a_marked_figure_stays_within_its_factor(self):
        mark = '<!-- within 1.1: "loss #" -->\n'
        self.assertEqual(self.problems(mark, "$ echo loss 1.6 of 9\nloss 1.5 of 1\n"), [])
        self.assertEqual(len(self.problems(mark, "$ echo loss 1.7 of 9\nloss 1.5 of 1\n")), 1)
        self.assertEqual(len(self.problems(mark, "$ echo loss 1.3 of 9\nloss 1.5 of 1\n")), 1)
        self.assertEqual(len(self.problems(mark, "$ echo loss nan\nloss 1.5\n")), 1)

    def test_a_factor_of_one_is_the_same_figure(self):
        mark = '<!-- within 1: "#" -->\n'
        self.assertEqual(self.problems(mark, "$ echo 1,234\n1,234\n"), [])
        self.assertEqual(len(self.problems(mark, "$ echo 1,235\n1,234\n")), 1)

    def test_columns_agree(self):
        mark = '<!-- agree 1: "# / # B" -->\n'
        self.assertEqual(self.problems(mark, "$ echo 3 / 40 B 3 / 40 B\n1 / 2 B 1 / 2 B\n"), [])
        self.assertEqual(len(self.problems(mark, "$ echo 3 / 40 B 3 / 41 B\n1 / 2 B 1 / 2 B\n")), 1)

    def test_different_figures_of_a_line_agree_within_a_factor(self):
        mark = '<!-- agree 1.05: "# ms a call", "predicted # ms" -->\n'
        self.assertEqual(self.problems(mark, "$ echo 1 ms a call, predicted 1.04 ms\n2 ms a call, predicted 2 ms\n"), [])
        self.assertEqual(len(self.problems(mark, "$ echo 1 ms a call, predicted 1.06 ms\n2 ms a call, predicted 2 ms\n")), 1)

    def test_every_mark_counts(self):
        marks = '<!-- within 2: "loss #" -->\n<!-- within 1: "rate #" -->\n'
        self.assertEqual(self.problems(marks, "$ echo loss 1 rate 3\nloss 2 rate 3\n"), [])
        self.assertEqual(len(self.problems(marks, "$ echo loss 1 rate 4\nloss 2 rate 3\n")), 1)

    def test_a_mark_may_be_for_programs_without_a_sanitizer(self):
        mark, block = '<!-- within 1.5 unless sanitized: "# kB" -->\n', "$ echo 10 kB\n1 kB\n"
        self.assertEqual(len(self.problems(mark, block)), 1)
        self.assertEqual(self.problems(mark, block, sanitized=True), [])
        self.assertEqual(len(self.problems('<!-- within 1.5: "# kB" -->\n', block, sanitized=True)), 1)

    def test_a_mark_of_nothing_is_a_problem(self):
        self.assertEqual(len(self.problems('<!-- within 2: "speed #" -->\n', "$ echo loss 1\nloss 1\n")), 1)

    def test_a_comment_that_is_no_mark_is_refused(self):
        with self.assertRaises(ValueError):
            self.problems('<!-- withing 2: "loss #" -->\n', "$ echo loss 1\nloss 1\n")

    def test_a_block_may_be_for_programs_without_a_sanitizer(self):
        mark, block = "<!-- unless sanitized -->\n", "$ echo lost\nloss\n"
        self.assertEqual(len(self.problems(mark, block)), 1)
        self.assertEqual(self.problems(mark, block, sanitized=True), [])


class CodeTest(unittest.TestCase):
    def check(self, comments, block):
        """The problems, the prologue, the fragments, and the programs that were written."""
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(root, "models"))
            with open(os.path.join(root, "models", "net.cpp"), "w", encoding="utf-8") as out:
                out.write("int one;\nint two;\n")
            found = readme_test.check_code(f"text\n\n{comments}```cpp\n{block}```\n", "DOC.md", root, folder)
            return *found, os.listdir(folder)

    def test_a_part_is_in_its_file(self):
        self.assertEqual(self.check("", "// models/net.cpp\nint two;\n"), ([], "", [], []))
        self.assertEqual(len(self.check("", "// models/net.cpp\nint three;\n")[0]), 1)

    def test_a_program_is_written(self):
        self.assertEqual(self.check("", "// net.cpp\nint main() {}\n"), ([], "", [], ["net.cpp"]))

    def test_a_fragment_follows_the_prologue(self):
        self.assertEqual(self.check("<!-- fragment -->\n", "int one;\n")[2], ["int one;\n"])
        self.assertEqual(self.check("<!-- prologue -->\n", "int one;\n")[1], "int one;\n")
        program = readme_test.program_of("int one;\n", ["int two;\n"])
        self.assertIn("static void fragment0() {\nint one;\nint two;\n}", program)
        self.assertIn("run(0, fragment0);", program)

    def test_other_code_is_a_problem(self):
        self.assertEqual(len(self.check("", "int one;\n")[0]), 1)
        self.assertEqual(len(self.check("<!-- part -->\n", "// net.cpp\nint one;\n")[0]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
