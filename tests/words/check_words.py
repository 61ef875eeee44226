#!/usr/bin/env python3
"""Checks the English of documents, comments and texts: check_words.py SOURCE_ROOT [--list [FOLDER]] [--lower]

Finds words and phrases that are hard to read, or that have a better technical name, in .md files, in comments, and in
string literals, which hold help texts and errors. tests/words/allowed.txt has the number of places that each top folder
may have. The check fails if a folder has more, and if it has fewer: then --lower writes the smaller number. Numbers
never rise.

  --list [FOLDER]  print each place, of all folders or of one
  --lower          lower the numbers in tests/words/allowed.txt to the places that there are
"""

import bisect
import collections
import os
import re
import sys

# Rules: a pattern, the words to use instead, and the words without which a file has no match, in lower case. A space
# in a pattern matches a line break. `|` separates sets of words; a match has all words of one set.
# Names, also of code and files.
NAMES = [
    (r"[Ff]ound[ _-]?[Aa]gain|\bfinds? (it |them )?again", "rematerialized, Rematerialize", "again"),
    (r"\b[Ss]ettle[-_]?[Cc]opies", "DeduplicateCopies", "settle copies"),
    (r"\bCrossings", "CrossBackendSync", "crossings"),
    (r"\bMeetings\b", "Rendezvous", "meetings"),
    (r"cuda/runtime/Together", "NcclGroup", "cuda/runtime/together"),
    (r"\bStateKind::hyper\b|\bstate hyper\b|[\"`]hyper[\"`]", "hyperparameter", "hyper"),
    (r"[\"`]ends[\"`]", "lastUses", "\"ends|`ends"),
]
# Phrases and sentences of prose.
PHRASES = [
    (r"\b[Ww]here there (are|is) too few\b|\btwo would have one\b", "if there are too few", "where too few|two would have"),
    (r"\b[Tt]he ones? that (is|are|was|were) asked for\b|\b[Nn]othing stands in for\b", "requested; never substituted",
     "that asked for|nothing stands"),
    (r"\bwould leave for others\b|\bthese compute again\b", "consumers rematerialize", "would leave others|these compute again"),
    (r"\b[Ss]calars made of (these|them)\b", "scalars computed from them", "scalars made"),
    (r"\b[Gg]o(es)? on with (a|the) text\b|\bmodel is one of language\b", "generate text; language models",
     "with text|model one language"),
    (r"\b[Ww]hat else where that is not\b", "fallback lists", "what else where"),
    (r"\b[Aa]s (it )?is fastest\b|\bas few as can be\b", "fastest predicted; fewest", "fastest|few can"),
    (r"\b[Bb]y (its|their) own rows\b", "per replica", "own rows"),
    (r"\b[Ww]here (it is|they are) narrower than (it is|they are)\b", "narrower data type", "where narrower"),
    (r"(?<=s) that there are\b", "number of; size", "that there are"),
    (r"\b[Ww]hat becomes of\b", "policy for; result of", "what becomes"),
    (r"\bof (its|their|a|an|the)( \w+'s)? own\b", "separate; private; its", "of own"),
    (r"\bsource, or object, for reading\b", "keep generated sources", "source, object, reading"),
    (r"\bhave one place\b", "share a buffer", "have one place"),
    (r"\bwith rows is apart\b", "is sharded", "rows apart"),
    (r"\bas nobody said\b", "keeps its default", "nobody said"),
    (r"\b[Nn]one too small for (it|them)\b", "does not underflow", "none too small"),
    (r"\bis by no value\b", "expects at least one value", "by no value"),
]
SENTENCES = [
    (r"\b[Ww]hat (is|are|it|they|reads|makes|calls|has|was|no|a|the)\b", "a noun: its consumers, the producer, padding", "what"),
    (r", too[,.]", "also", "too,|too."),
    (r"\bwho (asks|reads|calls)\b", "the caller; the consumer", "who asks|who reads|who calls"),
    (r"\bstands (in|for|where)\b", "replaces; means; is", "stands"),
    (r"\b(is|are|was|were|can) (not )?to be had\b", "is available", "to be had"),
    (r"\bas (it|they) (lie|stand)s?\b", "unchanged; in its layout", "as it lie|as it stand|as they lie|as they stand"),
]

Rule = collections.namedtuple("Rule", "pattern better words")


def compiled(table):
    return [Rule(re.compile(pattern.replace(" ", r"\s+")), better, [each.split() for each in words.split("|")])
            for pattern, better, words in table]


IN_CODE = compiled(NAMES)
IN_PROSE = compiled(PHRASES + SENTENCES)


def possible(rules, text):
    """The rules that may match a text, found fast by their words."""
    lower = text.lower()
    return [rule for rule in rules if any(all(word in lower for word in words) for words in rule.words)]


