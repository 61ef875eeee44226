"""ONNX files: written field by field, parsed by the types of messages, and damaged in their structure."""

import struct

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
FLOAT, INT, STRING, TENSOR, GRAPH, INTS = 1, 2, 3, 4, 5, 7
NUMBERS = [0, 1, 2, 3, 7, 127, 128, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2]
NAMES = [b"", b"x", b"y", b"w", b"nothing", b"a" * 5000, b"\xff\xfe", b"../../etc/passwd", b'"', b"\n", b"Add", b"Loop"]


# --- writing

def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def write(fields):
    """Fields are (number, value): an int, a float, bytes, or a list of fields."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            content = value if isinstance(value, bytes) else write(value)
            out += varint(number << 3 | 2) + varint(len(content)) + content
    return out


def tensor(name, kind, dims, data):
    return [(8, name.encode())] + [(1, size) for size in dims] + [(2, kind), (9, data)]


def floats(name, dims, *values):
    count = 1
    for size in dims:
        count *= size
    values = values or [((i * 7) % 13 - 6) / 8 for i in range(count)]
    return tensor(name, 1, dims, struct.pack(f"<{count}f", *values))


def integers(name, *values, scalar=False):
    return tensor(name, 7, [] if scalar else [len(values)], struct.pack(f"<{len(values)}q", *values))


def attribute(name, value):
    kind, number = {int: (INT, 3), float: (FLOAT, 2), bytes: (STRING, 4)}.get(type(value), (None, None))
    if kind:
        return [(1, name.encode()), (20, kind), (number, value)]
    if isinstance(value, tuple):
        return [(1, name.encode()), (20, INTS)] + [(8, each) for each in value]
    is_graph = any(number == 1 and isinstance(each, list) for number, each in value)
    return [(1, name.encode()), (20, GRAPH if is_graph else TENSOR), (6 if is_graph else 5, value)]


def node(op, inputs, outputs, **attributes):
    return ([(1, name.encode()) for name in inputs] + [(2, name.encode()) for name in outputs] +
            [(3, f"/{op}/{outputs[0]}".encode()), (4, op.encode())] +
            [(5, attribute(name, value)) for name, value in attributes.items()])


def value(name, kind, *dims):
    shape = [(1, [(1, size)] if isinstance(size, int) else [(2, size.encode())]) for size in dims]
    return [(1, name.encode()), (2, [(1, [(1, kind), (2, shape)])])]


def graph(nodes, initializers, inputs, outputs):
    return ([(1, each) for each in nodes] + [(2, b"g")] + [(5, each) for each in initializers] +
            [(11, each) for each in inputs] + [(12, each) for each in outputs])


def model(*parts, opset=17, functions=()):
    return write([(1, 8), (2, b"tests"), (7, graph(*parts)), (8, [(1, b""), (2, opset)]),
                  *[(25, function) for function in functions], *[(8, [(1, b"own"), (2, 1)]) for _ in functions]])


def seeds():
    """Small models that reach the parts of the importer: weights, computed shapes, branches, loops and functions."""
    network = model(
        [node("Conv", ["x", "w", "b"], ["c"], pads=(1, 0, 1, 1), kernel_shape=(3, 3), strides=(2, 1)),
         node("BatchNormalization", ["c", "s", "s", "b", "s"], ["n"], epsilon=1e-3),
         node("Relu", ["n"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=(2, 2)),
         node("Shape", ["p"], ["d"]), node("Gather", ["d", "zero"], ["rows"]),
         node("Unsqueeze", ["rows", "first"], ["row"]), node("Concat", ["row", "rest"], ["shape"], axis=0),
         node("Reshape", ["p", "shape"], ["f"]), node("Gemm", ["f", "m"], ["y"], transB=1, alpha=0.5)],
        [floats("w", [2, 3, 3, 3]), floats("b", [2]), floats("s", [2], 1.0, 2.0), integers("zero", 0, scalar=True),
         integers("first", 0), integers("rest", -1), floats("m", [4, 16])],
        [value("x", 1, "N", 3, 6, 6)], [value("y", 1, "N", 4)])
    branch = [graph([node("Mul", ["x", "two"], ["t"])], [floats("two", [], 2.0)], [], [value("t", 1, 2, 3)]),
              graph([node("Neg", ["x"], ["e"])], [], [], [value("e", 1, 2, 3)])]
    body = graph([node("Add", ["s", "x"], ["s1"]), node("Identity", ["c"], ["c1"])], [],
                 [value("i", 7), value("c", 9), value("s", 1, 2, 3)], [value("c1", 9), value("s1", 1, 2, 3)])
    control = model(
        [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["p"]),
         node("If", ["p"], ["a"], then_branch=branch[0], else_branch=branch[1]),
         node("Loop", ["trips", "", "a"], ["l"], body=body),
         node("Slice", ["l", "from", "to", "axes"], ["y"])],
        [floats("zero", [], 0.0), integers("trips", 3, scalar=True), integers("from", 0), integers("to", 2**63 - 1),
         integers("axes", -1)],
        [value("x", 1, 2, 3)], [value("y", 1, 2, 3)])
    function = [(1, b"Twice"), (4, b"v"), (5, b"o"), (7, node("Add", ["v", "v"], ["o"])), (9, [(1, b""), (2, 17)]),
                (10, b"own")]
    calls = model(
        [node("Twice", ["x"], ["t"]) + [(7, b"own")], node("LSTM", ["t", "w", "r"], ["", "h"], hidden_size=2),
         node("Softmax", ["h"], ["y"], axis=-1)],
        [floats("w", [1, 8, 3]), floats("r", [1, 8, 2])],
        [value("x", 1, 4, 2, 3)], [value("y", 1, 1, 2, 2)], functions=[function])
    return [network, control, calls]


# --- damage

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
    return random.choice([other for other in others if isinstance(other, list)] or [[]])


def damage(data, random):
    """Changes, moves, doubles or removes fields; now and then damages bytes."""
    from mutate import damage_bytes
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
            fields.insert(at, fields[random.randrange(len(fields))])
        elif kind == 5:
            fields[at] = (random.choice([1, 2, 3, 4, 5, 7, 9, 20, 21, 25]), fields[at][1])
        else:
            random.shuffle(fields)
        if len(messages(tree)) > 400:
            break
    try:
        return write(tree)
    except RecursionError:  # a message within itself
        return data[:random.randrange(len(data))]
