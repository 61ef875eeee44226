"""Writes the reference of ops as Markdown.

For authors of backends, each op must document its meaning and each attribute, and for an op on
values also its rows and its rounding. An error lists all omissions."""

import argparse
import json
import os
import re
import sys

# How an attribute reaches a backend, as a sluice_attribute_view.
VIEWS = {"DenseI64ArrayAttr": "integers", "I64Attr": "one integer", "F64Attr": "one real", "UnitAttr": "1, or absent",
         "ElementsAttr": "integers or reals"}


class Ops:
    """The records of a TableGen file."""

    def __init__(self, records):
        self.records = records
        names = records["!instanceof"]["Sluice_Op"]
        self.ops = sorted((records[name] for name in names), key=lambda op: op["opName"])

    def of_value(self, record):
        """The type or attribute of an argument, and its description."""
        record = self.records[record["def"]]
        if "OpVariable" in record["!superclasses"]:
            return self.records[record["constraint"]["def"]], record["summary"]
        return record, ""

    def arguments(self, op, kind):
        """(name, constraint, text) of the operands or attributes, in order."""
        for value, name in op["arguments"]["args"]:
            constraint, text = self.of_value(value)
            if (kind == "attribute") == ("AttrConstraint" in constraint["!superclasses"]):
                yield name, constraint, text

    def results(self, op):
        for value, name in op["results"]["args"]:
            yield name, self.of_value(value)[0]

    def view(self, attribute, otherwise):
        """Its form in the C view, `otherwise` if it is neither a number nor a type; and its default."""
        base, default = attribute, attribute["defaultValue"]
        while base["baseAttr"]:
            base = self.records[base["baseAttr"]["def"]]
        form = VIEWS.get(base["!name"]) or ("a type" if "TypeAttrBase" in base["!superclasses"] else otherwise)
        return form + (f", {default} by default" if default else ", if any" if attribute["isOptional"] else "")

    def lacks(self, op):
        """The undocumented parts of an op."""
        for field in ["summary", "description"] + (["rows", "rounding"] if is_on_values(op) else []):
            if not words(op.get(field)):
                yield f"no {field}"
        for name, _, text in self.arguments(op, "attribute"):
            if not words(text):
                yield f"no description of attribute '{name}'"


def is_on_values(op):
    return "Sluice_ValueOp" in op["!superclasses"]


def words(text):
    """Text without the indentation of its file; paragraphs stay."""
    paragraphs = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def type_words(constraint):
    """A type in the notation of the C view: "tensor of f32 or f64"."""
    text = constraint["summary"].replace("ranked tensor", "tensor").replace(" values", "").replace("variadic of ", "any number: ")
    text = text.replace("1-bit signless integer", "bool").replace("8-bit unsigned integer", "u8").replace("bfloat16 type", "bf16")
    return re.sub(r"(\d+)-bit float", r"f\1", re.sub(r"(\d+)-bit signless integer", r"i\1", text))


def table(heading, rows):
    lines = [" | ".join(row).join(("| ", " |")) for row in [heading, ["---"] * len(heading), *rows]]
    return "\n".join(lines) + "\n" if rows else ""


def describe(ops, op):
    otherwise = "a word" if is_on_values(op) else "text"
    attributes = [(f"`{name}`", f"{ops.view(constraint, otherwise)}: {words(text)}")
                  for name, constraint, text in ops.arguments(op, "attribute")]
    operands = [(f"`{name}`", type_words(constraint)) for name, constraint, _ in ops.arguments(op, "operand")]
    results = [(f"`{name}`", type_words(constraint)) for name, constraint in ops.results(op)]
    parts = [f"### sluice.{op['opName']}", words(op["summary"]), words(op["description"]), table(("operand", "type"), operands),
             table(("attribute", "in a view, and its meaning"), attributes), table(("result", "type"), results)]
    if is_on_values(op):
        parts += [f"**Rows.** {words(op['rows'])}", f"**Rounding.** {words(op['rounding'])}"]
    return "\n\n".join(part.strip() for part in parts if part)


def family(op):
    """The file in which the op's definition begins."""
    return os.path.splitext(os.path.basename(op["!locs"][0].rsplit(":", 1)[0]))[0]


DTYPES = ("f64", "f32", "f16", "bf16")

POINTS = """
## Special points

Results and gradients where a function or its gradient is singular, infinite or not smooth. Ops are written as models write
them; the gradient is that of the sum of the result. Elements are in order; of more than sixteen, the table shows the sum. A cell
has one answer for f64, f32, f16 and bf16 if they agree in the digits shown. PyTorch 1.13 computes on the CPU, halves in f32 from
operands that the half holds.

Norms of halves compute in f32, with an epsilon in f32. An epsilon in a formula of halves is rounded to their type: in f16, 1e-8
is 0, so that log(x + 1e-8) is -inf at 0. With `--precision`, formulas with such an epsilon compute in f32.
"""


def by_dtype(answers):
    """Merges the answers of dtypes that agree: "0; f16: inf"."""
    groups = {}
    for dtype, answer in answers.items():
        groups.setdefault(answer, []).append(dtype)
    first, *others = groups.items()
    return "; ".join([first[0], *(f"{', '.join(dtypes)}: {answer}" for answer, dtypes in others)])


def point_cell(point, names):
    cells = [(name, by_dtype({dtype: point[dtype][name] for dtype in DTYPES})) for name in names if name in point["f64"]]
    return "; ".join(text if len(cells) == 1 else f"{name}: {text}" for name, text in cells)


def in_pytorch(point):
    """Returns PyTorch's answers where they differ, and the reason."""
    parts = []
    for name in ("y", "dx", "dw"):
        answers = {dtype: point[dtype].get("PyTorch", {}).get(name, "same") for dtype in DTYPES}
        if any(answer != "same" for answer in answers.values()):
            parts.append(f"{name}: {by_dtype(answers)}")
    return "; ".join(parts) + f". {point['differs']}" if parts else "same"


def special_points(points):
    rows = [(f"`{point['op']}`", point["x"] + (f"; w: {point['w']}" if "w" in point else ""), point_cell(point, ["y"]),
             point_cell(point, ["dx", "dw"]), in_pytorch(point)) for point in points]
    return POINTS + "\n" + table(("op", "x", "result", "gradient", "in PyTorch"), rows)


def write(ops, preface, points, out):
    print(preface.strip(), file=out)
    print(special_points(points), file=out)
    for name in sorted({family(op) for op in ops.ops}):
        print(f"\n## {name}\n", file=out)
        print("\n\n".join(describe(ops, op) for op in ops.ops if family(op) == name), file=out)


def main(records, preface, points, output):
    with open(records, encoding="utf-8") as source:
        ops = Ops(json.load(source))
    missing = [f"sluice.{op['opName']}: {what}" for op in ops.ops for what in ops.lacks(op)]
    if missing:
        sys.exit("\n".join(missing))
    with open(preface, encoding="utf-8") as text, open(points, encoding="utf-8") as table, open(output, "w", encoding="utf-8") as out:
        write(ops, text.read(), json.load(table), out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", metavar="OPS.json", help="output of `llvm-tblgen --dump-json` for ir/Ops.td")
    parser.add_argument("preface", metavar="PREFACE.md", help="text before the ops")
    parser.add_argument("points", metavar="SPECIAL_POINTS.json",
                        help="results and gradients at special points, written by tests/e2e/torch/special_points.py")
    parser.add_argument("output", metavar="OUTPUT.md", help="file to write")
    main(**vars(parser.parse_args()))
