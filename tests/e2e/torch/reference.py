"""Results and gradients of a model, computed by PyTorch in double precision with a function for each op of the IR."""

import math

import torch
import torch.nn.functional as F

DTYPES = {**dict.fromkeys(("f16", "bf16", "f32", "f64"), torch.float64), "i32": torch.int32, "i64": torch.int64, "ui8": torch.uint8,
          "i1": torch.bool}  # all floats in double: the comparison judges the models' own rounding


class Rounding(torch.autograd.Function):
    """A value whose gradient has a relative error of up to `epsilon` in each element."""

    @staticmethod
    def rounded(x, epsilon):
        error = x * (epsilon * (2 * torch.rand_like(x) - 1))  # x * (1 + 2^-53) would be x
        return torch.where(x.isinf(), x, x + error)

    @staticmethod
    def forward(ctx, x, epsilon):
        ctx.epsilon = epsilon
        return Rounding.rounded(x, epsilon)

    @staticmethod
    def backward(ctx, gradient):
        return Rounding.rounded(gradient, ctx.epsilon), None


class Steepened(torch.autograd.Function):
    """A value whose gradient has an error of one percent."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 1.01


def slice_(x, shape, start, end, step):
    for dim, (first, last, every) in enumerate(zip(start, end, step)):
        if shape[dim] >= 0:  # the whole batch is taken
            x = x[(slice(None),) * dim + (slice(first, last, every),)]
    return x


def pad(x, low, high, interior, value=0.0):
    assert not any(interior)
    return F.pad(x, [n for pair in reversed(list(zip(low, high))) for n in pair], value=value)


def expand(x, sizes, dims):
    shape = [1] * len(sizes)
    for dim, size in zip(dims, x.shape):
        shape[dim] = size
    return x.reshape(shape).expand(sizes)


def gather(x, index, axis):
    """PyTorch's index_select takes a one-dimensional index."""
    return x.index_select(axis, index.flatten()).reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])


def cumsum(x, axis, exclusive=False, reverse=False):
    y = x.flip(axis) if reverse else x
    y = F.pad(y.movedim(axis, -1), (1, -1)).movedim(-1, axis).cumsum(axis) if exclusive else y.cumsum(axis)
    return y.flip(axis) if reverse else y


def conv2d(x, weight, padding, **options):
    top, left, bottom, right = padding
    return F.conv2d(F.pad(x, (left, right, top, bottom)), weight, **options)


def conv2d_input_grad(x, weight, size, stride, padding, dilation, groups):
    """The transposed convolution. PyTorch derives the result's size from the padding added to the minimum."""
    assert padding[:2] == padding[2:]
    least = [(n - 1) * s - 2 * p + d * (k - 1) + 1
             for n, s, p, d, k in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:])]
    return F.conv_transpose2d(x, weight, None, stride, padding[:2], [n - m for n, m in zip(size, least)], groups, dilation)


def normalize(x, weight, bias, axis, dims, eps, rms=False):
    """PyTorch 1.13 has no rms_norm."""
    over = tuple(range(axis, x.dim()))
    y = x * (x.square().mean(over, keepdim=True) + eps).rsqrt() if rms else F.layer_norm(x, x.shape[axis:], eps=eps)
    return y * expand(weight, x.shape, dims) + expand(bias, x.shape, dims)


def prod(x, axes, keepdims=False):
    """PyTorch's function takes one dimension."""
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdims)
    return x


def iota(sizes, dtype, start, step, axis):
    counted = (start + step * torch.arange(sizes[axis], dtype=torch.float64)).to(dtype)
    return expand(counted, sizes, [axis])


def max_pool2d(x, kernel, stride, padding, dilation, ceil_mode=False):
    assert padding[:2] == padding[2:]
    return F.max_pool2d(x, kernel, stride, padding[:2], dilation, ceil_mode), None


def avg_pool2d(x, kernel, stride, padding, ceil_mode=False, count_include_pad=False):
    assert padding[:2] == padding[2:]
    return F.avg_pool2d(x, kernel, stride, padding[:2], ceil_mode, count_include_pad)


