#include "tests/e2e/replicas/BatchGraph.h"

#include <fmt/format.h>
#include <random>

namespace sluice::test {

namespace {

constexpr int kFeatures = 5, kTargets = 3;

class Builder {
public:
  explicit Builder(uint64_t seed) : random(seed) {}

  BatchGraph build(BatchGraph graph, int64_t capacity) {
    value = "%x";
    width = kFeatures;
    for (int layers = 2 + pick(4), i = 0; i < layers; ++i)
      addLayer();
    std::string hidden = value;
    addLinear(kTargets);
    std::string errors = op("sub", {value, "%t"}, rows(kTargets), rows(kTargets)),
                squares = op("mul", {errors, errors}, rows(kTargets), rows(kTargets));
    std::string each = reduce("sum", squares, "1", rows(kTargets), rows());
    std::string loss = average(each, rows(), scalar());
    if (pick(2)) // a second loss over other rows
      loss =
          op("add", {loss, average(op("mul", {each, "%mask"}, rows(), rows()), rows(), scalar())}, scalar(), scalar());
    std::string metric = average(reduce("reduce_max", hidden, "1", rows(width0), rows()), rows(), scalar());
    body += fmt::format("  sluice.output \"each\", {} : {}\n  sluice.output \"total\", {} : {}\n", each, rows(),
                        reduce(pick(2) ? "reduce_max" : "reduce_min", value, "0", rows(kTargets), type({kTargets})),
                        type({kTargets}));
    body += fmt::format("  sluice.metric \"metric\", {} : {}\n", metric, scalar());
    body += fmt::format("  sluice.minimize {}, {} : {}\n", loss, training(), scalar());
    graph.text = fmt::format(
        "module {{\n  sluice.model \"batch\" format 2 phase \"model\" capacity {}\n{}  sluice.state hyperparameter @lr "
        ": "
        "tensor<f32> = <\"constant\", 0.05 : f64>\n  sluice.graph [\"x\", \"t\", \"mask\"] (%x: {}, %t: {}, %mask: "
        "{}) {{\n{}  }}\n}}\n",
        capacity, states, rows(kFeatures), rows(kTargets), rows(), body);
    graph.states = names;
    return graph;
  }

private:
  int pick(int below) { return int(random() % uint64_t(below)); }

  static std::string type(const std::vector<int> &shape) {
    std::string text = "tensor<";
    for (int size : shape)
      text += fmt::format("{}x", size);
    return text + "f32>";
  }
  static std::string scalar() { return "tensor<f32>"; }
  static std::string rows(int inner = 0) { return inner ? fmt::format("tensor<?x{}xf32>", inner) : "tensor<?xf32>"; }

  std::string op(const std::string &name, const std::vector<std::string> &operands, const std::string &from,
                 const std::string &to, const std::string &attributes = "") {
    std::string result = fmt::format("%v{}", ++count);
    std::vector<std::string> types(operands.size(), from);
    body += fmt::format("    {} = sluice.{} {}{} : ({}) -> {}\n", result, name, fmt::join(operands, ", "), attributes,
                        fmt::join(types, ", "), to);
    return result;
  }
  std::string reduce(const std::string &name, const std::string &x, const std::string &axes, const std::string &from,
                     const std::string &to) {
    return op(name, {x}, from, to, fmt::format(" {{axes = array<i64: {}>}}", axes));
  }
  std::string full(double number, const std::string &of) {
    return op("full", {}, "", of, fmt::format("{{type = {}, value = {:.6e} : f64}}", of, number));
  }
  std::string overRows(const std::string &x) {
    return op("expand", {x}, type({width}), rows(width),
              fmt::format(" {{dims = array<i64: 1>, shape = array<i64: ?, {}>}}", width));
  }
  /// A mean over rows, a mean over the rows of the mask, or a scaled sum.
  std::string average(const std::string &x, const std::string &from, const std::string &to) {
    switch (pick(3)) {
    case 0:
      return reduce("mean", x, "0", from, to);
    case 1:
      return op("mul", {reduce("sum", x, "0", from, to), full(0.05, to)}, to, to);
    default:
      return maskedMean(x, from, to);
    }
  }
  std::string maskedMean(const std::string &x, const std::string &from, const std::string &to) {
    std::string mask = "%mask", total = reduce("sum", "%mask", "0", rows(), scalar());
    if (from != rows()) {
      mask = op("expand", {mask}, rows(), from,
                fmt::format(" {{dims = array<i64: 0>, shape = array<i64: ?, {}>}}", width));
      total = op("expand", {total}, scalar(), to, fmt::format(" {{dims = array<i64>, shape = array<i64: {}>}}", width));
    }
    std::string masked = op("mul", {x, mask}, from, from);
    return op("div", {reduce("sum", masked, "0", from, to), total}, to, to);
  }

  /// Momentum; or Adam with a rate schedule, parameter averages, momentum for the first two parameters, and gradient
  /// clipping by the global norm.
  std::string training() {
    std::string momentum = fmt::format("#sluice.sgd<momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = {} : "
                                       "f64, nesterov = false>",
                                       pick(2) ? "0.01" : "0.0");
    if (pick(2))
      return fmt::format("{} lr @lr [{}]", momentum, fmt::join(parameters, ", "));
    auto others = parameters.begin() + 2;
    return fmt::format(
        "#sluice.adam<beta1 = 0.8 : f64, beta2 = 0.9 : f64, eps = 0.01 : f64, weight_decay = 0.01 : f64, "
        "decoupled_weight_decay = true, amsgrad = false> lr @lr schedule #sluice.sequential_lr<schedulers = "
        "[#sluice.linear_lr<start_factor = 0.5 : f64, end_factor = 1.0 : f64, total_iters = 2>, "
        "#sluice.cosine_annealing_lr<T_max = 3, eta_min = 0.01 : f64>], milestones = [2]> [{}] groups "
        "[#sluice.parameter_group<parameters = [{}], optimizer = {}, lr_factor = 0.5 : f64>] clip "
        "[#sluice.clip_grad_norm<max_norm = 0.01 : f64>] ema <decay = 0.9 : f64>",
        fmt::join(others, parameters.end(), ", "), fmt::join(parameters.begin(), others, ", "), momentum);
  }

