"""Damages ONNX files in their structure: fields of messages are changed, moved, doubled or removed."""

import copy
import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
from mutate import damage_bytes
from onnx_files import write

# The nested messages of each message by the numbers of their fields. Other fields are numbers, floats or bytes.
NESTED = {
    "Model": {7: "Graph", 8: "Opset", 14: "Entry", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor", 11: "Value", 12: "Value", 13: "Value"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph"},
    "Function": {7: "Node", 9: "Opset", 11: "Attribute"},
    "Tensor": {13: "Entry"},
    "Value": {2: "Type"},
    "Type": {1: "TensorType"},
    "TensorType": {2: "Shape"},
    "Shape": {1: "Dimension"},
}
NUMBERS = [0, 1, 2, 3, 7, 127, 128, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2]
NAMES = [b"", b"x", b"y", b"w", b"nothing", b"a" * 5000, b"\xff\xfe", b"../../etc/passwd", b'"', b"\n", b"Add", b"Loop"]


def parse(data, kind="Model"):
    """Fields as `write` takes them; bytes that are no message stay bytes."""
    fields, at = [], 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            fields.append((tag >> 3, number()))
        elif tag & 7 == 5:
            fields.append((tag >> 3, struct.unpack("<f", data[at:at + 4])[0]))
            at += 4
        else:
            size = number()
            nested = NESTED.get(kind, {}).get(tag >> 3)
            content = data[at:at + size]
            fields.append((tag >> 3, parse(content, nested) if nested else content))
            at += size
    return fields


def messages(fields):
    """All lists of fields."""
    found = [fields]
    for _, content in fields:
        if isinstance(content, list):
            found += messages(content)
    return found


def damaged_value(content, others, random):
    if isinstance(content, int):
        return random.choice(NUMBERS)
    if isinstance(content, float):
        return random.choice([0.0, -1.0, 1e38, float("inf"), float("nan")])
    if isinstance(content, bytes):
        kind = random.randrange(4)
        if kind == 0:
            return random.choice(NAMES)
        if kind == 1:
            return content[:random.randrange(len(content) + 1)]
        if kind == 2:
            return random.choice([other for other in others if isinstance(other, bytes)] or [b""])
        return bytes(random.randrange(256) for _ in range(random.randrange(20)))
    return copy.deepcopy(random.choice([other for other in others if isinstance(other, list)] or [[]]))


def damage_onnx(data, random):
    """Changes, moves, doubles or removes fields; now and then damages bytes."""
    if random.random() < 0.2:
        return damage_bytes(data, random)
    tree = parse(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        lists = [each for each in messages(tree) if each]
        others = [content for each in lists for _, content in each]
        fields = random.choice(lists)
        at = random.randrange(len(fields))
        kind = random.randrange(7)
        if kind <= 2:
            fields[at] = (fields[at][0], damaged_value(fields[at][1], others, random))
        elif kind == 3:
            del fields[at]
        elif kind == 4:
            fields.insert(at, copy.deepcopy(fields[random.randrange(len(fields))]))
        elif kind == 5:
            fields[at] = (random.choice([1, 2, 3, 4, 5, 7, 9, 20, 21, 25]), fields[at][1])
        else:
            random.shuffle(fields)
        if len(messages(tree)) > 400:
            break
    return write(tree)