def softmax_cross_entropy(x, label, axis=1):
    """A label outside the classes selects 0."""
    label = label.long().unsqueeze(axis)
    is_class = (label >= 0) & (label < x.shape[axis])
    picked = torch.where(is_class, x.gather(axis, label.clamp(0, x.shape[axis] - 1)), 0)
    return x.logsumexp(axis) - picked.squeeze(axis)


def compare(a, b, predicate):
    return getattr(torch, predicate.rstrip(">").rpartition(" ")[2])(a, b)  # "#sluice<predicate lt>"


def clip(x, min=-math.inf, max=math.inf):
    """With the gradient of PyTorch 2.15's clamp, 0 at the bounds; PyTorch 1.13's is 1 there."""
    return torch.where((x > min) & (x < max), x, x.detach().clamp(min, max))


def divide(a, b):
    return a / b if a.dtype.is_floating_point else torch.div(a, b, rounding_mode="trunc")


def remainder(a, b):
    return a.remainder(b) if a.dtype.is_floating_point else torch.where(b == 0, a, a.remainder(torch.where(b == 0, 1, b)))


def named(module, *names):
    return {name: getattr(module, name) for name in names}


OPS = {
    **named(torch, "neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "square", "sin", "cos",
            "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "tanh",
            "sigmoid", "erf", "relu", "sign", "floor", "ceil", "round", "add", "sub", "mul", "pow", "where", "isnan",
            "isinf"),
    # PyTorch's own hardsigmoid and hardswish divide by 6 in single precision, even in gradients of doubles.
    "silu": F.silu, "hardsigmoid": lambda x: F.relu6(x + 3) / 6, "hardswish": lambda x: x * F.relu6(x + 3) / 6,
    "softplus": lambda x: F.softplus(x, threshold=40), "div": divide, "remainder": remainder, "max": torch.maximum, "min": torch.minimum,
    "gelu": lambda x, tanh=False: F.gelu(x, approximate="tanh" if tanh else "none"),
    "leaky_relu": lambda x, alpha=0.01: F.leaky_relu(x, alpha), "elu": lambda x, alpha=1.0: F.elu(x, alpha),
    "clip": clip, "relu6": F.relu6, "identity": lambda x: x, "stop_gradient": torch.Tensor.detach, "compare": compare,
    "not": torch.bitwise_not, "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift,
    "sum": lambda x, axes, keepdims=False: x.sum(axes, keepdims) if axes else x,
    "mean": lambda x, axes, keepdims=False: x.mean(axes, keepdims) if axes else x,
    "reduce_max": lambda x, axes, keepdims=False: x.amax(axes, keepdims),
    "reduce_min": lambda x, axes, keepdims=False: x.amin(axes, keepdims),
    "argmax": lambda x, axis: x.argmax(axis), "softmax": lambda x, axis: x.softmax(axis),
    "log_softmax": lambda x, axis: x.log_softmax(axis),
    "softmax_cross_entropy": softmax_cross_entropy,
    "soft_cross_entropy": lambda x, target, axis=1: -(target * x.log_softmax(axis)).sum(axis),
    "ignore_index": lambda a, size, ignored: torch.where(a == ignored, -1, a),
    "transpose": lambda x, permutation: x.permute(permutation), "concat": lambda *xs, axis: torch.cat(xs, axis),
    "pad": pad, "gather": gather, "conv2d": conv2d, "max_pool2d": max_pool2d, "avg_pool2d": avg_pool2d, 
    "cumsum": cumsum, "take_along": lambda x, index, axis: x.gather(axis, index.long()),
    "conv2d_input_grad": conv2d_input_grad, "normalize": normalize, "prod": prod,
    "einsum": lambda a, b, equation: torch.einsum(equation, a, b),
}

# Ops that select or move without rounding: ties remain ties.
EXACT = {"abs", "argmax", "cast", "ceil", "clip", "compare", "concat", "expand", "floor", "gather", "identity", "ignore_index", "max",
         "max_pool2d", "min", "neg", "pad", "reduce_max", "reduce_min", "relu", "relu6", "reshape", "round", "set", "sign", "slice",
         "stop_gradient", "take_along", "transpose", "where"}


