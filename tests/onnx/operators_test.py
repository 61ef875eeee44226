"""Operators beside PyTorch, in forms that ONNX's own tests lack: a batch whose size is unknown, a batch that is merged
with another dimension, larger windows, and volumes.

    operators_test.py SOURCE_ROOT BUILD_ROOT

Numbers are small integers where the result is then exact. Each case is a folder as those of ONNX's tests, and one
process of onnx_node_test runs all of them.
"""

import os
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path += [os.path.join(SOURCE, "tests"), os.path.dirname(os.path.abspath(__file__))]
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import torch  # noqa: E402: of the environment entered above
from torch.nn import functional as F  # noqa: E402

from onnx_files import call, function, graph, model, node, of_domain, tensor, value, write  # noqa: E402

KINDS = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int32: 6, torch.int64: 7}
torch.manual_seed(1)


def whole(*shape):
    """Small integers as floats, none of them 0."""
    return torch.randint(1, 5, shape).float() * (torch.randint(0, 2, shape) * 2 - 1)


def array(name, values):
    return tensor(name, KINDS[values.dtype], list(values.shape), values.contiguous().numpy().tobytes())


class Cases:
    def __init__(self, folder):
        self.folder, self.names = folder, []

    def put(self, name, nodes, inputs, weights, outputs, opset=17, rows=True, domain="", version=1,
            functions=()):
        """The first dimension of all inputs is the batch, unless `rows` is false. `domain`: of some nodes."""
        self.names.append(name)
        data = os.path.join(self.folder, "node", name, "test_data_set_0")
        os.makedirs(data)
        infos = [value(key, KINDS[x.dtype], *(["batch"] if rows else [x.shape[0]]), *x.shape[1:])
                 for key, x in inputs.items()]
        results = [value(key, KINDS[y.dtype]) for key, y in outputs.items()]
        with open(os.path.join(data, "..", "model.onnx"), "wb") as out:
            out.write(model(nodes, [array(key, w) for key, w in weights.items()], infos, results, opset=opset,
                            domain=domain, version=version, functions=functions))
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for number, (key, x) in enumerate(tensors.items()):
                with open(os.path.join(data, f"{kind}_{number}.pb"), "wb") as out:
                    out.write(write(array(key, x)))

    def one(self, name, op, inputs, weights, y, names=None, opset=17, rows=True, **attributes):
        """A case of one node with the output y."""
        names = names or [*inputs, *weights]
        self.put(name, [node(op, names, ["y"], **attributes)], inputs, weights, {"y": y}, opset, rows)

    def merged(self, name, op, x, weights, y, opset=17, **attributes):
        """A node whose input is x [N, T, ...] as [N * T, ...]."""
        shapes = {"before": torch.tensor([-1, *x.shape[2:]]), "after": torch.tensor([-1, x.shape[1], *y.shape[1:]])}
        nodes = [node("Reshape", ["x", "before"], ["z"]), node(op, ["z", *weights], ["v"], **attributes),
                 node("Reshape", ["v", "after"], ["y"])]
        self.put(name, nodes, {"x": x}, {**weights, **shapes}, {"y": y.reshape(*x.shape[:2], *y.shape[1:])}, opset)


def products(cases):
    a, b, c = whole(3, 4, 5), whole(3, 5, 6), whole(6, 7)
    cases.one("einsum_of_three", "Einsum", {"a": a, "b": b}, {"c": c}, torch.einsum("nij,njk,kl->nil", a, b, c),
              equation=b"nij, njk, kl -> nil")
    x = whole(3, 4, 4)
    cases.one("einsum_trace", "Einsum", {"x": x}, {}, x.diagonal(dim1=1, dim2=2).sum(1), equation=b"nii->n")
    x, z, w = whole(4, 6), whole(4, 5), whole(6, 1)
    cases.one("gemm_over_rows", "Gemm", {"x": x, "z": z}, {"w": w}, 2 * x.T @ z + w, transA=1, alpha=2.0)
    x, w = torch.randint(-2**20, 2**20, (3, 4, 5)), torch.randint(-2**20, 2**20, (5, 2))
    cases.one("matmul_integers", "MatMul", {"x": x}, {"w": w}, x @ w)


