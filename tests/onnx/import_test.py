"""The command `sluice import`: errors, options, data beside the file, and the recognition of layers.

    import_test.py BUILD
"""

import os
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from onnx_files import call, floats, function, graph, integers, model, node, of_domain, tensor, value, write
from sanitized import is_sanitized

FLOAT = 1
failures = []


def expect(holds, what):
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


class Importer:
    def __init__(self, build, folder):
        self.tool, self.folder = os.path.join(build, "bin", "sluice"), folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as out:
            out.write(content)

    def run(self, content, *flags, name="m.onnx"):
        """The exit code, the text of the graph, and the error."""
        self.put(name, content)
        if os.path.exists(self.path("m.mlir")):
            os.remove(self.path("m.mlir"))
        done = subprocess.run([self.tool, "import", name, "-o", "m.mlir", *flags], cwd=self.folder, capture_output=True,
                              text=True, timeout=60, check=False)
        text = ""
        if os.path.exists(self.path("m.mlir")):
            with open(self.path("m.mlir"), encoding="utf-8") as lines:
                text = lines.read()
        expect(bool(text) == (done.returncode == 0), f"a graph is written if and only if there is no error: {done.stderr}")
        return done.returncode, text, done.stderr

    def refuses(self, content, code, *texts, flags=(), name="m.onnx"):
        status, _, error = self.run(content, *flags, name=name)
        expect(status == code, f"code {status} instead of {code}: {error}")
        for text in texts:
            expect(text in error, f"'{text}' is not in: {error}")

    def ops(self, content, *flags):
        """The names of the ops of the graph in their order, without constants and states."""
        status, text, error = self.run(content, *flags)
        expect(status == 0, f"code {status}: {error}")
        names = re.findall(r"sluice\.(\w+)", text[text.find("sluice.graph"):])
        return [name for name in names if name not in ("graph", "get", "full", "constant", "output")]


def unary(op, **attributes):
    return model([node(op, ["x"], ["y"], **attributes)], [], [value("x", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)])


# --- errors

def check_operators(tool):
    nodes = [node("Foo", ["x"], ["a"]), node("Foo", ["a"], ["b"]), node("Foo", ["x"], ["c"]),
             node("Clip", ["x", "x"], ["d"]), node("Bar", ["x"], ["e"])]
    outputs = [value(name, FLOAT, 2) for name in "bcde"]
    tool.refuses(model(nodes, [], [value("x", FLOAT, 2)], outputs), 4,
                 "m.onnx: 2 operators are not supported: Foo (2 nodes, first '/Foo/a', opset 17), "
                 "Bar (1 node, '/Bar/e', opset 17)")
    status, _, _ = tool.run(model(nodes, [], [value("x", FLOAT, 2)], outputs), "--outputs", "d")
    expect(status == 0, "nodes that no requested value needs are ignored")