class Reference:
    """One call of a model on `rows` rows, with states and inputs by name. With `epsilon`, computing ops receive
    operands with errors, as if from their sums, and round their results and gradients. The movement of the
    results bounds the effect of rounding. `wrong` is the number of an op with an injected gradient error."""

    def __init__(self, model, rows, states, inputs, training, epsilon=0.0, wrong=None):
        self.rows, self.states, self.training, self.epsilon = rows, states, training, epsilon
        self.wrong = None if wrong is None else model["ops"][wrong]
        self.values, self.outputs, self.after = {}, {}, {}
        self.parameters = {name: states[name].requires_grad_() for name in model["parameters"]}
        for name, described in model["inputs"].items():
            self.values[described["value"]] = inputs[name]
        for op in model["ops"]:
            self.run(op)

    def gradients(self):
        """For all parameters that the loss depends on."""
        found = torch.autograd.grad(self.loss, list(self.parameters.values()), allow_unused=True)
        return {name: gradient for name, gradient in zip(self.parameters, found) if gradient is not None}

    def rounded(self, value):
        return Rounding.apply(value, self.epsilon) if value is not None and value.dtype.is_floating_point else value

    def run(self, op):
        operands = [self.values[number] for number in op["operands"]]
        rounds = self.epsilon and op["op"] not in EXACT
        results = self.evaluate(op, list(map(self.rounded, operands)) if rounds else operands)
        results = results if isinstance(results, tuple) else (results,)
        for number, type_, result in zip(op["results"], op["types"], results):
            assert result is None or list(result.shape) == self.sizes(type_["shape"]), f"{op['op']} gives {result.shape}"
            result = self.rounded(result) if rounds else result
            self.values[number] = Steepened.apply(result) if op is self.wrong and result is not None else result

    def sizes(self, shape):
        return [self.rows if size < 0 else size for size in shape]

    def evaluate(self, op, operands):
        name, attributes = op["op"], op["attributes"]
        if name == "get":
            return self.states[attributes["state"]]
        if name in ("output", "metric"):
            return self.outputs.update({attributes["name"]: operands[0]})
        if name == "set":
            return self.after.update({attributes["state"]: operands[0]} if self.training else {})
        if name == "minimize":
            self.loss = self.outputs["loss"] = operands[0]
            return None
        if name == "batch_norm":
            return self.batch_norm(op, *operands, **attributes)
        type_ = op["types"][0]
        dtype, sizes = DTYPES[type_["dtype"]], self.sizes(type_["shape"])
        if name == "full":
            return torch.full(sizes, float(attributes["value"]), dtype=dtype)
        if name == "iota":
            return iota(sizes, dtype, attributes["start"], attributes["step"], attributes["axis"])
        if name == "cast":
            return operands[0].to(dtype)
        if name == "reshape":
            return operands[0].reshape(sizes)
        if name == "expand":
            return expand(operands[0], sizes, attributes["dims"])
        if name == "one_hot":
            return (operands[0].unsqueeze(-1) == torch.arange(attributes["classes"])).to(dtype)
        if name == "slice":
            return slice_(operands[0], type_["shape"], **attributes)
        return OPS[name](*operands, **attributes)

    def batch_norm(self, op, x, weight, bias, mean, variance, eps=1e-5, momentum=0.1, training=False):
        mean, variance = mean.detach().clone(), variance.detach().clone()
        y = F.batch_norm(x, mean, variance, weight, bias, training or self.training, momentum, eps)
        if self.epsilon and (training or self.training):
            y = self.normalized(x, eps) * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)
        return y, mean, variance

    def normalized(self, x, eps):
        """With the batch's mean and variance rounded for the gradient. The gradient of the variance sums deviations
        from the mean; these sum to 0 for the exact mean, but not for the rounded mean. All elements of a channel
        have the same error, relative to the deviation as for the mean."""
        mean = self.rounded(x.mean((0, 2, 3), keepdim=True))
        variance = self.rounded((x - mean.detach()).square().mean((0, 2, 3), keepdim=True))
        return (x - mean) * (variance + eps).rsqrt()