def convolutions(cases):
    x, w, b = whole(3, 4, 20), whole(6, 2, 3), whole(6)
    cases.one("conv_line", "Conv", {"x": x}, {"w": w, "b": b}, F.conv1d(F.pad(x, (2, 1)), w, b, 2, 0, 2, 2),
              pads=(2, 1), strides=(2,), dilations=(2,), group=2)
    x, w = whole(3, 4, 20, 18), whole(6, 4, 4, 3)
    for name, pads in (("SAME_UPPER", (0, 1, 1, 1)), ("SAME_LOWER", (1, 0, 1, 1))):
        cases.one(f"conv_{name}", "Conv", {"x": x}, {"w": w}, F.conv2d(F.pad(x, pads), w, None, (3, 2)),
                  auto_pad=name.encode(), strides=(3, 2))
    x, w, b = whole(3, 5, 4, 8, 8), whole(6, 4, 3, 3), whole(6)
    cases.merged("conv_merged", "Conv", x, {"w": w, "b": b}, F.conv2d(x.flatten(0, 1), w, b, 1, 1), pads=(1, 1, 1, 1))
    w = whole(4, 1, 3, 3)
    cases.merged("conv_merged_depthwise", "Conv", x, {"w": w}, F.conv2d(x.flatten(0, 1), w, None, 1, 0, 1, 4), group=4)
    w, b = whole(4, 6, 2, 2), whole(6)
    cases.merged("transposed_merged", "ConvTranspose", x, {"w": w, "b": b},
                 F.conv_transpose2d(x.flatten(0, 1), w, b, 2), strides=(2, 2))
    x, w, b = whole(2, 4, 7, 8, 9), whole(6, 2, 3, 2, 3), whole(6)
    padded = F.pad(x, (1, 1, 0, 2, 1, 1))
    for rows in (True, False):
        cases.one(f"conv_volume_{rows}", "Conv", {"x": x}, {"w": w, "b": b}, rows=rows, group=2, pads=(1, 0, 1, 1, 2, 1),
                  strides=(2, 1, 2), dilations=(2, 1, 1), y=F.conv3d(padded, w, b, (2, 1, 2), 0, (2, 1, 1), 2))
    w = whole(4, 3, 3, 3, 2)
    y = F.conv_transpose3d(x, w, None, (2, 2, 3), (1, 1, 0), (1, 1, 0), 2)
    cases.one("transposed_volume", "ConvTranspose", {"x": x}, {"w": w}, y, strides=(2, 2, 3), pads=(1, 1, 0, 1, 1, 0),
              output_padding=(1, 1, 0), group=2)
    x, w = whole(3, 4, 9, 8), whole(4, 5, 4, 3)
    full = F.conv_transpose2d(x, w, None, (2, 3))
    cases.one("transposed_to_size", "ConvTranspose", {"x": x}, {"w": w}, full[:, :, 2:19, 1:23],
              strides=(2, 3), output_shape=(17, 22))
    x = whole(2, 12, 4 * 6)
    cases.one("columns_of_image", "Col2Im", {"x": x}, {"i": torch.tensor([9, 12]), "k": torch.tensor([2, 3])}, opset=18,
              y=F.fold(x, (9, 12), (2, 3), (1, 1), (0, 1), (2, 2)), strides=(2, 2), pads=(0, 1, 0, 1))


