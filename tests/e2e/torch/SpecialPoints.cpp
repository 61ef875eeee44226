#include "tests/e2e/torch/SpecialPoints.h"
#include "sluice/sluice.h"
#include "tests/e2e/Harness.h"
#include <cstdio>
#include <limits>

using nlohmann::json;

namespace sluice::test {

namespace {

using Sizes = std::vector<int64_t>;
using Numbers = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// One op at several points. Each element of x is a point of an elementwise op.
struct Point {
  const char *op, *torch;
  Tensor (*result)(const Tensor &x, const Tensor &w);
  Numbers x, w = {};
  Sizes shape = {}; ///< shape of x; empty for a vector
};

#define SLUICE_POINT(torch, ...)                                                                                       \
  #__VA_ARGS__, torch,                                                                                                 \
      []([[maybe_unused]] const Tensor &x, [[maybe_unused]] const Tensor &w) -> Tensor { return __VA_ARGS__; }

const Numbers kWide{-kInf, -1, 0, 1, kInf, kNan};

std::vector<Point> elementwise() {
  return {
      {SLUICE_POINT("x.abs()", abs(x)), {-kInf, -0.0, 0, kInf, kNan}},
      {SLUICE_POINT("x.square()", square(x)), kWide},
      {SLUICE_POINT("x.sqrt()", sqrt(x)), {-1, 0, kInf, kNan}},
      {SLUICE_POINT("x.rsqrt()", rsqrt(x)), {-1, 0, kInf, kNan}},
      {SLUICE_POINT("x.reciprocal()", reciprocal(x)), {-0.0, 0, kInf, kNan}},
      {SLUICE_POINT("x.exp()", exp(x)), {-kInf, kInf, kNan}},
      {SLUICE_POINT("x.log()", log(x)), {-1, 0, kInf, kNan}},
      {SLUICE_POINT("x.log1p()", log1p(x)), {-2, -1, kInf, kNan}},
      {SLUICE_POINT("x.sin()", sin(x)), {kInf, kNan}},
      {SLUICE_POINT("x.asin()", asin(x)), {-2, -1, -0.0, 1, 2, kInf, kNan}},
      {SLUICE_POINT("x.acos()", acos(x)), {-2, -1, 0, 1, 2, kInf, kNan}},
      {SLUICE_POINT("x.atan()", atan(x)), {-kInf, -0.0, 1e-9, kInf, kNan}},
      {SLUICE_POINT("x.sinh()", sinh(x)), {-kInf, -0.0, 1e-9, 100, kInf, kNan}},
      {SLUICE_POINT("x.cosh()", cosh(x)), {-kInf, 0, 100, kInf, kNan}},
      {SLUICE_POINT("x.asinh()", asinh(x)), {-kInf, -0.0, 1e-9, kInf, kNan}},
      {SLUICE_POINT("x.acosh()", acosh(x)), {-2, 0, 1, kInf, kNan}},
      {SLUICE_POINT("x.atanh()", atanh(x)), {-2, -1, -0.0, 1e-9, 1, 2, kInf, kNan}},
      {SLUICE_POINT("x.tanh()", tanh(x)), {-kInf, kInf, kNan}},
      {SLUICE_POINT("x.sigmoid()", sigmoid(x)), {-kInf, kInf, kNan}},
      {SLUICE_POINT("x.erf()", erf(x)), {-kInf, kInf, kNan}},
      {SLUICE_POINT("x.relu()", relu(x)), kWide},
      {SLUICE_POINT("F.relu6(x)", relu6(x)), {-kInf, 0, 6, kInf, kNan}},
      {SLUICE_POINT("F.leaky_relu(x)", leaky_relu(x)), kWide},
      {SLUICE_POINT("F.elu(x)", elu(x)), {-kInf, 0, kInf, kNan}},
      {SLUICE_POINT("F.gelu(x)", gelu(x)), {-kInf, 0, kInf, kNan}},
      {SLUICE_POINT("F.gelu(x, approximate='tanh')", gelu(x, Gelu::tanh)), {-kInf, 0, kInf, kNan}},
      {SLUICE_POINT("F.silu(x)", silu(x)), {-kInf, 0, kInf, kNan}},
      {SLUICE_POINT("F.softplus(x)", softplus(x)), {-kInf, kInf, kNan}},
      {SLUICE_POINT("F.hardsigmoid(x)", hardsigmoid(x)), {-kInf, -3, 3, kInf, kNan}},
      {SLUICE_POINT("F.hardswish(x)", hardswish(x)), {-kInf, -3, 3, kInf, kNan}},
      {SLUICE_POINT("x.clamp(-1, 1)", clamp(x, -1, 1)), kWide},
      {SLUICE_POINT("F.prelu(x, w)", prelu(x, w)), {-kInf, 0, kInf, kNan}, {0.25}},
      {SLUICE_POINT("x.masked_fill(x == 0, 1)", masked_fill(x, x == 0.0, 1)), {0, kInf, kNan}},
      {SLUICE_POINT("x / w", x / w), {0, 1, 1, kInf, kInf}, {0, 0, kInf, 1, kInf}},
      {SLUICE_POINT("x ** 0", pow(x, 0)), kWide},
      {SLUICE_POINT("x ** 1", pow(x, 1)), kWide},
      {SLUICE_POINT("x ** 2", pow(x, 2)), kWide},
      {SLUICE_POINT("x ** 0.5", pow(x, 0.5)), kWide},
      {SLUICE_POINT("x ** -1", pow(x, -1)), {-0.0, 0, kInf, kNan}},
      {SLUICE_POINT("x ** w", pow(x, w)), {0, 0, 0, 0, -2, -2, 1, kInf, kNan}, {0, 1, 2, -1, 0, 2, kInf, 0, 0}},
      {SLUICE_POINT("torch.maximum(x, w)", maximum(x, w)), {0, kInf, -kInf, kNan, 1}, {0, kInf, -kInf, 1, kNan}},
      {SLUICE_POINT("torch.minimum(x, w)", minimum(x, w)), {0, kInf, -kInf, kNan, 1}, {0, kInf, -kInf, 1, kNan}},
      {SLUICE_POINT("torch.where(x > 0, x, w)", where(x > 0.0, x, w)), {0, kInf, kNan}, {1, kNan, 1}},
  };
}

std::vector<Point> reductions() {
  const Numbers equal(4, 2), zeros(4, 0), hidden(3, -kInf), oneInfinite{1, kInf, 2}, oneNan{1, kNan, 2};
  return {
      {SLUICE_POINT("x.amax()", max(x)), {3, 1, 3}},
      {SLUICE_POINT("x.amax()", max(x)), hidden},
      {SLUICE_POINT("x.amax()", max(x)), oneNan},
      {SLUICE_POINT("x.amax()", max(x)), Numbers(70000, 1)},
      {SLUICE_POINT("x.amin()", min(x)), {1, 3, 1}},
      {SLUICE_POINT("x.amin()", min(x)), Numbers(70000, 1)},
      {SLUICE_POINT("x.prod()", prod(x)), {0, 2, 3}},
      {SLUICE_POINT("x.prod()", prod(x)), {0, 2, 0}},
      {SLUICE_POINT("x.mean()", mean(x)), oneInfinite},
      {SLUICE_POINT("x.var(unbiased=True)", var(x)), equal},
      {SLUICE_POINT("x.std(unbiased=True)", sluice::std(x)), equal},
      {SLUICE_POINT("x.std(unbiased=True)", sluice::std(x)), oneInfinite},
      {SLUICE_POINT("x.std(unbiased=True)", sluice::std(x)), {-400, -300, 300, 400}},
      {SLUICE_POINT("torch.linalg.vector_norm(x, 1)", norm(x, 1)), {-1, 0, kInf}},
      {SLUICE_POINT("torch.linalg.vector_norm(x)", norm(x)), zeros},
      {SLUICE_POINT("torch.linalg.vector_norm(x)", norm(x)), {300, 400}},
      {SLUICE_POINT("torch.linalg.vector_norm(x)", norm(x)), oneInfinite},
      {SLUICE_POINT("torch.linalg.vector_norm(x)", norm(x)), oneNan},
      {SLUICE_POINT("torch.linalg.vector_norm(x, torch.inf)", norm(x, kInf)), zeros},
      {SLUICE_POINT("torch.linalg.vector_norm(x, torch.inf)", norm(x, kInf)), {-3, 1, 3}},
      {SLUICE_POINT("F.normalize(x, dim=0)", normalize(x, 2, 0)), zeros},
      {SLUICE_POINT("F.normalize(x, dim=0)", normalize(x, 2, 0)), {300, 400}},
      {SLUICE_POINT("x.logsumexp(0)", logsumexp(x, 0)), {-kInf, 0, 0}},
      {SLUICE_POINT("x.logsumexp(0)", logsumexp(x, 0)), hidden},
      {SLUICE_POINT("x.logsumexp(0)", logsumexp(x, 0)), oneInfinite},
      {SLUICE_POINT("x.logsumexp(0)", logsumexp(x, 0)), Numbers(70000, 1)},
      {SLUICE_POINT("x.softmax(0)", softmax(x, 0)), {-kInf, 0, 0}},
      {SLUICE_POINT("x.softmax(0)", softmax(x, 0)), hidden},
      {SLUICE_POINT("x.log_softmax(0)[1:]", log_softmax(x, 0).slice(0, 1, 3)), {-kInf, 0, 0}},
      {SLUICE_POINT("F.layer_norm(x, (4,))", layer_norm(x, {4})), equal},
      {SLUICE_POINT("F.layer_norm(x, (4,))", layer_norm(x, {4})), {-400, -300, 300, 400}},
      {SLUICE_POINT("F.local_response_norm(x, 3, alpha=1)", local_response_norm(x, 3, 1)),
       {300, 0, 300},
       {},
       {1, 3, 1}},
  };
}

std::vector<Point> losses() {
  const Numbers far{kInf, -kInf, 1, -1, 0, kNan}, zeros(6, 0);
  return {
      {SLUICE_POINT("F.l1_loss(x, w, reduction='sum')", l1_loss(x, w, Reduction::sum)), {kInf, 0}, {0, 0}},
      {SLUICE_POINT("F.mse_loss(x, w)", mse_loss(x, w)), {300, 0, 0, 0}, {0, 0, 0, 0}},
      {SLUICE_POINT("F.huber_loss(x, w, reduction='none')", huber_loss(x, w, Reduction::none)), far, zeros},
      {SLUICE_POINT("F.smooth_l1_loss(x, w, reduction='none')", smooth_l1_loss(x, w, Reduction::none)), far, zeros},
      {SLUICE_POINT("F.smooth_l1_loss(x, w, reduction='none', beta=0.5)", smooth_l1_loss(x, w, Reduction::none, 0.5)),
       {kInf, 0.5, -0.5, kNan},
       {0, 0, 0, 0}},
      {SLUICE_POINT("F.smooth_l1_loss(x, w, reduction='none', beta=0)", smooth_l1_loss(x, w, Reduction::none, 0)),
       {kInf, 0},
       {0, 0}},
      {SLUICE_POINT("F.binary_cross_entropy_with_logits(x, w, reduction='none')",
                    binary_cross_entropy_with_logits(x, w, {.reduction = Reduction::none})),
       {kInf, -kInf, 0, kNan},
       {0, 1, 0.5, 0}},
      {SLUICE_POINT("F.cross_entropy(x, w)", cross_entropy(x, w)), {-kInf, 0, 0}, {0, 0.5, 0.5}, {3}},
  };
}

std::vector<Point> windows() {
  Numbers hidden(9, -kInf), oneInfinite(9, 1), ties(9, 1);
  oneInfinite[4] = kInf;
  const Sizes image{1, 1, 3, 3};
  return {
      {SLUICE_POINT("F.max_pool2d(x, 2, 1)", max_pool2d(x, 2, {.stride = 1})), ties, {}, image},
      {SLUICE_POINT("F.max_pool2d(x, 3, 2, 1)", max_pool2d(x, 3, {.stride = 2, .padding = 1})), hidden, {}, image},
      {SLUICE_POINT("F.max_pool2d(x, 2, 3, 1, 1, True)",
                    max_pool2d(x, 2, {.stride = 3, .padding = 1, .ceil_mode = true})),
       hidden,
       {},
       image},
      {SLUICE_POINT("F.avg_pool2d(x, 2, 1)", avg_pool2d(x, 2, {.stride = 1})), oneInfinite, {}, image},
      {SLUICE_POINT("F.adaptive_avg_pool2d(x, 2)", adaptive_avg_pool2d(x, 2)), oneInfinite, {}, image},
      {SLUICE_POINT("F.interpolate(x, (4, 4))", interpolate_to(x, 4)), oneInfinite, {}, image},
      {SLUICE_POINT("F.interpolate(x, (6, 6), mode='bilinear')",
                    interpolate_to(x, 6, {.mode = Interpolation::bilinear})),
       oneInfinite,
       {},
       image},
  };
}

/// Formulas with an epsilon. Norms of f16 and bf16 compute in f32, where the epsilon and the square of a small element are
/// above 0. An epsilon that a model adds to a value in f16 is rounded to f16: 1e-8 becomes 0.
std::vector<Point> epsilons() {
  const Numbers small{1e-4, -1e-4, 2e-4, -2e-4}, vector{3e-4, 4e-4}, other{4e-4, 3e-4}, zeros(2, 0), sizes{0, 1e-4, 1};
  const Numbers twice{1e-4, -1e-4, 2e-4, -2e-4, 3e-4, 1e-4, -1e-4, 2e-4};
  const Sizes groups{1, 4, 2}, instances{1, 2, 2};
  return {
      {SLUICE_POINT("F.layer_norm(x, (4,), w, None, 1e-5)", layer_norm(x, {4}, w, {}, 1e-5)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("F.layer_norm(x, (4,), w, None, 1e-8)", layer_norm(x, {4}, w, {}, 1e-8)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("F.layer_norm(x, (4,), w, None, 1e-12)", layer_norm(x, {4}, w, {}, 1e-12)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("F.layer_norm(x, (2,), w, None, 1e-12)", layer_norm(x, {2}, w, {}, 1e-12)), zeros, {1, 2}},
      {SLUICE_POINT("x / torch.sqrt(x.square().mean() + 1e-5) * w", rms_norm(x, {4}, w, 1e-5)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("x / torch.sqrt(x.square().mean() + 1e-8) * w", rms_norm(x, {4}, w, 1e-8)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("x / torch.sqrt(x.square().mean() + 1e-12) * w", rms_norm(x, {4}, w, 1e-12)), small, {1, 2, 3, 4}},
      {SLUICE_POINT("F.group_norm(x, 2, w, None, 1e-5)", group_norm(x, 2, w, {}, 1e-5)), twice, {1, 2, 3, 4}, groups},
      {SLUICE_POINT("F.group_norm(x, 2, w, None, 1e-8)", group_norm(x, 2, w, {}, 1e-8)), twice, {1, 2, 3, 4}, groups},
      {SLUICE_POINT("F.group_norm(x, 2, w, None, 1e-12)", group_norm(x, 2, w, {}, 1e-12)), twice, {1, 2, 3, 4}, groups},
      {SLUICE_POINT("F.instance_norm(x, weight=w, eps=1e-5)", instance_norm(x, w, {}, 1e-5)), small, {1, 2}, instances},
      {SLUICE_POINT("F.instance_norm(x, weight=w, eps=1e-8)", instance_norm(x, w, {}, 1e-8)), small, {1, 2}, instances},
      {SLUICE_POINT("F.instance_norm(x, weight=w, eps=1e-12)", instance_norm(x, w, {}, 1e-12)),
       small,
       {1, 2},
       instances},
      {SLUICE_POINT("F.normalize(x, dim=0, eps=1e-3)", normalize(x, 2, 0, 1e-3)), vector},
      {SLUICE_POINT("F.normalize(x, dim=0, eps=1e-8)", normalize(x, 2, 0, 1e-8)), vector},
      {SLUICE_POINT("F.normalize(x, dim=0)", normalize(x, 2, 0)), vector},
      {SLUICE_POINT("F.cosine_similarity(x, w, 0, 1e-5)", sum(normalize(x, 2, 0, 1e-5) * normalize(w, 2, 0, 1e-5))),
       vector, other},
      {SLUICE_POINT("F.cosine_similarity(x, w, 0, 1e-8)", sum(normalize(x, 2, 0, 1e-8) * normalize(w, 2, 0, 1e-8))),
       vector, other},
      {SLUICE_POINT("R(x + 1e-5).log()", log(x + 1e-5)), sizes},
      {SLUICE_POINT("R(x + 1e-8).log()", log(x + 1e-8)), sizes},
      {SLUICE_POINT("R(x + 1e-12).log()", log(x + 1e-12)), sizes},
      {SLUICE_POINT("R(x + 1e-5).sqrt()", sqrt(x + 1e-5)), sizes},
      {SLUICE_POINT("R(x + 1e-8).sqrt()", sqrt(x + 1e-8)), sizes},
      {SLUICE_POINT("R(x + 1e-12).sqrt()", sqrt(x + 1e-12)), sizes},
      {SLUICE_POINT("R(x + 1e-5).rsqrt()", rsqrt(x + 1e-5)), sizes},
      {SLUICE_POINT("R(x + 1e-8).rsqrt()", rsqrt(x + 1e-8)), sizes},
      {SLUICE_POINT("R(x + 1e-12).rsqrt()", rsqrt(x + 1e-12)), sizes},
      {SLUICE_POINT("R(w * R(R(x + 1e-8).log())) + R(R(1 - w) * R(R(R(1 - x) + 1e-8).log()))",
                    w * log(x + 1e-8) + (1.0 - w) * log(1.0 - x + 1e-8)),
       {0, 1, 0.5, 0, 1},
       {1, 0, 0.5, 0, 1}},
  };
}

std::vector<Point> allPoints() {
  std::vector<Point> points;
  for (auto &&family : {elementwise(), reductions(), losses(), windows(), epsilons()})
    points.insert(points.end(), family.begin(), family.end());
  return points;
}

std::vector<std::string> texts(const Numbers &numbers) {
  std::vector<std::string> texts;
  for (double number : numbers) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", number);
    texts.emplace_back(text);
  }
  return texts;
}

Shape shapeOf(const Point &point) {
  Sizes sizes = point.shape.empty() ? Sizes{int64_t(point.x.size())} : point.shape;
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

} // namespace

json specialPoints(DType dtype) {
  Graph graph("special_points");
  graph.set_dtype(dtype);
  std::vector<Point> points = allPoints();
  Values inputs;
  for (size_t i = 0; i < points.size(); ++i) {
    const Point &point = points[i];
    std::string number = std::to_string(i);
    Tensor x = graph.input("x" + number, dtype, shapeOf(point)), w;
    inputs["x" + number] = point.x;
    if (!point.w.empty()) {
      w = graph.input("w" + number, dtype, {int64_t(point.w.size())});
      inputs["w" + number] = point.w;
    }
    Tensor y = point.result(x, w);
    graph.output("y" + number, y);
    std::vector<Tensor> by = w ? std::vector{x, w} : std::vector{x}, gradients = grad(y.sum(), by);
    graph.output("dx" + number, gradients[0]);
    if (w)
      graph.output("dw" + number, gradients[1]);
  }
  Values results = Compiled(graph.str()).run("predict", inputs, 1);
  json all = json::array();
  for (size_t i = 0; i < points.size(); ++i) {
    const Point &point = points[i];
    json entry{{"op", point.op}, {"torch", point.torch}, {"shape", point.shape}};
    for (const char *name : {"x", "w"})
      if (auto found = inputs.find(name + std::to_string(i)); found != inputs.end())
        entry[name] = texts(found->second);
    for (const char *name : {"y", "dx", "dw"})
      if (auto found = results.find(name + std::to_string(i)); found != results.end())
        entry[name] = texts(found->second);
    all.push_back(entry);
  }
  return all;
}

} // namespace sluice::test
