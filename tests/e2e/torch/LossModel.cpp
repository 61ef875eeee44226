#include "tests/e2e/torch/LossModel.h"
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"

using nlohmann::json;

namespace sluice::test {

namespace {

constexpr int64_t kLossClasses = 5;
constexpr int64_t kIgnored[] = {-100, 2};

class LossList {
public:
  LossList(LossModel &model, const std::string &form, DType dtype, int64_t rows)
      : model(model), rows(rows), dtype(dtype), isTransposed(form == "words") {
    graph.set_capacity(rows);
    graph.set_dtype(dtype);
    std::vector<int64_t> positions = form == "rows" ? std::vector<int64_t>{}
                                     : isTransposed ? std::vector<int64_t>{7}
                                                    : std::vector<int64_t>{3, 4};
    std::vector<int64_t> inner = positions;
    inner.insert(isTransposed ? inner.end() : inner.begin(), kLossClasses);
    shape = {inner.begin(), inner.end()};
    x = floats("x", inner, -2, 2);
    target = floats("target", inner, 0, 1);
    label = labels("label", positions, {});
    for (size_t i = 0; i < 2; ++i)
      ignoring[i] = labels("label" + std::to_string(i), positions, kIgnored[i]);
    weight = graph.input("weight", dtype, {kLossClasses});
    model.inputs["weight"] = {0.5, 2, 0.25, 1.5, 1};
    last = graph.input("last", dtype, {inner.back()});
    model.inputs["last"] = {0.75, 2, 3, 0.5, 1.25};
    model.inputs["last"].resize(size_t(inner.back()));
  }

  void run() {
    for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
      addOfLabels(reduction);
      addOfShares(reduction);
      addBinary(reduction);
      addDifferences(reduction);
    }
    graph.minimize(total, optim::SGD{.lr = 0, .momentum = 0.9});
    model.text = graph.str();
  }

private:
  Shape batched(const std::vector<int64_t> &inner) {
    std::vector<Dim> dims{Dim{"batch"}};
    dims.insert(dims.end(), inner.begin(), inner.end());
    return Shape(dims);
  }
  size_t count(const std::vector<int64_t> &inner) const {
    size_t elements = size_t(rows);
    for (int64_t size : inner)
      elements *= size_t(size);
    return elements;
  }
  Tensor floats(const std::string &name, const std::vector<int64_t> &inner, double low, double high) {
    std::vector<float> values = portableUniform(name, count(inner), low, high);
    model.inputs[name] = {values.begin(), values.end()};
    return graph.input(name, dtype, batched(inner));
  }
  /// A third of the labels is ignored.
  Tensor labels(const std::string &name, const std::vector<int64_t> &inner, std::optional<int64_t> ignored) {
    std::vector<int64_t> values = portableIntegers(name, count(inner), kLossClasses);
    for (size_t i = 0; ignored && i < values.size(); i += 3)
      values[i] = *ignored;
    model.inputs[name] = {values.begin(), values.end()};
    return graph.input(name, i32, batched(inner));
  }

  /// The operand of the next loss.
  Tensor logits() {
    Tensor scale = net.parameter("scale_" + name(), Shape(shape), init::uniform(0.5, 1.5));
    return isTransposed ? (x * scale).transpose(1, 2) : x * scale;
  }
  std::string name() const { return "l" + std::to_string(model.losses.size()); }

  void add(const Tensor &loss, const char *function, const char *of, Reduction reduction, json options) {
    static const char *const names[] = {"mean", "sum", "none"};
    options["reduction"] = names[size_t(reduction)];
    graph.output(name(), loss);
    Tensor scalar = reduction == Reduction::none ? square(loss).mean() : loss;
    total = total ? total + scalar : scalar;
    model.losses.push_back({{"name", name()}, {"function", function}, {"target", of}, {"options", std::move(options)}});
  }

  void addOfLabels(Reduction reduction) {
    for (bool weighs : {false, true})
      for (int ignored : {-1, 0, 1}) {
        Tensor of = ignored < 0 ? label : ignoring[ignored], weights = weighs ? weight : Tensor();
        std::string target = ignored < 0 ? "label" : "label" + std::to_string(ignored);
        std::optional<int64_t> index = ignored < 0 ? std::nullopt : std::optional(kIgnored[ignored]);
        json options = json::object();
        if (weighs)
          options["weight"] = "weight";
        if (index)
          options["ignore_index"] = *index;
        add(nll_loss(logits(), of, {weights, index, reduction}), "nll_loss", target.c_str(), reduction, options);
        for (double smoothing : {0.0, 0.1, 1.0}) {
          if (smoothing > 0)
            options["label_smoothing"] = smoothing;
          add(cross_entropy(logits(), of, {weights, index, smoothing, reduction}), "cross_entropy", target.c_str(),
              reduction, options);
        }
      }
  }

  void addOfShares(Reduction reduction) {
    for (bool weighs : {false, true})
      for (double smoothing : {0.0, 0.1}) {
        json options = json::object();
        if (weighs)
          options["weight"] = "weight";
        if (smoothing > 0)
          options["label_smoothing"] = smoothing;
        Tensor shares = isTransposed ? target.transpose(1, 2) : target;
        CrossEntropyOptions given{
            .weight = weighs ? weight : Tensor(), .label_smoothing = smoothing, .reduction = reduction};
        add(cross_entropy(logits(), shares, given), "cross_entropy", "target", reduction, options);
      }
  }

  void addBinary(Reduction reduction) {
    if (isTransposed)
      return;
    for (bool weighs : {false, true})
      for (bool weighsPositives : {false, true}) {
        json options = json::object();
        if (weighs)
          options["weight"] = "last";
        if (weighsPositives)
          options["pos_weight"] = "last";
        BinaryCrossEntropyOptions given{weighs ? last : Tensor(), weighsPositives ? last : Tensor(), reduction};
        add(binary_cross_entropy_with_logits(logits(), target, given), "binary_cross_entropy_with_logits", "target",
            reduction, options);
      }
  }

  void addDifferences(Reduction reduction) {
    if (isTransposed)
      return;
    add(mse_loss(logits(), target, reduction), "mse_loss", "target", reduction, json::object());
    add(l1_loss(logits(), target, reduction), "l1_loss", "target", reduction, json::object());
    add(huber_loss(logits(), target, reduction), "huber_loss", "target", reduction, json::object());
    for (double border : {0.4, 1.75}) {
      add(huber_loss(logits(), target, reduction, border), "huber_loss", "target", reduction, {{"delta", border}});
      add(smooth_l1_loss(logits(), target, reduction, border), "smooth_l1_loss", "target", reduction,
          {{"beta", border}});
    }
    add(smooth_l1_loss(logits(), target, reduction, 0), "smooth_l1_loss", "target", reduction, {{"beta", 0.0}});
  }

  LossModel &model;
  int64_t rows;
  DType dtype;
  bool isTransposed;
  Graph graph{"losses"};
  nn::Module net{graph};
  std::vector<Dim> shape;
  Tensor x, target, label, ignoring[2], weight, last, total;
};

} // namespace

LossModel::LossModel(const std::string &form, DType dtype, int64_t rows) : losses(json::array()) {
  LossList(*this, form, dtype, rows).run();
}

} // namespace sluice::test