def pools(cases):
    x = whole(3, 2, 30, 30) + torch.rand(3, 2, 30, 30)
    wide = F.pad(x, (6, 10, 10, 6), value=-1e9)
    cases.one("max_of_large_windows", "MaxPool", {"x": x}, {}, F.max_pool2d(wide, (21, 17), (1, 2)),
              kernel_shape=(21, 17), strides=(1, 2), pads=(10, 6, 6, 10))
    x = torch.rand(3, 4, 9, 11, 8)
    cases.one("max_of_volumes", "MaxPool", {"x": x}, {}, F.max_pool3d(x, (2, 3, 3), 2, 1, (1, 2, 1), True),
              kernel_shape=(2, 3, 3), strides=(2, 2, 2), pads=(1, 1, 1, 1, 1, 1), dilations=(1, 2, 1), ceil_mode=1)
    cases.one("mean_of_volumes", "AveragePool", {"x": x}, {}, F.avg_pool3d(x, (3, 3, 2), 2, 1, True, False),
              kernel_shape=(3, 3, 2), strides=(2, 2, 2), pads=(1, 1, 1, 1, 1, 1), ceil_mode=1)
    x = torch.rand(3, 2, 21, 18)
    parts = F.unfold(F.pad(x, (1, 2, 1, 2)), (4, 3), (2, 3), 0, (3, 2)).reshape(3, 2, 12, 6, 8)
    cases.one("mean_of_dilated_windows", "AveragePool", {"x": x}, {}, parts.mean(2), opset=22, kernel_shape=(4, 3),
              strides=(3, 2), dilations=(2, 3), pads=(1, 1, 2, 2), count_include_pad=1)
    cases.one("norm_of_dilated_windows", "LpPool", {"x": x}, {}, (parts**3).sum(2)**(1 / 3), opset=18,
              kernel_shape=(4, 3), strides=(3, 2), dilations=(2, 3), pads=(1, 1, 2, 2), p=3)
    x = torch.rand(2, 3, 9, 8)
    y, index = F.max_pool2d(x, (3, 2), (2, 1), return_indices=True)
    index = index + 72 * torch.arange(6).reshape(2, 3, 1, 1)
    cases.put("indices_of_maxima", [node("MaxPool", ["x"], ["y", "i"], kernel_shape=(3, 2), strides=(2, 1))], {"x": x}, {},
              {"y": y, "i": index}, rows=False)
    x = torch.rand(2, 3, 9, 7)
    y, index = F.max_pool2d(x, 3, 2, return_indices=True)
    planes = torch.zeros(2, 3, 63).scatter(2, index.flatten(2), y.flatten(2))
    cases.one("unpool_overlapping", "MaxUnpool", {"x": y, "i": index + 63 * torch.arange(6).reshape(2, 3, 1, 1)}, {},
              planes.reshape(x.shape), kernel_shape=(3, 3), strides=(2, 2))


def norms(cases):
    x, w, b = torch.rand(3, 5, 4, 8, 8), torch.rand(4), torch.rand(4)
    flat_x = x.flatten(0, 1)
    cases.merged("instance_norm_merged", "InstanceNormalization", x, {"w": w, "b": b}, F.instance_norm(flat_x, None, None, w, b))
    cases.merged("group_norm_merged", "GroupNormalization", x, {"w": w, "b": b}, F.group_norm(flat_x, 2, w, b), opset=21,
                 num_groups=2)
    x, m, v = torch.rand(5, 4, 6), torch.rand(4), torch.rand(4) + 1
    cases.put("batch_norm", [node("BatchNormalization", ["x", "w", "b", "m", "v"], ["y"], epsilon=1e-3)], {"x": x},
              {"w": w, "b": b, "m": m, "v": v}, {"y": F.batch_norm(x, m, v, w, b, eps=1e-3)})
    cases.put("batch_norm_in_training",
              [node("BatchNormalization", ["x", "w", "b", "m", "v"], ["y", "rm", "rv"], training_mode=1, momentum=0.75)],
              {"x": x}, {"w": w, "b": b, "m": m, "v": v},
              {"y": F.batch_norm(x, None, None, w, b, True), "rm": 0.75 * m + 0.25 * x.mean((0, 2)),
               "rv": 0.75 * v + 0.25 * x.var((0, 2), unbiased=False)})
    x = torch.rand(3, 7, 4, 3)
    sums = F.pad(x**2, (0, 0, 0, 0, 1, 2)).unfold(1, 4, 1).sum(-1)
    cases.one("response_norm_of_even_size", "LRN", {"x": x}, {}, x / (1.5 + 0.125 * sums)**0.5, size=4, alpha=0.5,
              beta=0.5, bias=1.5)
    x = torch.rand(3, 4, 5, 6)
    cases.one("softmax_flattened", "Softmax", {"x": x}, {}, x.flatten(2).softmax(2).reshape(x.shape), opset=11, axis=2)