def check_damaged_files(tool):
    tool.refuses(b"", 3, "the file has no graph")
    tool.refuses(b"\x3a\xff\xff\xff\xff\x7f", 3, "bytes")
    tool.refuses(b"\x00\x01", 3, "a field with the number 0")
    tool.refuses(b"\x3f", 3, "wire type 7")
    x, y = [value("x", FLOAT, 2)], [value("y", FLOAT, 2)]
    tool.refuses(model([node("Add", ["a", "x"], ["y"]), node("Neg", ["y"], ["a"])], [], x, y), 3, "the nodes form a cycle")
    tool.refuses(model([node("Add", ["nothing", "x"], ["y"])], [], x, y), 3, "nothing computes 'nothing'")
    tool.refuses(model([node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [], x, y), 3, "two nodes compute 'y'")
    short = tensor("w", FLOAT, [3], b"\0\0\0\0")
    tool.refuses(model([node("Add", ["x", "w"], ["y"])], [short], x, y), 3, "'w' has 4 bytes", "need 12")
    huge = tensor("w", FLOAT, [2**40, 2**40], b"")
    tool.refuses(model([node("Add", ["x", "w"], ["y"])], [huge], x, y), 3, "2^40")
    negative = tensor("w", FLOAT, [-1], b"")
    tool.refuses(model([node("Add", ["x", "w"], ["y"])], [negative], x, y), 3, "negative")
    sparse = write([(1, 8), (8, [(2, 17)]), (7, graph([node("Neg", ["x"], ["y"])], [], x, y) + [(15, [(1, floats("s", [1]))])])])
    tool.refuses(sparse, 3, "'s' is sparse")
    words = [(8, b"w"), (1, 1), (2, 8), (6, b"text")]
    tool.refuses(model([node("Add", ["x", "w"], ["y"])], [words], x, y), 3, "type string")
    nested = graph([node("Neg", ["x"], ["y"])], [], [], y)
    flat = nested
    for _ in range(60):
        nested = graph([node("If", ["p"], ["y"], then_branch=nested, else_branch=flat)], [], [], y)
    tool.refuses(model([node("If", ["p"], ["y"], then_branch=nested, else_branch=flat)], [], [*x, value("p", 9)], y), 3,
                 "within each other")


def check_dimensions(tool):
    content = model([node("Add", ["a", "b"], ["y"])], [],
                    [value("a", FLOAT, 1, "N", "T"), value("b", FLOAT, "N", "T")], [value("y", FLOAT, 1, "N", "T")])
    tool.refuses(content, 2, "these dimensions have no size: dimension 1 of 'a' ('N')", "--dim N=SIZE --dim T=SIZE")
    tool.refuses(content, 2, "has no dimension 'K'", flags=["--dim", "K=3"])
    tool.refuses(content, 2, "'0' is not a size", flags=["--dim", "T=0"])
    tool.refuses(content, 2, "has no input 'c' to bind", flags=["--bind", "c=1"])
    _, text, _ = tool.run(content, "--dim", "T=4", "--rows", "N")
    expect("tensor<1x?x4xf32>" in text and "tensor<?x4xf32>" in text, "--rows N makes N the batch of both inputs")
    _, text, _ = tool.run(content, "--dim", "T=4", "--dim", "a:1=5", "--dim", "b:0=5")
    expect("tensor<1x5x4xf32>" in text, "a dimension is named by its input and index")
    _, text, _ = tool.run(unary("Neg").replace(b"\x08\x02", b"\x08\x02"), "--rows", "none")
    expect("tensor<2x3xf32>" in text, "static shapes stay")


def check_outputs(tool):
    content = model([node("Neg", ["x"], ["logits"]), node("Exp", ["logits"], ["logit_2"]), node("Abs", ["x"], ["other"])], [],
                    [value("x", FLOAT, 2, 3)], [value("logits", FLOAT, 2, 3), value("other", FLOAT, 2, 3)])
    tool.refuses(content, 2, "m.onnx has no value 'logit'; did you mean 'logits' or 'logit_2'?", flags=["--outputs", "logit"])
    tool.refuses(content, 2, "m.onnx has no value 'nothing_like_it'; its outputs are logits, other",
                 flags=["--outputs", "logits,nothing_like_it"])
    expect(tool.ops(content, "--outputs", "logit_2") == ["neg", "exp"], "any value of the file can be returned")
    lost = model([node("Neg", ["x"], ["y"])], [], [value("x", FLOAT, 2, 3)], [value("z", FLOAT, 2, 3)])
    tool.refuses(lost, 3, "nothing computes 'z'")


def check_merged_rows(tool):
    content = model([node("Reshape", ["x", "s"], ["y"]), node("ReduceSum", ["x", "axes"], ["z"])],
                    [integers("s", -1, 2), integers("axes", 1)],
                    [value("x", FLOAT, "N", 4)], [value("y", FLOAT, "M", 2), value("z", FLOAT, "N", 1)])
    tool.refuses(content, 4, "m.onnx: the output 'y' of shape [N*2, 2] is not supported: its dimension 0 is a multiple of the "
                 "number of rows", "return another value with --outputs, or give the batch a size with --dim")
    tool.ops(content, "--outputs", "z")
    _, text, _ = tool.run(content, "--dim", "N=3", "--rows", "none")
    expect("tensor<6x2xf32>" in text, "with a size for the batch, the output is supported")


def check_locations(tool):
    _, text, _ = tool.run(unary("Neg"))
    for place in ('"m.onnx"', '"input \'x\'"', '"/Neg/y"', '"output \'y\'"'):
        expect(f"loc({place})" in text, f"{place} is a location of the graph")
    expect(".cpp" not in text, "no location is a line of the importer")


def check_other_commands(tool):
    tool.put("m.onnx", unary("Neg"))
    for command in ("verify", "place", "show"):
        done = subprocess.run([tool.tool, command, "m.onnx"], cwd=tool.folder, capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 2 and "it is an ONNX file; `sluice import m.onnx` makes a model of it" in done.stderr,
               f"{command}: code {done.returncode}: {done.stderr}")


def check_binding(tool):
    branch = [graph([node(op, ["x"], [op])], [], [], [value(op, FLOAT, 2, 3)]) for op in ("Neg", "Exp")]
    content = model([node("Equal", ["rate", "wanted"], ["p"]),
                     node("If", ["p"], ["y"], then_branch=branch[0], else_branch=branch[1])],
                    [integers("wanted", 16000, scalar=True)],
                    [value("x", FLOAT, 2, 3), value("rate", 7)], [value("y", FLOAT, 2, 3)])
    expect(tool.ops(content, "--bind", "rate=16000") == ["neg"], "a bound input decides a branch")
    expect(tool.ops(content, "--bind", "rate=8000") == ["exp"], "a bound input decides a branch")
    expect("if" in tool.ops(content), "a branch on data remains")


# --- external data

def check_external_data(tool):
    def content(location, **more):
        entries = [(13, [(1, b"location"), (2, location.encode())])]
        entries += [(13, [(1, key.encode()), (2, str(number).encode())]) for key, number in more.items()]
        weight = [(8, b"w"), (1, 2), (1, 3), (2, FLOAT), (14, 1), *entries]
        return model([node("Add", ["x", "w"], ["y"])], [weight], [value("x", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)])

    data = bytes(range(24))
    tool.put("in/w.bin", b"\0" * 8 + data)
    tool.put("secret.bin", data)
    status, _, error = tool.run(content("w.bin", offset=8, length=24), name="in/m.onnx")
    expect(status == 0, f"external data: {error}")
    with open(tool.path("m.mlir.safetensors"), "rb") as file:
        expect(data in file.read(), "the bytes of external data are in the data of the graph")
    tool.refuses(content("w.bin", offset=16), 3, "bytes 16 to 40", "which has 32", name="in/m.onnx")
    tool.refuses(content("w.bin", offset=2**64 - 1), 3, "18446744073709551615", name="in/m.onnx")
    tool.refuses(content("w.bin", length=4), 3, "has 4 bytes", name="in/m.onnx")
    tool.refuses(content("../secret.bin"), 3, "not a path below the folder", name="in/m.onnx")
    tool.refuses(content(tool.path("secret.bin")), 3, "not a path below the folder", name="in/m.onnx")
    tool.refuses(content("none.bin"), 3, "cannot be opened", name="in/m.onnx")
    os.symlink("../secret.bin", tool.path("in/link.bin"))
    tool.refuses(content("link.bin"), 3, "symbolic link", "--data-dir", name="in/m.onnx")
    status, _, error = tool.run(content("link.bin"), "--data-dir", tool.folder, name="in/m.onnx")
    expect(status == 0, f"--data-dir permits links: {error}")


# --- stored data

def check_uniform_values(tool):
    content = model([node("ConstantOfShape", ["shape"], ["w"]), node("MatMul", ["x", "w"], ["y"])],
                    [integers("shape", 20000, 6000)], [value("x", FLOAT, 1, 20000)], [value("y", FLOAT, 1, 6000)])
    tool.ops(content)
    sizes = sum(os.path.getsize(tool.path(name)) for name in ("m.mlir", "m.mlir.safetensors") if os.path.exists(tool.path(name)))
    expect(sizes < 100_000, f"480 MB of equal elements are not stored: {sizes} bytes")


# --- recognition

def erf_gelu(root=1.4142135, half=0.5, x="x"):
    return model([node("Div", ["x", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["s"]),
                  node("Mul", [x, "s"], ["p"]), node("Mul", ["p", "half"], ["y"])],
                 [floats("root", [], root), floats("one", [], 1.0), floats("half", [], half)],
                 [value("x", FLOAT, 2, 3), value("z", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)])


def tanh_gelu(factor=0.044715):
    return model([node("Pow", ["x", "three"], ["c"]), node("Mul", ["c", "factor"], ["f"]), node("Add", ["x", "f"], ["i"]),
                  node("Mul", ["i", "root"], ["t"]), node("Tanh", ["t"], ["h"]), node("Add", ["one", "h"], ["s"]),
                  node("Mul", ["half", "x"], ["g"]), node("Mul", ["g", "s"], ["y"])],
                 [floats("three", [], 3.0), floats("factor", [], factor), floats("root", [], 0.7978846),
                  floats("one", [], 1.0), floats("half", [], 0.5)],
                 [value("x", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)])


def gate(*nodes):
    return model([*nodes], [floats("three", [], 3.0), floats("zero", [], 0.0), floats("six", [], 6.0)],
                 [value("x", FLOAT, 2, 3), value("z", FLOAT, 2, 3)], [value("y", FLOAT, 2, 3)])


def hard_swish(upper="six"):
    return gate(node("Add", ["x", "three"], ["s"]), node("Clip", ["s", "zero", upper], ["c"]),
                node("Mul", ["x", "c"], ["p"]), node("Div", ["p", "six"], ["y"]))


def layer_norm(axis=-1, squared="d"):
    return model([node("ReduceMean", ["x"], ["m"], axes=(-1,)), node("Sub", ["x", "m"], ["d"]),
                  node("Mul", ["d", squared], ["q"]), node("ReduceMean", ["q"], ["v"], axes=(axis,)),
                  node("Add", ["v", "eps"], ["a"]), node("Sqrt", ["a"], ["r"]), node("Div", ["d", "r"], ["n"]),
                  node("Mul", ["n", "w"], ["s"]), node("Add", ["s", "b"], ["y"])],
                 [floats("eps", [], 1e-5), floats("w", [4]), floats("b", [4])],
                 [value("x", FLOAT, "N", 4, 4)], [value("y", FLOAT, "N", 4, 4)])


def attention(axis=-1, mask=(1, 1, 5, 5)):
    return model([node("Transpose", ["k"], ["t"], perm=(0, 1, 3, 2)), node("MatMul", ["q", "t"], ["s"]),
                  node("Div", ["s", "root"], ["c"]), node("Add", ["c", "mask"], ["m"]),
                  node("Softmax", ["m"], ["p"], axis=axis), node("MatMul", ["p", "v"], ["y"])],
                 [floats("root", [], 2.0), floats("mask", list(mask))],
                 [value(name, FLOAT, "N", 2, 5, 5) for name in "qkv"], [value("y", FLOAT, "N", 2, 5, 5)])


def transposes(second):
    return model([node("Transpose", ["x"], ["t"], perm=(1, 2, 0)), node("Transpose", ["t"], ["u"], perm=second),
                  node("Neg", ["u"], ["y"])], [], [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 2, 3, 4)])


def convolution_norm(outputs=("y",), weight="w"):
    names = [floats(name, [3]) for name in ("scale", "shift", "mean")] + [floats("var", [3], 1.0, 2.0, 3.0)]
    return model([node("Conv", ["x", weight], ["c"]),
                  node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["y"])],
                 [floats("w", [3, 2, 1, 1]), *names],
                 [value("x", FLOAT, "N", 2, 4, 4), value("v", FLOAT, 3, 2, 1, 1)],
                 [value(name, FLOAT, "N", 3, 4, 4) for name in outputs])