  std::string state(const std::string &kind, const std::vector<int> &shape, const std::string &init) {
    std::string name = fmt::format("s{}", names.size());
    names.push_back(name);
    states += fmt::format("  sluice.state {} @{} : {} = <{}>\n", kind, name, type(shape), init);
    body += fmt::format("    %{} = sluice.get @{} : {}\n", name, name, type(shape));
    if (kind == "parameter")
      parameters.push_back("@" + name);
    return name;
  }

  void addLinear(int outputs) {
    std::string weight = state("parameter", {outputs, width}, "\"uniform\", -0.6 : f64, 0.6 : f64");
    std::string bias = state("parameter", {outputs}, "\"uniform\", -0.3 : f64, 0.3 : f64");
    std::string product = fmt::format("%v{}", ++count);
    body += fmt::format("    {} = sluice.einsum \"ab,cb->ac\" {}, %{} : ({}, {}) -> {}\n", product, value, weight,
                        rows(width), type({outputs, width}), rows(outputs));
    width = outputs;
    value = op("add", {product, overRows("%" + bias)}, rows(width), rows(width));
  }

  void addSquare() {
    std::string weight = state("parameter", {width, width}, "\"uniform\", -0.6 : f64, 0.6 : f64");
    for (int i = 0; i < 2; ++i) {
      std::string product = fmt::format("%v{}", ++count);
      body += fmt::format("    {} = sluice.einsum \"ab,cb->ac\" {}, %{} : ({}, {}) -> {}\n", product, value, weight,
                          rows(width), type({width, width}), rows(width));
      value = op("tanh", {product}, rows(width), rows(width));
    }
  }

  void addBatchNorm() {
    std::string weight = state("parameter", {width}, "\"uniform\", 0.5 : f64, 1.5 : f64"),
                bias = state("parameter", {width}, "\"uniform\", -0.3 : f64, 0.3 : f64");
    std::string mean = state("statistic", {width}, "\"constant\", 0.0 : f64"),
                var = state("statistic", {width}, "\"constant\", 1.0 : f64");
    std::string result = fmt::format("%v{}", ++count), of = type({width});
    body += fmt::format("    {0}:3 = sluice.batch_norm {1}, %{2}, %{3}, %{4}, %{5} {{eps = 1.0e-2 : f64}} : ({6}, {7}, "
                        "{7}, {7}, {7}) -> ({6}, {7}, {7})\n",
                        result, value, weight, bias, mean, var, rows(width), of);
    body += fmt::format("    sluice.set @{}, {}#1 : {}\n    sluice.set @{}, {}#2 : {}\n", mean, result, of, var, result,
                        of);
    value = result + "#0";
  }

  void addDropout() {
    if (streams++ == 0) {
      names.push_back("key");
      states += "  sluice.state key @key : tensor<2xi32> = <\"key\", 0.0 : f64>\n";
      body += "    %key = sluice.get @key : tensor<2xi32>\n";
    }
    std::string result = fmt::format("%v{}", ++count);
    body += fmt::format(
        "    {} = sluice.dropout {}, %key {{p = 0.3 : f64, stream = {} : i64}} : ({}, tensor<2xi32>) -> {}\n", result,
        value, streams, rows(width), rows(width));
    value = result;
  }

  void addLayer() {
    switch (pick(8)) {
    case 0:
    case 1:
      addLinear(2 + pick(5));
      value = op(pick(2) ? "tanh" : "sigmoid", {value}, rows(width), rows(width));
      break;
    case 2:
      addBatchNorm();
      break;
    case 3: // centered by a mean over rows
      value = op("sub", {value, overRows(average(value, rows(width), type({width})))}, rows(width), rows(width));
      break;
    case 4: { // scaled by the maximum
      std::string most =
          reduce("reduce_max", op("mul", {value, value}, rows(width), rows(width)), "0", rows(width), type({width}));
      most = op("add", {most, full(1, type({width}))}, type({width}), type({width}));
      value = op("div", {value, overRows(most)}, rows(width), rows(width));
      break;
    }
    case 5:
      value = op("softmax", {value}, rows(width), rows(width), " {axis = 1 : i64}");
      break;
    case 6:
      addDropout();
      break;
    default: // a weight shared by two products: its gradients are summed
      addSquare();
    }
    width0 = width;
  }

  std::mt19937_64 random;
  std::string states, body, value;
  std::vector<std::string> parameters, names;
  int width = kFeatures, width0 = kFeatures, count = 0, streams = 0;
};

} // namespace

BatchGraph::BatchGraph(uint64_t seed, int64_t capacity) { *this = Builder(seed).build(std::move(*this), capacity); }

Values BatchGraph::batch(uint64_t seed, int64_t rows) {
  std::mt19937_64 random(seed);
  auto draw = [&](int64_t count, double low, double high) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double &element : values)
      element = std::uniform_real_distribution<double>(low, high)(random);
    return values;
  };
  Values values = {
      {"x", draw(rows * kFeatures, -2, 2)}, {"t", draw(rows * kTargets, -1, 1)}, {"mask", draw(rows, 0, 1)}};
  for (double &element : values["mask"])
    element = element < 0.4 ? 0 : 1;
  values["mask"][0] = 1; // at least one row counts
  return values;
}

} // namespace sluice::test