def images(cases):
    x, scales = whole(3, 5, 4, 3, 2), torch.tensor([1.0, 1.0, 2.0, 3.0])
    nodes = [node("Reshape", ["x", "before"], ["z"]),
             node("Resize", ["z", "", "s"], ["v"], nearest_mode=b"floor", coordinate_transformation_mode=b"asymmetric"),
             node("Reshape", ["v", "after"], ["y"])]
    cases.put("resize_merged", nodes, {"x": x},
              {"s": scales, "before": torch.tensor([-1, 4, 3, 2]), "after": torch.tensor([-1, 5, 4, 6, 6])},
              {"y": F.interpolate(x.flatten(0, 1), scale_factor=(2, 3)).reshape(3, 5, 4, 6, 6)})
    x = torch.rand(3, 2, 5, 6)
    for mode in ("linear", "cubic"):
        for corners, transform in ((False, b"half_pixel"), (True, b"align_corners")):
            y = F.interpolate(x, (13, 7), mode="bi" + mode, align_corners=corners)
            cases.one(f"resize_{mode}_{transform.decode()}", "Resize", {"x": x}, {"z": torch.tensor([13, 7])}, y,
                      ["x", "", "", "z"], opset=18, mode=mode.encode(), axes=(2, 3),
                      coordinate_transformation_mode=transform)
    x = whole(3, 2, 3, 3)
    x[0, 0, 1, 1] = float("inf")
    y = F.interpolate(x, (5, 5), mode="bilinear", align_corners=True)
    alone = F.interpolate(torch.where(x.isinf(), torch.zeros(()), x), (5, 5), mode="bilinear", align_corners=True)
    weights = F.interpolate(x.isinf().float(), (5, 5), mode="bilinear", align_corners=True)
    cases.one("resize_infinity", "Resize", {"x": x}, {"z": torch.tensor([5, 5])}, torch.where(weights > 0, y, alone),
              ["x", "", "", "z"], opset=18, mode=b"linear", axes=(2, 3), coordinate_transformation_mode=b"align_corners")
    x, grid = torch.rand(2, 3, 7, 6), 3 * torch.rand(2, 5, 4, 2) - 1.5
    for mode, ours in (("bilinear", b"linear"), ("nearest", b"nearest"), ("bicubic", b"cubic")):
        for padding in ("zeros", "border", "reflection"):
            cases.one(f"sample_{mode}_{padding}", "GridSample", {"x": x, "g": grid}, {},
                      F.grid_sample(x, grid, mode, padding, False), opset=20, mode=ours, padding_mode=padding.encode())


def recurrent(cases):
    """Both directions of sequences of several lengths: PyTorch's gates in ONNX's order."""
    x, lengths = torch.rand(3, 4, 5), torch.tensor([2, 4, 3], dtype=torch.int32)
    for op, order in (("LSTM", (0, 3, 1, 2)), ("GRU", (1, 0, 2)), ("RNN", (0,))):
        net = getattr(torch.nn, op)(5, 6, bidirectional=True, batch_first=True)
        with torch.no_grad():
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y = torch.nn.utils.rnn.pad_packed_sequence(net(packed)[0], batch_first=True, total_length=4)[0]

        def weight(kind):
            directions = [getattr(net, f"{kind}_l0{end}").detach() for end in ("", "_reverse")]
            return torch.stack([torch.cat([w.chunk(len(order))[gate] for gate in order]) for w in directions])

        weights = {"w": weight("weight_ih"), "r": weight("weight_hh"),
                   "b": torch.cat([weight("bias_ih"), weight("bias_hh")], 1)}
        linear = {"linear_before_reset": 1} if op == "GRU" else {}
        cases.one(f"{op.lower()}_of_lengths", op, {"x": x, "n": lengths}, weights, y.reshape(3, 4, 2, 6),
                  ["x", "w", "r", "b", "n"], opset=14, hidden_size=6, direction=b"bidirectional", layout=1, **linear)


