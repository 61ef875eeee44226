"""Compares results and gradients of ops at singular and other special points with PyTorch and with the op reference.

The op reference includes the table tools/reference/special_points.json. To write this table, run
`torch_test.py SOURCE_ROOT BUILD_ROOT special --write`. For f16 and bf16, PyTorch computes in f32 from operands rounded
to the type, and the result is rounded to the type: few PyTorch ops support these types on a CPU. In expressions of several
PyTorch ops, `R` rounds the result of an op, and its gradient, to the type."""

import json
import os

import torch
import torch.nn.functional as F

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
TOLERANCE = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
NAN = "only at NaN, where the result is NaN in any case"
LATER = "later versions of PyTorch have this gradient where the pieces meet"
REASONS = {  # reasons for differences from PyTorch
    "relu(x)": NAN, "elu(x)": NAN, "hardsigmoid(x)": NAN, "maximum(x, w)": NAN, "minimum(x, w)": NAN,
    "hardswish(x)": f"{LATER}; {NAN}",
    "clamp(x, -1, 1)": LATER,
    "pow(x, 0.5)": "the power of -inf is inf, as C has it; PyTorch takes the square root",
    "smooth_l1_loss(x, w, Reduction::none, 0)": "the gradient of l1_loss, which is 0 at 0 in PyTorch, too",
    "interpolate_to(x, 6, {.mode = Interpolation::bilinear})": "an element of weight 0 is not read; PyTorch multiplies it by 0",
}
SHOWN = 16  # elements; the table shows the sum of more


def expected(point, dtype):
    """Returns PyTorch's result and gradients by name."""
    rounded, wide = TYPES[dtype], torch.float64 if dtype == "f64" else torch.float32
    operands = {}
    for name in ("x", "w"):
        if name in point:
            values = torch.tensor([float(text) for text in point[name]], dtype=torch.float64)
            operands[name] = values.to(rounded).to(wide)
    if point["shape"]:
        operands["x"] = operands["x"].reshape(point["shape"])
    for operand in operands.values():
        operand.requires_grad_()
    names = {"torch": torch, "F": F, "R": lambda value: value.to(rounded).to(wide), **operands}
    y = eval(point["torch"], names)  # the expression comes from the test itself
    gradients = torch.autograd.grad(y.sum(), list(operands.values()), allow_unused=True)
    answers = {"y": y} | {f"d{name}": gradient for name, gradient in zip(operands, gradients)}
    return {name: (torch.zeros(operands[name[1:]].shape) if value is None else value).detach().to(rounded).double().flatten()
            for name, value in answers.items()}


def shown(values):
    """Formats each value with four digits; for many values, formats their sum."""
    numbers = [float(value) + 0.0 for value in values]  # removes the sign of zero
    if len(numbers) > SHOWN:
        return f"sum {sum(numbers):.3g}"
    return " ".join(f"{number:.4g}" for number in numbers)


def near(ours, theirs, tolerance):
    """Returns whether all elements are close, or the same infinity or NaN. In f16 and bf16, sums of about 1 cancel."""
    if ours.shape != theirs.shape:
        return False
    least = tolerance / 4 if tolerance >= TOLERANCE["f16"] else tolerance * 1e-3
    return bool(torch.isclose(ours, theirs, rtol=tolerance, atol=least, equal_nan=True).all())


def operand(texts):
    numbers = [f"{float(text):g}" for text in texts]
    return " ".join(numbers) if len(numbers) <= SHOWN else f"{len(numbers)} times {numbers[0]}"


def rows(case):
    """Yields each point as a row of the table in one dtype, with its errors."""
    dtype = case["dtype"]
    for point in case["points"]:
        row = {"op": point["op"], "x": operand(point["x"])} | ({"w": operand(point["w"])} if "w" in point else {})
        cells, other = {}, {}
        for name, theirs in expected(point, dtype).items():
            ours = torch.tensor([float(text) for text in point[name]], dtype=torch.float64)
            cells[name] = shown(ours)
            if not near(ours, theirs, TOLERANCE[dtype]):
                other[name] = shown(theirs)
        if other and point["op"] in REASONS:
            row["differs"] = REASONS[point["op"]]
        row[dtype] = cells | ({"PyTorch": other} if other else {})
        wrong = [f"{name} is {cells[name]}, and PyTorch's {theirs}" for name, theirs in other.items() if point["op"] not in REASONS]
        yield row, [f"{row['op']} at {row['x']} in {dtype}: {text}" for text in wrong]


def numbers(cell):
    return torch.tensor([float(text) for text in cell.removeprefix("sum ").split()], dtype=torch.float64)


def other_cells(row, stored, dtype):
    """Yields the cells that differ from the table. Their last digit may depend on the processor."""
    for name, cell in row[dtype].items():
        if name != "PyTorch" and not near(numbers(cell), numbers(stored[dtype].get(name, "")), max(2 * TOLERANCE[dtype], 1e-3)):
            yield f"{row['op']} at {row['x']} in {dtype}: {name} is {cell}, and in the table {stored[dtype].get(name)}"
    if row[dtype].get("PyTorch", {}).keys() != stored[dtype].get("PyTorch", {}).keys():
        yield f"{row['op']} at {row['x']} in {dtype}: the table names other differences from PyTorch"


def problems(cases, path):
    """Yields unexplained differences from PyTorch, reasons without a difference, and differences from the table."""
    with open(path, encoding="utf-8") as source:
        table = json.load(source)
    differing = set()
    for case in cases:
        if len(case["points"]) != len(table):
            yield f"there are {len(case['points'])} points, and {len(table)} in the table"
        for (row, wrong), stored in zip(rows(case), table):
            yield from wrong
            yield from other_cells(row, stored, case["dtype"])
            differing |= {row["op"]} if "PyTorch" in row[case["dtype"]] else set()
    for op in sorted(REASONS.keys() - differing):
        yield f"{op} is as in PyTorch, and has a reason why it is not"


def write(cases, path):
    """Writes the table, one line per row."""
    table = []
    for case in cases:
        for number, (row, _) in enumerate(rows(case)):
            if number == len(table):
                table.append({})
            table[number] |= row
    lines = ",\n".join(json.dumps(row) for row in table)
    with open(path, "w", encoding="utf-8") as out:
        print(f"[{lines}]", file=out)


def table_of(source):
    return os.path.join(source, "tools", "reference", "special_points.json")