def check_recognition(tool):
    """Each layer is recognized, and a near miss is not."""
    silu = gate(node("Sigmoid", ["x"], ["s"]), node("Mul", ["s", "x"], ["y"]))
    for name, content, misses in [
            ("gelu", erf_gelu(), [erf_gelu(root=1.5), erf_gelu(half=0.4), erf_gelu(x="z")]),
            ("gelu", tanh_gelu(), [tanh_gelu(factor=0.05)]),
            ("silu", silu, [gate(node("Sigmoid", ["z"], ["s"]), node("Mul", ["s", "x"], ["y"]))]),
            ("hardswish", hard_swish(), [hard_swish(upper="three")]),
            ("normalize", layer_norm(), [layer_norm(axis=-2), layer_norm(squared="x")]),
            ("scaled_dot_product_attention", attention(), [attention(axis=-2), attention(mask=(5, 1, 1, 5, 5))])]:
        ops = tool.ops(content)
        expect(name in ops, f"{name} is recognized in {ops}")
        expect(name not in tool.ops(content, "--no-recognize"), f"--no-recognize keeps the nodes of {name}")
        for miss in misses:
            status, text, _ = tool.run(miss)
            expect(status != 0 or f"sluice.{name} " not in text, f"a near miss is no {name}")
    expect(tool.ops(layer_norm()) == ["normalize"], "nothing remains of the nodes of a LayerNorm")
    folded = ["conv2d", "expand", "add"]
    expect(tool.ops(convolution_norm(), "--rows", "x:0") == folded, "the norm of a convolution is folded into its weights")
    for miss in (convolution_norm(outputs=("y", "c")), convolution_norm(weight="v")):
        expect("mul" in tool.ops(miss, "--rows", "x:0"), "the norm of a convolution that others read stays")
    expect(tool.ops(transposes((2, 0, 1))) == ["neg"], "transposes that cancel vanish")
    expect(tool.ops(transposes((1, 2, 0))) == ["transpose", "neg"], "two transposes become one")