def integers(cases):
    """Sums of integers that f32 does not hold."""
    x, w = torch.randint(200, 256, (3, 2, 1500)).to(torch.uint8), torch.randint(200, 256, (1500, 4)).to(torch.uint8)
    cases.one("product_of_integers", "MatMulInteger", {"x": x}, {"w": w}, (x.long() @ w.long()).int())
    x, w = torch.randint(200, 256, (3, 60, 6, 5)).to(torch.uint8), torch.randint(-128, -90, (4, 60, 5, 4)).to(torch.int8)
    cases.one("convolution_of_integers", "ConvInteger", {"x": x}, {"w": w}, F.conv2d(x.double(), w.double()).int())


def overlaps(a, b, threshold):
    """Whether the intersection of boxes (y, x, y, x) is more than this part of their union."""
    (a, b), inside = ([torch.stack([box[:2].minimum(box[2:]), box[:2].maximum(box[2:])]) for box in (a, b)]), 1.0
    for axis in (0, 1):
        inside *= max(0.0, float(min(a[1, axis], b[1, axis]) - max(a[0, axis], b[0, axis])))
    return inside > 0 and inside > threshold * (float((a[1] - a[0]).prod() + (b[1] - b[0]).prod()) - inside)


def suppressed(boxes, scores, most, threshold, least):
    """One box after another, as the document of NonMaxSuppression says."""
    rows = []
    for batch, kind in [(n, c) for n in range(scores.shape[0]) for c in range(scores.shape[1])]:
        found = []
        for box in torch.argsort(scores[batch, kind], descending=True, stable=True).tolist():
            if len(found) < most and scores[batch, kind, box] > least and not any(
                    overlaps(boxes[batch, box], boxes[batch, before], threshold) for before in found):
                found.append(box)
        rows += [[batch, kind, box] for box in found]
    return torch.tensor(rows)


def detections(cases):
    """Boxes whose corners are whole numbers, many of them equal, with few different scores."""
    boxes, scores = torch.randint(0, 9, (2, 100, 4)).float(), torch.randint(1, 20, (2, 3, 100)) / 16
    limits = {"t": torch.tensor([0.5]), "s": torch.tensor([0.25])}
    expected = suppressed(boxes, scores, 12, 0.5, 0.25)
    inputs, most = {"b": boxes, "c": scores}, {"m": torch.tensor([12])}
    cases.one("boxes_up_to_a_number", "NonMaxSuppression", inputs, {**most, **limits}, expected, opset=11, rows=False)
    cases.one("boxes_up_to_a_computed_number", "NonMaxSuppression", {**inputs, **most, **limits}, {}, expected,
              opset=11, rows=False)
    low, high = boxes[..., :2].minimum(boxes[..., 2:]), boxes[..., :2].maximum(boxes[..., 2:])
    centered = torch.cat([((low + high) / 2).flip(2), (high - low).flip(2)], 2)
    expected = suppressed(boxes, scores, 100, 0.5, 0.25)
    cases.one("boxes_by_their_centers", "NonMaxSuppression", {"b": centered, "c": scores},
              {"m": torch.tensor([2**62]), **limits}, expected, opset=11, rows=False, center_point_box=1)
    x, k = whole(3, 40) + torch.rand(3, 40), torch.tensor([7])
    largest = x.topk(7, 1)
    cases.put("largest_of_a_computed_number", [node("TopK", ["x", "k"], ["y", "i"], axis=1)], {"x": x, "k": k}, {},
              {"y": largest.values, "i": largest.indices}, rows=False)


