"""Writes ONNX files, field by field."""

import struct

FLOAT, INT, STRING, TENSOR, GRAPH, INTS, STRINGS = 1, 2, 3, 4, 5, 7, 8


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
    if isinstance(value, tuple) and isinstance(value[0], bytes):
        return [(1, name.encode()), (20, STRINGS)] + [(9, each) for each in value]
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


def model(*parts, opset=17, functions=(), domain="", version=1):
    """Nodes of another domain than ONNX's have a field 7 with its name."""
    return write([(1, 8), (2, b"tests"), (7, graph(*parts)), (8, [(1, b""), (2, opset)]),
                  *([(8, [(1, domain.encode()), (2, version)])] if domain else []),
                  *[(25, function) for function in functions], *[(8, [(1, b"own"), (2, 1)]) for _ in functions]])


def of_domain(domain, op, inputs, outputs, **attributes):
    return node(op, inputs, outputs, **attributes) + [(7, domain.encode())]


def function(name, inputs, outputs, nodes, attributes=()):
    return ([(1, name.encode())] + [(4, each.encode()) for each in inputs] + [(5, each.encode()) for each in outputs] +
            [(6, each.encode()) for each in attributes] + [(7, each) for each in nodes] + [(9, [(1, b""), (2, 17)])] +
            [(10, b"own")])


def call(name, inputs, outputs, **attributes):
    return of_domain("own", name, inputs, outputs, **attributes)


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
