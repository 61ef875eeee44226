"""Writes the reference of ops as Markdown: op_reference.py OPS.json PREFACE.md OUTPUT.md

OPS.json is what `llvm-tblgen --dump-json` makes of ir/Ops.td. An op that lacks what the author of a backend needs (its meaning,
a word on each attribute; for an op on values, its rows and its rounding) is an error that names all that is missing."""

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
        """The type or attribute that an argument has, and what is said of it."""
        record = self.records[record["def"]]
        if "OpVariable" in record["!superclasses"]:
            return self.records[record["constraint"]["def"]], record["summary"]
        return record, ""

    def arguments(self, op, kind):
        """(name, constraint, text) of the operands or attributes, in their order."""
        for value, name in op["arguments"]["args"]:
            constraint, text = self.of_value(value)
            if (kind == "attribute") == ("AttrConstraint" in constraint["!superclasses"]):
                yield name, constraint, text

    def results(self, op):
        for value, name in op["results"]["args"]:
            yield name, self.of_value(value)[0]

    def view(self, attribute, otherwise):
        """Its form in the C view, `otherwise` if it is no number and no type; and its default."""
        base, default = attribute, attribute["defaultValue"]
        while base["baseAttr"]:
            base = self.records[base["baseAttr"]["def"]]
        form = VIEWS.get(base["!name"]) or ("a type" if "TypeAttrBase" in base["!superclasses"] else otherwise)
        return form + (f", {default} by default" if default else ", if any" if attribute["isOptional"] else "")

    def lacks(self, op):
        """What the reference cannot say of an op."""
        for field in ["summary", "description"] + (["rows", "rounding"] if is_on_values(op) else []):
            if not words(op.get(field)):
                yield f"no {field}"
        for name, _, text in self.arguments(op, "attribute"):
            if not words(text):
                yield f"no description of attribute '{name}'"


def is_on_values(op):
    return "Sluice_ValueOp" in op["!superclasses"]


def words(text):
    """Text without the indentation of the file that it stands in; paragraphs stay."""
    paragraphs = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def type_words(constraint):
    """A type as the C view spells it: "tensor of f32 or f64"."""
    text = constraint["summary"].replace("ranked tensor", "tensor").replace(" values", "").replace("variadic of ", "any number: ")
    text = text.replace("1-bit signless integer", "bool").replace("8-bit unsigned integer", "u8").replace("bfloat16 type", "bf16")
    return re.sub(r"(\d+)-bit float", r"f\1", re.sub(r"(\d+)-bit signless integer", r"i\1", text))


def table(heading, rows):
    lines = [" | ".join(row).join(("| ", " |")) for row in rows]
    return "\n".join([f"| {heading[0]} | {heading[1]} |", "|---|---|", *lines]) + "\n" if lines else ""


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
    """The file that the op's definition begins in."""
    return os.path.splitext(os.path.basename(op["!locs"][0].rsplit(":", 1)[0]))[0]


def write(ops, preface, out):
    print(preface.strip(), file=out)
    for name in sorted({family(op) for op in ops.ops}):
        print(f"\n## {name}\n", file=out)
        print("\n\n".join(describe(ops, op) for op in ops.ops if family(op) == name), file=out)


def main(records, preface, output):
    with open(records, encoding="utf-8") as source:
        ops = Ops(json.load(source))
    missing = [f"sluice.{op['opName']}: {what}" for op in ops.ops for what in ops.lacks(op)]
    if missing:
        sys.exit("\n".join(missing))
    with open(preface, encoding="utf-8") as source, open(output, "w", encoding="utf-8") as out:
        write(ops, source.read(), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