def caches(cases):
    """Rows that write to a cache from different places on; over its end, and around it."""
    cache, update, first = whole(3, 2, 7, 4), whole(3, 2, 5, 4), torch.tensor([0, 2, 1])
    y = cache.clone()
    for row, place in enumerate(first):
        y[row, :, place:place + 5] = update[row]
    inputs = {"c": cache, "u": update, "i": first}
    cases.one("cache_from_several_places", "TensorScatter", inputs, {}, y, opset=24)
    inputs["i"] = torch.tensor([6, 3, 20])
    y = cache.clone()
    for row, place in enumerate(inputs["i"]):
        y[row, :, (place + torch.arange(5)) % 7] = update[row]
    cases.one("cache_around_its_end", "TensorScatter", inputs, {}, y, opset=24, mode=b"circular")


def flexible_attention(cases):
    """Four heads of queries for two of keys, with a bias that a graph adds, and weights that a graph squares."""
    q, k, v, bias = torch.rand(3, 4, 5, 6), torch.rand(3, 2, 7, 6), torch.rand(3, 2, 7, 8), torch.rand(5, 7)
    score = graph([node("Add", ["s", "bias"], ["t"])], [], [value("s", 1)], [value("t", 1)])
    weight = graph([node("Mul", ["p", "p"], ["r"])], [], [value("p", 1)], [value("r", 1)])
    wide = [x.repeat_interleave(2, 1) for x in (k, v)]
    for name, attributes, scale, change in (("plain", {}, 6**-0.5, lambda p: p),
                                            ("changed", {"score_mod": score, "prob_mod": weight}, -0.5, torch.square)):
        scores = q @ wide[0].mT * scale + (bias if attributes else 0)
        if attributes:
            attributes["scale"] = scale
        nodes = [of_domain("ai.onnx.preview", "FlexAttention", ["q", "k", "v"], ["y"], **attributes)]
        cases.put(f"flexible_attention_{name}", nodes, {"q": q, "k": k, "v": v}, {"bias": bias},
                  {"y": change(scores.softmax(-1)) @ wide[1]}, opset=26, domain="ai.onnx.preview")


def gradients(cases):
    """Of a sum over rows, with respect to an input, a weight and a value between them; the gradient comes first."""
    x, w = torch.rand(3, 4, requires_grad=True), torch.rand(4, 5, requires_grad=True)
    h = x @ w
    h.retain_grad()
    (h.tanh() * h).sum().backward()
    domain = "ai.onnx.preview.training"
    gradient = of_domain(domain, "Gradient", ["x", "w"], ["dx", "dw"], y=b"y", xs=(b"x", b"w"))
    between = of_domain(domain, "Gradient", ["h"], ["dh"], y=b"y", xs=(b"h",))
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["t"]), node("Mul", ["t", "h"], ["y"])]
    cases.put("gradients_of_values", [gradient, between, *nodes], {"x": x.detach()}, {"w": w.detach()},
              {"dx": x.grad, "dw": w.grad, "dh": h.grad}, domain=domain)


