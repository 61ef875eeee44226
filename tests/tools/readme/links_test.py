#!/usr/bin/env python3
"""Checks the names in the documents: links_test.py SOURCE_ROOT.

For each Markdown file of the repository:
    - a relative link leads to a file or a folder, and its anchor to a heading;
    - a path in code, such as `passes/Pipeline.cpp` or `tools/test`, exists;
    - a file name in code, such as `Pipeline.cpp`, is a file of the repository or a program of the documents;
    - a function in code, such as `runPipeline()`, occurs in a source file that the same paragraph or row links, or else in any
      source file;
    - it is in the list of installed documents, and in the list of the test `readme` if it contains commands."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

FOLDERS = ("backends", "frontend", "ir", "models", "passes", "runtime", "tests", "tools")
SOURCES = (".cpp", ".h", ".td", ".py", ".c", ".cmake")
ELSEWHERE = ("tools/reference/preface.md", "models/data/")  # documents that are installed in another form or place

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./*+-]*")
FILE = re.compile(r"\w+\.(?:cpp|h|td|py|c|md)")
FUNCTION = re.compile(r"(?:\w+::)*(\w+)\(\)")
BEGINS_UNIT = re.compile(r"\s*$|\||    |#|\s*- |\s*\d+\. ")


def anchor_of(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def units(text):
    """Paragraphs, items, headings, table rows and lines of indented code, each as one line; without fenced code."""
    found = []
    for line in FENCE.sub("", text).splitlines():
        if found and found[-1].strip() and not BEGINS_UNIT.match(line) and not found[-1].startswith(("|", "    ", "#")):
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found


class Repository:
    def __init__(self, root):
        self.root = root
        self.paths = sorted(self.find())
        self.documents = [path for path in self.paths if path.endswith(".md")]
        self.names = {os.path.basename(path) for path in self.paths}
        self.texts, self.words = {}, {}
        for document in self.documents:
            self.names |= set(re.findall(r"^```cpp\n// (\w+\.cpp)$", self.read(document), re.M))

    def find(self):
        yield from (name for name in os.listdir(self.root) if os.path.isfile(os.path.join(self.root, name)))
        for folder in FOLDERS:
            for directory, _, names in os.walk(os.path.join(self.root, folder)):
                yield from (os.path.relpath(os.path.join(directory, name), self.root) for name in names)

    def read(self, path):
        if path not in self.texts:
            with open(os.path.join(self.root, path), encoding="utf-8") as source:
                self.texts[path] = source.read()
        return self.texts[path]

    def words_of(self, path):
        if path not in self.words:
            self.words[path] = set(re.findall(r"\w+", self.read(path)))
        return self.words[path]

    def has_word(self, word, paths):
        return any(word in self.words_of(path) for path in paths if path.endswith(SOURCES))

    def exists(self, path):
        return bool(glob.glob(os.path.join(self.root, path.rstrip("."))))

    def check_link(self, document, link):
        """Why a link is broken; None if it is not."""
        target, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(document), target)) if target else document
        if not self.exists(path):
            return f"the link {link} leads nowhere"
        if anchor and path.endswith(".md"):
            headings = re.findall(r"^#+ (.+)$", FENCE.sub("", self.read(path)), re.M)
            if anchor not in map(anchor_of, headings):
                return f"the link {link} names no heading of {path}"
        return None

    def check_code(self, words, linked):
        """The problems of the words of a code span, or of indented code, in a unit with links to `linked`."""
        for word in words:
            function = FUNCTION.fullmatch(word)
            if PATH.fullmatch(word) and not self.exists(word):
                yield f"there is no {word}"
            elif FILE.fullmatch(word) and word not in self.names:
                yield f"no file is named {word}"
            elif function and not self.has_word(function[1], [path for path in linked if path.endswith(SOURCES)] or self.paths):
                yield f"{word} is in no source file" + (f" of {', '.join(linked)}" if linked else "")

    def check_unit(self, document, line):
        if line.startswith("    "):
            yield from self.check_code([word for word in line.split() if PATH.fullmatch(word)], [])
            return
        links = [link for link in LINK.findall(SPAN.sub("", line)) if ":" not in link]
        yield from filter(None, (self.check_link(document, link) for link in links))
        linked = [os.path.normpath(os.path.join(os.path.dirname(document), link.partition("#")[0])) for link in links]
        for span in SPAN.findall(line):
            yield from self.check_code(span.split(), [path for path in linked if path in self.paths])

    def check_document(self, document):
        for unit in units(self.read(document)):
            for problem in self.check_unit(document, unit):
                yield f"{document}: {problem}: {unit}"

    def listed(self, cmake):
        return set(re.findall(r"[\w/]+\.md", self.read(cmake)))

    def check_lists(self):
        installed, run = self.listed("tools/package/CMakeLists.txt"), self.listed("tests/tools/readme/CMakeLists.txt")
        for document in self.documents:
            if document not in installed and not document.startswith(ELSEWHERE):
                yield f"{document} is not in the documents of tools/package/CMakeLists.txt"
            if "\n```console\n" in self.read(document) and document not in run:
                yield f"{document} has commands, and is not in tests/tools/readme/CMakeLists.txt"

    def problems(self):
        found = [problem for document in self.documents for problem in self.check_document(document)]
        return found + list(self.check_lists())


class LinksTest(unittest.TestCase):
    def check(self, text):
        """The problems of a document in a small repository."""
        with tempfile.TemporaryDirectory() as root:
            files = {"passes/Pipeline.cpp": "void runPipeline() {}\n", "passes/PHASES.md": "# Phases\n\n## The first one\n",
                     "frontend/graph/Graph.cpp": "void save() {}\n", "README.md": text,
                     "tools/package/CMakeLists.txt": "README.md passes/PHASES.md", "tests/tools/readme/CMakeLists.txt": ""}
            for name, content in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(content)
            return Repository(root).problems()

    def test_links(self):
        self.assertEqual(self.check("[a](passes/Pipeline.cpp) [b](passes) [c](passes/PHASES.md#the-first-one)\n"), [])
        self.assertEqual(len(self.check("[a](passes/Pipelines.cpp)\n")), 1)
        self.assertEqual(len(self.check("[a](passes/PHASES.md#the-second-one)\n")), 1)

    def test_paths(self):
        self.assertEqual(self.check("`passes/Pipeline.cpp` and `passes/*.cpp`, `Pipeline.cpp`\n\n    passes/Pipeline.cpp  # runs\n"), [])
        self.assertEqual(len(self.check("`passes/Pipelines.cpp`\n")), 1)
        self.assertEqual(len(self.check("`Pipelines.cpp`\n")), 1)
        self.assertEqual(len(self.check("    passes/Pipelines.cpp  # runs\n")), 1)

    def test_functions(self):
        self.assertEqual(self.check("[a](passes/Pipeline.cpp) `runPipeline()`; `x.save()`\n\n`save()`\n"), [])
        self.assertEqual(len(self.check("[a](passes/Pipeline.cpp) `save()`\n")), 1)
        self.assertEqual(len(self.check("`load()`\n")), 1)

    def test_code_may_span_lines(self):
        self.assertEqual(self.check("text `passes/Pipeline.cpp\n--flag` [a\nb](passes) `save()`\n"), [])
        self.assertEqual(len(self.check("text `true\npasses/Pipelines.cpp`\n")), 1)
        self.assertEqual(len(self.check("- text\n  `passes/Pipelines.cpp`\n- text\n")), 1)

    def test_lists(self):
        self.assertEqual(len(self.check("text\n\n```console\n$ true\n```\n")), 1)


class DocumentsTest(unittest.TestCase):
    root = None

    def test_the_documents_are_true(self):
        repository = Repository(self.root)
        self.assertGreater(len(repository.documents), 10)
        if problems := repository.problems():
            self.fail("\n" + "\n".join(problems))

    def test_the_speed_chart_shows_the_table(self):
        command = [sys.executable, "-B", os.path.join(self.root, "tools/bench/speed_plot.py"), os.path.join(self.root, "README.md")]
        chart = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        with open(os.path.join(self.root, "tools/bench/speed.svg"), encoding="utf-8") as drawn:
            self.assertEqual(drawn.read(), chart, "draw it again: python3 tools/bench/speed_plot.py README.md > tools/bench/speed.svg")


if __name__ == "__main__":
    DocumentsTest.root = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
