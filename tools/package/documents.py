"""Rewrites documents for installation below share/doc/sluice.

Links to other documents stay. Links to files that are installed elsewhere point to the installed
files. Links to other sources become plain text."""

import argparse
import os
import re
import shutil

ROOT = "/share/doc/sluice"  # in an installation

# Installed paths of other link targets, relative to share/doc/sluice.
ELSEWHERE = {
    "models/data/kjv/README.md": "../../sluice/kjv/README.md",
    "models/data/mnist-10k/README.md": "../../sluice/mnist-10k/README.md",
    "tools/reference/preface.md": "ops.md",
    "tools/package/SluiceConfig.cmake.in": "../../../lib/cmake/Sluice/SluiceConfig.cmake",
    "tools/compiler/scale/clusters": "../../sluice/clusters",
}
HEADERS = re.compile(r"(?:frontend|runtime|backends)/include/(sluice/.+)")
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def place_of(target, documents):
    """Returns the installed path of the source `target` relative to share/doc/sluice; None if it is not installed."""
    if target in documents or target.endswith(".svg"):
        return target
    header = HEADERS.fullmatch(target)
    return f"../../../include/{header[1]}" if header else ELSEWHERE.get(target)


def installed(source, out, document, documents):
    """Returns the text of a document with links for an installation."""
    folder = os.path.dirname(document)

    def relink(match):
        image, text, link, anchor = match.groups()
        target = os.path.normpath(os.path.join(folder, link))
        place = place_of(target, documents)
        if place is None:
            return text
        if image:
            picture = os.path.join(out, place)
            os.makedirs(os.path.dirname(picture), exist_ok=True)
            shutil.copyfile(os.path.join(source, target), picture)
        return f"{image}[{text}]({os.path.relpath(os.path.join(ROOT, place), os.path.join(ROOT, folder))}{anchor or ''})"

    with open(os.path.join(source, document), encoding="utf-8") as opened:
        parts = opened.read().split("```")  # code contains other brackets
    return "```".join(part if number % 2 else LINK.sub(relink, part) for number, part in enumerate(parts))


def main(source, out, documents):
    for document in documents:
        text = installed(source, out, document, documents)
        os.makedirs(os.path.dirname(os.path.join(out, document)), exist_ok=True)
        with open(os.path.join(out, document), "w", encoding="utf-8") as opened:
            opened.write(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE", help="folder of the documents")
    parser.add_argument("out", metavar="OUT", help="folder to write, which becomes share/doc/sluice")
    parser.add_argument("documents", metavar="DOCUMENT", nargs="*", help="path of a document below SOURCE")
    main(**vars(parser.parse_args()))
