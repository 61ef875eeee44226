"""The documents as they are installed: documents.py SOURCE OUT DOCUMENT...

Each document of the folder SOURCE is written to the same place below OUT, which becomes share/doc/sluice. A link to another
document stays, a link to what is installed elsewhere leads there, and of a link to other sources only the text stays."""

import os
import re
import shutil
import sys

ROOT = "/share/doc/sluice"  # of an installation

# What documents link to and where it is installed, from share/doc/sluice.
ELSEWHERE = {
    "tools/reference/preface.md": "ops.md",
    "tools/package/SluiceConfig.cmake.in": "../../../lib/cmake/Sluice/SluiceConfig.cmake",
    "tools/compiler/scale/clusters": "../../sluice/clusters",
}
HEADERS = re.compile(r"(?:frontend|runtime|backends)/include/(sluice/.+)")
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def place_of(target, documents):
    """Where the path `target` of the sources is installed, from share/doc/sluice; None if it is not."""
    if target in documents or target.endswith(".svg"):
        return target
    header = HEADERS.fullmatch(target)
    return f"../../../include/{header[1]}" if header else ELSEWHERE.get(target)


def installed(source, out, document, documents):
    """The text of a document with the links that an installation has."""
    folder = os.path.dirname(document)

    def relink(match):
        image, text, link, anchor = match.groups()
        target = os.path.normpath(os.path.join(folder, link))
        place = place_of(target, documents)
        if place is None:
            return text
        if image:
            os.makedirs(os.path.join(out, folder), exist_ok=True)
            shutil.copyfile(os.path.join(source, target), os.path.join(out, place))
        return f"{image}[{text}]({os.path.relpath(os.path.join(ROOT, place), os.path.join(ROOT, folder))}{anchor or ''})"

    with open(os.path.join(source, document), encoding="utf-8") as opened:
        parts = opened.read().split("```")  # code has brackets of its own
    return "```".join(part if number % 2 else LINK.sub(relink, part) for number, part in enumerate(parts))


def main(source, out, *documents):
    for document in documents:
        text = installed(source, out, document, documents)
        os.makedirs(os.path.dirname(os.path.join(out, document)), exist_ok=True)
        with open(os.path.join(out, document), "w", encoding="utf-8") as opened:
            opened.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
