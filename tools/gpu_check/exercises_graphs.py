"""Graphs of the exercises: device and host, one launch and many, two devices and one."""


def model(name, states, ops, type_):
    gets = "\n".join(f"    %{state} = sluice.get @{state} : {of}" for state, of in states.items())
    declared = "\n".join(f'  sluice.state parameter @{state} : {of} = <"uniform", -1.0 : f64, 1.0 : f64>' for state, of in states.items())
    return f"""module @{name} {{
  sluice.model "{name}" format 2 phase "model"
{declared}
  sluice.graph [] () {{
{gets}
{ops}
    %sum = sluice.sum %y {{axes = array<i64: 0, 1>}} : ({type_}) -> tensor<f32>
    sluice.output "sum", %sum : tensor<f32>
  }}
}}
"""


def product(size):
    """The sum of the elements of a product of two square matrices, which stay on their device."""
    type_ = f"tensor<{size}x{size}xf32>"
    return model("product", {"a": type_, "b": type_}, f'    %y = sluice.einsum "ab,bc->ac" %a, %b : ({type_}, {type_}) -> {type_}', type_)


def two_products(size, second):
    """The sums of two products, one on the first device and the other on this one."""
    type_, lines = f"tensor<{size}x{size}xf32>", ['  sluice.device "cpu" = "cpu" 0']
    lines += [f'  sluice.device "acc{number}" = "cuda" {number}' for number in range(second + 1)]
    body = []
    for number, device in enumerate((0, second)):
        a, b, y, total = (f"{name}{number}" for name in ("a", "b", "y", "sum"))
        for state in (a, b):
            lines.append(f'  sluice.state parameter @{state} : {type_} = <"uniform", -1.0 : f64, 1.0 : f64> '
                         f'physical tensor<{size}x{size}xf32, #sluice.at<device = "acc{device}">>')
            body.append(f"    %{state} = sluice.get @{state} : {type_}")
        body += [f'    %{y} = sluice.einsum "ab,bc->ac" %{a}, %{b} {{sluice.pin = "acc{device}"}} : ({type_}, {type_}) -> {type_}',
                 f'    %{total} = sluice.sum %{y} {{axes = array<i64: 0, 1>, sluice.pin = "acc{device}"}} : ({type_}) -> tensor<f32>',
                 f'    sluice.output "{total}", %{total} : tensor<f32>']
    return "\n".join(['module @two_products {', '  sluice.model "two_products" format 2 phase "model"', *lines, "  sluice.graph [] () {", *body, "  }", "}", ""])


def chain(ops):
    """A chain of cheap operations on a matrix of 256 KiB."""
    type_ = "tensor<256x256xf32>"
    names = ["a", *(f"x{i}" for i in range(ops - 1)), "y"]
    lines = (f"    %{to} = sluice.tanh %{of} : ({type_}) -> {type_}" for of, to in zip(names, names[1:]))
    return model("chain", {"a": type_}, "\n".join(lines), type_)
