#include "tests/e2e/torch/OptimizerCase.h"
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"

using nlohmann::json;

namespace sluice::test {

namespace {

constexpr int64_t kFeatures = 6, kHidden = 5, kClasses = 3, kSteps = 12;

struct Scaling : nn::Module {
  using Module::Module;
  Tensor weight = parameter("weight", {kHidden}, init::uniform(0.5, 1.5));
  Tensor forward(Tensor x) override { return x * weight; }
};

struct TrainedNet : nn::Module {
  using Module::Module;
  nn::Linear fc1{this, "fc1", kFeatures, kHidden};
  Scaling norm{this, "norm"};
  nn::Linear fc2{this, "fc2", kHidden, kClasses};
  Tensor forward(Tensor x) override { return fc2(tanh(norm(fc1(x)))); }
};

void read(const json &from, const char *name, auto &value) {
  if (from.contains(name))
    from[name].get_to(value);
}

template <typename Value> std::optional<Value> maybe(const json &from, const char *name) {
  return from.contains(name) ? std::optional<Value>(from[name].get<Value>()) : std::nullopt;
}

optim::SGD readSgd(const json &from) {
  optim::SGD sgd;
  read(from, "lr", sgd.lr);
  read(from, "momentum", sgd.momentum);
  read(from, "dampening", sgd.dampening);
  read(from, "weight_decay", sgd.weight_decay);
  read(from, "nesterov", sgd.nesterov);
  return sgd;
}

template <typename Adam> Adam readAdam(const json &from) {
  Adam adam;
  read(from, "lr", adam.lr);
  read(from, "betas", adam.betas);
  read(from, "eps", adam.eps);
  read(from, "weight_decay", adam.weight_decay);
  read(from, "amsgrad", adam.amsgrad);
  return adam;
}

optim::RMSprop readRmsProp(const json &from) {
  optim::RMSprop rms;
  read(from, "lr", rms.lr);
  read(from, "alpha", rms.alpha);
  read(from, "eps", rms.eps);
  read(from, "weight_decay", rms.weight_decay);
  read(from, "momentum", rms.momentum);
  read(from, "centered", rms.centered);
  return rms;
}

optim::Optimizer readOptimizer(const json &recipe) {
  const std::string &kind = recipe["optimizer"];
  const json &settings = recipe["settings"];
  if (kind == "SGD")
    return readSgd(settings);
  if (kind == "RMSprop")
    return readRmsProp(settings);
  return kind == "Adam" ? optim::Optimizer(readAdam<optim::Adam>(settings)) : readAdam<optim::AdamW>(settings);
}

std::variant<optim::StepLR, optim::LinearLR, optim::CosineAnnealingLR> readSimple(const json &from) {
  if (from["kind"] == "StepLR") {
    optim::StepLR step{.step_size = from["step_size"]};
    read(from, "gamma", step.gamma);
    return step;
  }
  if (from["kind"] == "LinearLR") {
    optim::LinearLR linear;
    read(from, "start_factor", linear.start_factor);
    read(from, "end_factor", linear.end_factor);
    read(from, "total_iters", linear.total_iters);
    return linear;
  }
  optim::CosineAnnealingLR cosine{.T_max = from["T_max"]};
  read(from, "eta_min", cosine.eta_min);
  return cosine;
}

optim::Schedule readSchedule(const json &from) {
  if (from["kind"] != "SequentialLR")
    return std::visit([](auto schedule) -> optim::Schedule { return schedule; }, readSimple(from));
  optim::SequentialLR sequence;
  for (const json &scheduler : from["schedulers"])
    sequence.schedulers.push_back(readSimple(scheduler));
  from["milestones"].get_to(sequence.milestones);
  return sequence;
}

optim::Options readOptions(const json &recipe) {
  optim::Options options;
  if (recipe.contains("groups"))
    for (const json &from : recipe["groups"]) {
      optim::Group group{.params = from["params"], .weight_decay = maybe<double>(from, "weight_decay")};
      read(from, "lr_factor", group.lr_factor);
      options.groups.push_back(group);
    }
  options.clip_grad_value = maybe<double>(recipe, "clip_grad_value");
  options.clip_grad_norm = maybe<double>(recipe, "clip_grad_norm");
  if (recipe.contains("schedule"))
    options.schedule = readSchedule(recipe["schedule"]);
  if (recipe.contains("ema"))
    options.ema = optim::EMA{.decay = recipe["ema"]};
  return options;
}

} // namespace

OptimizerCase::OptimizerCase(const json &recipe, DType dtype) {
  Graph graph("optimizer");
  graph.set_capacity(kCapacity);
  graph.set_dtype(dtype);
  Tensor x = graph.input("x", dtype, {Dim{"batch"}, kFeatures}), label = graph.input("label", i32, {Dim{"batch"}});
  TrainedNet net(graph);
  Tensor logits = net(x);
  graph.output("logits", logits);
  graph.minimize(cross_entropy(logits, label), readOptimizer(recipe), readOptions(recipe));
  text = graph.str();
  for (int64_t step = 0; step < kSteps; ++step) {
    rows.push_back(step % 4 ? kCapacity : 1 + step % kCapacity);
    std::string name = "optimizer/" + std::to_string(step);
    double scale = step % 3 ? 1 : 8;
    std::vector<float> values = portableUniform(name, size_t(rows.back() * kFeatures), -scale, scale);
    std::vector<int64_t> labels = portableIntegers(name + "/label", size_t(rows.back()), kClasses);
    steps.push_back({{"x", {values.begin(), values.end()}}, {"label", {labels.begin(), labels.end()}}});
  }
}

} // namespace sluice::test