# --- sizes that depend on rows, and loops

def check_rows(tool):
    x, zero, axis = [value("x", FLOAT, "N", 4, 6)], integers("zero", 0, scalar=True), integers("axis", 0)
    batch = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"], axis=0), node("Unsqueeze", ["b", "axis"], ["b1"])]
    view = [*batch, node("Concat", ["b1", "open"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"])]
    content = model(view, [zero, axis, integers("open", -1)], x, [value("y", FLOAT, "N", 24)])
    expect(tool.ops(content) == ["reshape"], "view(x.size(0), -1) is one reshape")
    token = floats("token", [1, 1, 6])
    expand = [*batch, node("Concat", ["b1", "open", "open"], ["asked"], axis=0),
              node("Equal", ["asked", "open"], ["keeps"]), node("Where", ["keeps", "one", "asked"], ["t"]),
              node("Expand", ["token", "t"], ["e"]), node("Concat", ["e", "x"], ["y"], axis=1)]
    content = model(expand, [zero, axis, integers("open", -1), integers("one", 1), token], x,
                    [value("y", FLOAT, "N", 5, 6)])
    expect(tool.ops(content) == ["expand", "concat"], "expand(x.size(0), -1, -1) is one expand")
    state = [*batch, node("Concat", ["one", "b1", "six"], ["t"], axis=0), node("ConstantOfShape", ["t"], ["z"]),
             node("Transpose", ["x"], ["xt"], perm=(1, 0, 2)), node("Add", ["xt", "z"], ["y"])]
    content = model(state, [zero, axis, integers("one", 1), integers("six", 6)], x, [value("y", FLOAT, 4, "N", 6)])
    _, text, error = tool.run(content)
    expect("tensor<1x?x6xf32>" in text, f"a state has the batch in its second dimension: {error}")
    undecided = [*batch, node("Less", ["b", "two"], ["p"]), node("Where", ["p", "two", "b"], ["k"]),
                 node("Unsqueeze", ["k", "axis"], ["t"]), node("Expand", ["token", "t"], ["y"])]
    content = model(undecided, [zero, axis, integers("two", 2, scalar=True), floats("token", [1])], x, [value("y", FLOAT, "K")])
    tool.refuses(content, 4, "Expand (1 node", "the shape must be known when the model is imported")
    split = model([node("Split", ["x"], ["y", "z"], axis=0)], [], x, [value("y", FLOAT, "K", 4, 6), value("z", FLOAT, "K", 4, 6)])
    tool.refuses(split, 4, "Split (1 node", "the batch cannot be split")


def check_loops(tool):
    def loop(trips, *condition):
        body = graph([node("Tanh", ["h"], ["h2"]), *condition], [], [value("i", 7), value("c", 9), value("h", FLOAT, 2)],
                     [value("c2", 9), value("h2", FLOAT, 2)])
        return model([node("Loop", ["trips" if trips else "", "", "x"], ["y"], body=body)],
                     [*([integers("trips", trips, scalar=True)] if trips else []), integers("three", 3, scalar=True)],
                     [value("x", FLOAT, 2)], [value("y", FLOAT, 2)])

    always = node("Identity", ["c"], ["c2"])
    expect(tool.ops(loop(3, always)) == ["tanh"] * 3, "a short loop is unrolled")
    expect("scan" in tool.ops(loop(30, always)), "a long loop is a scan")
    expect(tool.ops(loop(0, node("Less", ["i", "three"], ["c2"]))) == ["tanh"] * 4, "a known condition ends a loop")
    on_data = [node("ReduceMax", ["h2"], ["m"], keepdims=0), node("Cast", ["m"], ["c2"], to=9)]
    ops = tool.ops(loop(30, *on_data))
    expect("scan" in ops and "if" in ops, "a condition on data stops the rest of a scan")
    tool.refuses(loop(0, *on_data), 4, "the number of iterations has no bound")


# --- functions, limits and names

def check_functions(tool):
    transpose = node("Transpose", ["v"], ["o"]) + [(5, [(1, b"perm"), (20, 7), (21, b"p")])]
    inside = graph([transpose], [], [], [value("o", FLOAT)])
    chosen = node("If", ["yes"], ["o"], then_branch=inside, else_branch=inside)
    yes = node("Constant", [], ["yes"], value=tensor("", 9, [], b"\1"))
    content = model([call("F", ["x"], ["t"], p=(1, 0, 2)), call("G", ["t"], ["y"], p=(2, 1, 0))], [],
                    [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 4, 2, 3)],
                    functions=[function("F", ["v"], ["o"], [yes, chosen], ["p"]),
                               function("G", ["v"], ["o"], [transpose], ["p"])])
    _, text, error = tool.run(content)
    expect("tensor<4x2x3xf32>" in text, f"an attribute is that of its function's call: {error}")
    omitted = model([call("F", ["x"], ["y"])], [], [value("x", FLOAT, 2)], [value("y", FLOAT, 2)],
                    functions=[function("F", ["v", "w"], ["w"], [node("Neg", ["v"], ["n"])])])
    tool.refuses(omitted, 3, "a function call omits")
    passed = function("F", ["v"], ["v"], [])
    ofNothing = of_domain("ai.onnx.preview.training", "Gradient", ["x"], ["y"], xs=(b"x",), y=b"t")
    tool.refuses(model([call("F", [""], ["t"]), ofNothing], [], [value("x", FLOAT, 2)], [value("y", FLOAT, 2)],
                       functions=[passed], domain="ai.onnx.preview.training"), 4, "y is not computed")
    score = graph([call("F", [""], ["t"])], [], [value("s", FLOAT)], [value("t", FLOAT)])
    attention = of_domain("ai.onnx.preview", "FlexAttention", ["x", "x", "x"], ["y"], score_mod=score)
    tool.refuses(model([attention], [], [value("x", FLOAT, 1, 2, 3, 4)], [value("y", FLOAT, 1, 2, 3, 4)],
                       functions=[passed], domain="ai.onnx.preview"), 4, "score_mod has no result that is supported")
    twice = [function(f"F{i}", ["v"], ["o"], [call(f"F{i + 1}", ["v"], ["t"]), call(f"F{i + 1}", ["t"], ["o"])])
             for i in range(28)] + [function("F28", ["v"], ["o"], [node("Neg", ["v"], ["o"])])]
    tool.refuses(model([call("F0", ["x"], ["y"])], [], [value("x", FLOAT, 2)], [value("y", FLOAT, 2)], functions=twice), 3,
                 "m.onnx: node '/F0/y//F1/t//F2/t", "expand to more than 262144 nodes")


def check_limits(tool):
    x, y = [value("x", FLOAT, 2)], [value("y", FLOAT)]
    complex_tensor = [(8, b"w"), (1, 2), (2, 14), (7, 1), (7, 2)]
    tool.refuses(model([node("Add", ["x", "w"], ["y"])], [complex_tensor], x, y), 3, "complex64 are not numbers")
    repeated = model([node("ConstantOfShape", ["n"], ["s"]), node("Reshape", ["x", "s"], ["y"])], [integers("n", 2**39)], x, y)
    expect(tool.run(repeated)[0] in (3, 4), "a shape of 2^39 sizes is refused")
    chain = [node("Mul", ["x" if i == 0 else f"t{i}", "c"], [f"t{i + 1}" if i < 3999 else "y"]) for i in range(4000)]
    status, _, error = tool.run(model(chain, [floats("c", [], 1.0)], x, y))
    expect(status == 0, f"a chain of 4,000 products: {error}")
    parts = model([node("ConstantOfShape", ["n"], ["c"]), node("SplitToSequence", ["c"], ["q"]),
                   node("ConcatFromSequence", ["q"], ["y"], axis=0)], [integers("n", 2**24)], x, y)
    tool.refuses(parts, 4, "a sequence of more than 4096 elements is not supported")
    splits = [node("ConstantOfShape", ["n"], ["c"])]
    for i in range(60):
        splits += [node("SplitToSequence", ["c"], [f"q{i}"]), node("SequenceAt", [f"q{i}", "first"], [f"e{i}"])]
    splits.append(node("Concat", [f"e{i}" for i in range(60)], ["y"], axis=0))
    tool.refuses(model(splits, [integers("n", 4096), integers("first", 0, scalar=True)], x, y), 4,
                 "more than 64 MiB and 16 times the size of the file")
    grown = [node("SequenceConstruct", ["x"], ["q0"]),
             *(node("SequenceInsert", [f"q{i}", "x"], [f"q{i + 1}"]) for i in range(6000)),
             node("ConcatFromSequence", ["q6000"], ["y"], axis=0)]
    tool.refuses(model(grown, [], x, y), 4, "more than 64 MiB and 16 times the size of the file")
    step = graph([node("Identity", ["c"], ["c1"]), node("Neg", ["s"], ["s1"]), node("Identity", ["s"], ["each"])], [],
                 [value("i", 7), value("c", 9), value("s", FLOAT)], [value("c1", 9), value("s1", FLOAT), value("each", FLOAT)])
    stack = model([node("Loop", ["trips", "", "w"], ["l", "all"], body=step), node("Neg", ["all"], ["y"])],
                  [floats("w", [20000]), integers("trips", 60000, scalar=True)], x, y)
    tool.refuses(stack, 4, "more than 64 MiB and 16 times the size of the file")
    large = tensor("m", 7, [1, 1], (2**27 + 1).to_bytes(8, "little"))
    _, text, _ = tool.run(model([node("MatMul", ["m", "m"], ["p"]), node("Mul", ["p", "k"], ["y"])],
                                [large], [value("k", 7, 1)], [value("y", 7)]))
    expect("18014398777917440" not in text, "sums of more than 2^53 are not rounded")


def check_ranks(tool):
    """Numbers of a higher rank than the other operand change the rank of the result."""
    gelu = model([node("Div", ["x", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["s"]),
                  node("Mul", ["x", "s"], ["p"]), node("Mul", ["p", "half"], ["y"])],
                 [floats("root", [], 1.4142135), floats("one", [], 1.0), floats("half", [1, 1, 1, 1], 0.5)],
                 [value("x", FLOAT, 2, 3)], [value("y", FLOAT, 1, 1, 2, 3)])
    _, text, _ = tool.run(gelu)
    output = [line for line in text.splitlines() if 'sluice.output "y"' in line]
    expect(len(output) == 1 and "tensor<1x1x2x3xf32>" in output[0], f"a product has the higher rank: {output}")
    wide = model([node("MatMul", ["q", "t"], ["s"]), node("Add", ["s", "mask"], ["m"]), node("Softmax", ["m"], ["p"], axis=-1),
                  node("MatMul", ["p", "v"], ["y"])], [floats("mask", [2, 1, 4, 4])],
                 [value("q", FLOAT, 1, 1, 4, 8), value("t", FLOAT, 1, 1, 8, 4), value("v", FLOAT, 1, 1, 4, 8)],
                 [value("y", FLOAT, 2, 1, 4, 8)])
    expect("softmax" in tool.ops(wide), "a mask that widens the scores is no attention")


def check_absent_inputs(tool):
    for op in ("Mul", "Div", "Add", "MatMul", "Transpose", "BatchNormalization"):  # which have patterns
        for inputs in (["x", ""], ["", "x"], []):
            status, _, error = tool.run(model([node(op, inputs, ["y"])], [], [value("x", FLOAT, 2, 3, 4)], [value("y", FLOAT, 2, 3, 4)]))
            expect(status in (0, 3, 4), f"{op} of {inputs}: code {status}: {error}")


def check_names(tool):
    _, text, _ = tool.run(convolution_norm(), "--rows", "x:0")
    expect("parameter @w :" in text and "w_2" not in text, "folded weights keep the names of the file")
    numbered = model([node("Add", ["x", "w_2"], ["y"])], [floats("w_2", [3])], [value("x", FLOAT, 3)], [value("y", FLOAT, 3)])
    expect("parameter @w_2 :" in tool.run(numbered)[1], "a weight of the file with a number keeps it")


def main(build):
    with tempfile.TemporaryDirectory() as folder:
        tool = Importer(os.path.abspath(build), folder)
        for check in (check_operators, check_damaged_files, check_dimensions, check_outputs, check_merged_rows,
                      check_locations, check_other_commands, check_binding, check_external_data, check_uniform_values,
                      check_recognition, check_functions, check_limits, check_ranks, check_absent_inputs, check_names, check_rows,
                      check_loops):
            check(tool)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # all files are small
    expect(peak < 200 or is_sanitized(build), f"an import needed {peak:.0f} MB of memory")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