def trees(cases):
    """Two trees: x0 <= 0 ? (x1 is 2 or 3 ? a : b) : c, where NaN counts as true, and x1 != 1 ? d : e."""
    x = torch.tensor([[-1, 2], [-1, 3], [-1, 1], [1, 1], [torch.nan, 0], [0, torch.nan]])
    first = torch.tensor([0.5, 0.5, 0.25, 8, 0.25, 0.25])
    second = torch.tensor([2, 2, 1, 1, 2, 2]).float()
    numbers = {"nodes_splits": torch.tensor([0.0, torch.nan, 1]), "leaf_weights": torch.tensor([0.5, 0.25, 8, 2, 1]),
               "nodes_modes": torch.tensor([0, 6, 5], dtype=torch.uint8),
               "membership_values": torch.tensor([2.0, 3, torch.nan])}
    attributes = {"tree_roots": (0, 2), "nodes_featureids": (0, 1, 1), "leaf_targetids": (0, 0, 0, 2, 2),
                  "nodes_truenodeids": (1, 0, 3), "nodes_trueleafs": (0, 1, 1), "nodes_falsenodeids": (2, 1, 4),
                  "nodes_falseleafs": (1, 1, 1), "nodes_missing_value_tracks_true": (1, 0, 0), "n_targets": 3,
                  **{name: array("", each) for name, each in numbers.items()}}
    y = torch.stack([first, torch.zeros(6), second], 1)
    nodes = [node("TreeEnsemble", ["x"], ["y"], **attributes) + [(7, b"ai.onnx.ml")]]
    cases.put("two_trees", nodes, {"x": x}, {}, {"y": y}, opset=20, domain="ai.onnx.ml", version=5)


def random_loops(cases):
    """Each iteration of a loop or a scan draws other numbers: those of the first differ from all others."""
    expected = torch.arange(20).clamp(max=1).float()
    rest = [node("Gather", ["r", "zero"], ["first"]), node("Sub", ["r", "first"], ["d"]), node("Abs", ["d"], ["a"]),
            node("ReduceMax", ["a", "one"], ["m"], keepdims=0), node("Greater", ["m", "little"], ["g"]),
            node("Cast", ["g"], ["c"], to=1), node("Add", ["c", "x"], ["y"])]
    weights = {"zero": torch.tensor([0]), "one": torch.tensor([1]), "little": torch.tensor(1e-6)}
    body = graph([node("RandomUniform", [], ["u"], shape=(5,)), node("Identity", ["t"], ["on"])], [],
                 [value("i", 7), value("t", 9)], [value("on", 9), value("u", 1)])
    cases.put("random_loop", [node("Loop", ["n", ""], ["r"], body=body), *rest], {"x": torch.zeros(20)},
              {**weights, "n": torch.tensor(20)}, {"y": expected}, opset=18, rows=False)
    body = graph([node("RandomNormalLike", ["s"], ["u"])], [], [value("s", 1, 3)], [value("u", 1, 3)])
    cases.put("random_scan", [node("Scan", ["z"], ["r"], body=body, num_scan_inputs=1), *rest],
              {"x": torch.zeros(20), "z": torch.zeros(20, 3)}, weights, {"y": expected}, opset=18, rows=False)
    body = graph([call("Draw", ["s"], ["u"])], [], [value("s", 1, 3)], [value("u", 1, 3)])
    draw = function("Draw", ["v"], ["o"], [node("RandomNormalLike", ["v"], ["o"])])
    cases.put("random_function_in_scan", [node("Scan", ["z"], ["r"], body=body, num_scan_inputs=1), *rest],
              {"x": torch.zeros(20), "z": torch.zeros(20, 3)}, weights, {"y": expected}, opset=18, rows=False,
              functions=[draw])


def main():
    program = os.path.join(BUILD, "tests", "onnx_node_test")
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(folder)
        for family in (products, convolutions, pools, norms, images, recurrent, integers, detections, caches, flexible_attention,
                       gradients, trees, random_loops):
            family(cases)
        environment = {**os.environ, "SLUICE_ONNX_TESTS": folder, "SLUICE_ONNX_CASES": "_"}
        done = subprocess.run([program, "--gtest_filter=Onnx.OperatorsAgreeWithTheReference"], env=environment,
                              capture_output=True, text=True, timeout=600, check=False)
    computed = set(re.findall(r"^computed (\w+)", done.stdout, re.M))
    missing = [name for name in cases.names if name not in computed]
    if missing or done.returncode != 0:
        print(done.stdout, done.stderr)
        print("not computed:", *missing)
        return 1
    print(f"{len(computed)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
