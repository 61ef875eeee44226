"""Tests that the word check finds each phrase of its tables, in each kind of file, and that its numbers only fall."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # nothing of a test lands among the sources
from check_words import IN_CODE, IN_PROSE, check, compare, find_in, possible

HERE = os.path.dirname(os.path.abspath(__file__))
PHRASES = [
    "all end, with code 4, where there are too few, or two would have one",
    "or the one that is asked for, which nothing stands in for",
    "What a kernel would leave for others, elementwise, these compute again where less is written and read",
    "Injective ops, what widens halves, and scalars made of these, are not grouped",
    "Go on with a text, if the model is one of language",
    "What to run on, as cpu,sim:0=16GB; again: what else where that is not",
    "Collectives of replicas: as is fastest (auto), as few as can be, or one for each value",
    "Of replicas: by their own rows (local) or all rows (sync)",
    "What replicas reduce gradients in, where it is narrower than they are",
    "words that there are",
    "what becomes of copies that pins need",
    "Settings of a backend's own",
    "Keep the kernels' source, or object, for reading",
    "Let what loops carry have one place",
    "A value with rows is apart",
    "everything else is as nobody said",
    "none too small for it",
    "is by no value",
    "what reads it",
    "What is padded",
    "within an epoch, too.",
    "a file of its own",
    "whoever is the one who calls",
    "it stands for a value",
    "where none is to be had",
    "bytes as they lie",
]
NAMES = ["FoundAgain", "found again", "finds it again", "SettleCopies", "settle-copies", "Crossings", "Meetings",
         "cuda/runtime/Together.h", "StateKind::hyper", "sluice.state hyper @lr", '"hyper"', '"ends"']
# One alternative of a pattern each.
ALTERNATIVES = [
    "finds them again", "`ends`", '"ends`', "where there is too few", "two would have one", "the ones that were asked for",
    "nothing stands in for it", "would leave for others", "these compute again", "scalars made of them", "goes on with a text",
    "the model is one of language", "as it is fastest", "as few as can be", "by its own rows", "where they are narrower than it is",
    "what becomes of it", "of their own", "of a model's own", "none too small for them", "what the", "what no", ", too.",
    "who asks", "who reads", "who calls", "stands where", "stands in", "can not be to be had", "as it stands", "as they stand",
    "as it lies", "What\nthe", "OF ITS OWN", "state hyper",
]
GOOD = ["Consumers rematerialize an elementwise value when that moves fewer bytes.",
        "Every process exits with code 4 if there are too few devices.",
        "Data type of gradient all-reduce", "a range that ends at 7", "too many rows", "two meetings a week"]
FORMS = {  # a file's name and how prose is written in it
    "a.md": "{}\n",
    "a.td": "let description = [{{\n  {}\n}}];\n",
    "a.cpp": "// {}\n",
    "a.h": "/* {} */\n",
    "b.cpp": 'const char *help = "{}";\n',
    "a.py": '"""{}"""\n',
    "b.py": "pass  # {}\n",
    "CMakeLists.txt": "# {}\n",
    "script": "#!/bin/sh\n# {}\n",
    "a.mlir": "// {}\n",
}


def words_in(path, text):
    return [words for _, words, _ in find_in(path, text)]


class TablesTest(unittest.TestCase):
    def test_each_phrase_is_found_in_each_kind_of_file(self):
        for phrase in PHRASES:
            for path, form in FORMS.items():
                with self.subTest(phrase=phrase, path=path):
                    self.assertTrue(words_in(path, form.format(phrase.replace('"', ""))))

    def test_each_name_is_found_in_code(self):
        for name in NAMES:
            with self.subTest(name=name):
                self.assertTrue(words_in("a.cpp", f"int x; {name}\n"))

    def test_a_name_is_found_in_a_path(self):
        self.assertEqual(words_in("passes/place/SettleCopies.cpp", "// sound\n"), ["SettleCopies"])

    def test_each_pattern_has_an_example(self):
        examples = "\n".join(PHRASES + NAMES)
        for rule in IN_CODE + IN_PROSE:
            with self.subTest(pattern=rule.pattern.pattern):
                self.assertTrue(rule.pattern.search(examples))

    def test_the_words_of_a_rule_hide_no_match(self):
        for example in PHRASES + NAMES + ALTERNATIVES:
            for rule in IN_CODE + IN_PROSE:
                if rule.pattern.search(example):
                    with self.subTest(example=example, pattern=rule.pattern.pattern):
                        self.assertEqual(possible([rule], example), [rule])

    def test_better_words_pass(self):
        for phrase in GOOD:
            for path, form in FORMS.items():
                with self.subTest(phrase=phrase, path=path):
                    self.assertEqual(words_in(path, form.format(phrase)), [])

    def test_code_is_not_prose(self):
        self.assertEqual(words_in("a.cpp", "what is(no, too);\n"), [])
        self.assertEqual(words_in("data.bin", "what is this\n"), [])

    def test_a_phrase_may_cross_lines(self):
        self.assertEqual(find_in("a.cpp", "int a;\n// so it is with what\n// reads it\n"), [(2, "what reads", IN_PROSE_NOUN)])
        self.assertEqual(words_in("a.cpp", 'f("a file of "\n  "its own");\n'), ["of its own"])
        self.assertEqual(words_in("a.md", "a file of its\nown\n"), ["of its own"])


IN_PROSE_NOUN = next(rule.better for rule in IN_PROSE if rule.pattern.search("what reads"))


class NumbersTest(unittest.TestCase):
    def test_more_places_fail(self):
        self.assertRegex(next(compare({"ir": [()] * 3}, {"ir": 2})), "^ir: 3 places .* 2 are allowed")

    def test_places_in_a_new_folder_fail(self):
        self.assertEqual(len(list(compare({"new": [()]}, {"ir": 0}))), 1)

    def test_fewer_places_fail_until_the_number_is_lowered(self):
        self.assertRegex(next(compare({"ir": [()]}, {"ir": 2})), "lower")
        self.assertRegex(next(compare({}, {"ir": 2})), "lower")

    def test_as_many_places_pass(self):
        self.assertEqual(list(compare({"ir": [()] * 2, "tools": []}, {"ir": 2})), [])


class ProgramTest(unittest.TestCase):
    """The program on a tree with one comment."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("ir/A.cpp", "// what is here\n// and what was there\n")

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def run_with(self, allowed, *options):
        self.write("tests/words/allowed.txt", allowed)
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "check_words.py"), self.root, *options],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        with open(os.path.join(self.root, "tests/words/allowed.txt"), encoding="utf-8") as file:
            left = [line for line in file.read().splitlines() if not line.startswith("#")]
        return done.returncode, done.stdout, left

    def test_the_numbers_decide(self):
        self.assertEqual(self.run_with("ir 2\n")[0], 0)
        self.assertEqual(self.run_with("ir 1\n")[0], 1)
        self.assertEqual(self.run_with("ir 3\n")[0], 1)

    def test_lower_never_raises(self):
        self.assertEqual(self.run_with("ir 7\ntools 1\n", "--lower"), (0, self.run_with("ir 2\n")[1], ["ir 2"]))
        code, _, left = self.run_with("ir 1\n", "--lower")
        self.assertEqual((code, left), (1, ["ir 1"]))

    def test_list_prints_places(self):
        code, printed, _ = self.run_with("ir 2\n", "--list", "ir")
        self.assertEqual(code, 0)
        self.assertIn("ir/A.cpp:1: 'what is' -> ", printed)
        self.assertIn("ir/A.cpp:2: 'what was' -> ", printed)

    def test_hidden_folders_and_builds_are_not_read(self):
        for path in ("build/a.md", ".git/a.md", "tests/words/a.md"):
            self.write(path, "what is it\n")
        self.assertEqual(len(check(self.root)["ir"]), 2)
        self.assertEqual(self.run_with("ir 2\n")[0], 0)


if __name__ == "__main__":
    unittest.main()