C_LIKE = (".c", ".cpp", ".cu", ".h", ".inc", ".in", ".js", ".html", ".css")
HASHED = (".py", ".cmake", ".sh", ".yml", ".yaml", "CMakeLists.txt")
WHOLE = (".md", ".td")  # descriptions are most of a .td file
C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', re.S)
HASH_TOKEN = re.compile(r'#[^\n]*|"""(.*?)"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
SLASHES = re.compile(r"//[^\n]*")
LINE_MARK = re.compile(r"^[ \t]*(//[/!]?<?|#|\*(?!/)|\")")  # before a comment's or a literal's next line
OWN = "tests/words/"  # the tables and the tests of the check


def prose_of(path, text):
    """Pairs of a position and the prose that begins there; None for files of another kind."""
    name = os.path.basename(path)
    if name.endswith(WHOLE):
        return [(0, text)]
    if name.endswith(C_LIKE):
        token = C_TOKEN
    elif name.endswith(".mlir"):
        token = SLASHES
    elif name.endswith(HASHED) or text.startswith("#!"):
        token = HASH_TOKEN
    else:
        return None
    return [(match.start(), match[0]) for match in token.finditer(text)]


def lines_of(pieces):
    """The same, a pair for each line, without what marks a comment."""
    for at, piece in pieces:
        for line in piece.splitlines(keepends=True):
            mark = LINE_MARK.match(line)
            yield at, line[mark.end() :] if mark else line
            at += len(line)


def join(pairs):
    """One text, the positions in it where each line begins, and the positions of the lines in the file."""
    starts, positions, lines, length = [], [], [], 0
    for position, line in pairs:
        starts.append(length)
        positions.append(position)
        lines.append(line.strip(" \t\n\"") + " ")
        length += len(lines[-1])
    return "".join(lines), starts, positions


def find_in(path, text):
    """Lines and phrases of a file, each with the words to use instead. Line 0 is the path."""
    found = {}
    in_path, in_code, in_prose = possible(IN_CODE, path), possible(IN_CODE, text), possible(IN_PROSE, text)
    pieces = prose_of(path, text) if in_path or in_code or in_prose else None
    if pieces is None:
        return []
    for pattern, better, _ in in_path:
        for match in pattern.finditer(path):
            found[-1, pattern] = (match[0], better)
    for pattern, better, _ in in_code:
        for match in pattern.finditer(text):
            found[match.start(), pattern] = (" ".join(match[0].split()), better)
    prose, starts, positions = join(lines_of(pieces)) if in_prose else ("", [], [])
    for pattern, better, _ in in_prose:
        for match in pattern.finditer(prose):
            found[positions[bisect.bisect_right(starts, match.start()) - 1], pattern] = (match[0], better)
    ordered = sorted(found.items(), key=lambda item: item[0][0])
    return [(text.count("\n", 0, at) + 1 if at >= 0 else 0, *words) for (at, _), words in ordered]


def sources(root):
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in ("build", "__pycache__"))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), root)
            if not path.startswith(OWN):
                yield path


def check(root):
    """Places by top folder; "." holds the files beside the folders."""
    places = collections.defaultdict(list)
    for path in sources(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as source:
                text = source.read()
        except UnicodeDecodeError:
            continue  # data
        folder = path.split("/")[0] if "/" in path else "."
        places[folder] += [(path, *found) for found in find_in(path, text)]
    return places


def read_allowed(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {folder: int(count) for folder, count in lines}


def write_allowed(path, allowed):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Places that tests/words/check_words.py finds in each top folder. A number may only fall.\n")
        file.writelines(f"{folder} {count}\n" for folder, count in sorted(allowed.items()) if count)


def compare(places, allowed):
    """Why the places do not match the numbers."""
    for folder in sorted(set(places) | set(allowed)):
        found, most = len(places.get(folder, [])), allowed.get(folder, 0)
        if found > most:
            yield (f"{folder}: {found} places with words that are hard to read, where {most} are allowed; "
                   f"`tests/words/check_words.py . --list {folder}` prints them")
        elif found < most:
            yield f"{folder}: {found} places, where {most} are allowed; lower the number: tests/words/check_words.py . --lower"


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(__doc__.strip())
        return 0
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    root, *options = arguments
    path = os.path.join(root, "tests/words/allowed.txt")
    places, allowed = check(root), read_allowed(path)
    if options and options[0] == "--list":
        for folder in options[1:] or sorted(places):
            for file, line, words, better in places[folder]:
                print(f"{file}:{line}: '{words}' -> {better}")
        return 0
    if options == ["--lower"]:
        allowed = {folder: min(most, len(places.get(folder, []))) for folder, most in allowed.items()}
        write_allowed(path, allowed)
    elif options:
        sys.exit(__doc__)
    problems = list(compare(places, allowed))
    total = sum(map(len, places.values()))
    print("\n".join(problems) if problems else f"{total} places with words that are hard to read, as many as allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
