// Training: optimizers, groups of parameters, clips and schedules.
#include "frontend/graph/Training.h"

#include <cmath>
#include <limits>
#include <map>

using namespace mlir;

namespace sluice::detail {

namespace {

/// Validates numbers of `owner` and creates their attributes.
class Numbers {
public:
  Numbers(const Call &call, const char *owner) : call(call), owner(owner) {}

  [[noreturn]] void fail(const std::string &message) const { call.fail(std::string(owner) + ": " + message); }

  void require(bool isRight, const char *what, double value) const {
    if (!isRight)
      fail(std::string(what) + " cannot be " + std::to_string(value));
  }
  void requireFinite(const char *what, double value) const { require(std::isfinite(value), what, value); }
  void requireNotNegative(const char *what, double value) const {
    require(value >= 0 && std::isfinite(value), what, value);
  }
  void requirePositive(const char *what, double value) const {
    require(value > 0 && std::isfinite(value), what, value);
  }
  /// In [0, 1).
  void requireShare(const char *what, double value) const { require(value >= 0 && value < 1, what, value); }
  void requireSteps(const char *what, int64_t steps) const {
    if (steps < 1 || steps > INT32_MAX)
      fail(std::string(what) + " is a number of steps, from 1 to 2^31 - 1, not " + std::to_string(steps));
  }

  FloatAttr real(double value) const { return call.graph.builder.getF64FloatAttr(value); }
  MLIRContext *context() const { return &call.graph.context; }

private:
  const Call &call;
  const char *owner;
};

} // namespace

//===- optimizers -------------------------------------------------------------------------------------------------===//

static ir::OptimizerAttr toAttribute(const Call &call, const optim::SGD &sgd) {
  Numbers n(call, "SGD");
  n.requireNotNegative("lr", sgd.lr);
  n.requireNotNegative("momentum", sgd.momentum);
  n.requireFinite("dampening", sgd.dampening);
  n.requireNotNegative("weight_decay", sgd.weight_decay);
  if (sgd.nesterov && (sgd.momentum == 0 || sgd.dampening != 0))
    n.fail("Nesterov's momentum needs a momentum and no dampening");
  return ir::SgdAttr::get(n.context(), n.real(sgd.momentum), n.real(sgd.dampening), n.real(sgd.weight_decay),
                          sgd.nesterov);
}

template <typename Adam>
static ir::OptimizerAttr adamAttribute(const Numbers &n, const Adam &adam, bool decoupledDecay) {
  n.requireNotNegative("lr", adam.lr);
  n.requireShare("betas[0]", adam.betas.first);
  n.requireShare("betas[1]", adam.betas.second);
  n.requireNotNegative("eps", adam.eps);
  n.requireNotNegative("weight_decay", adam.weight_decay);
  return ir::AdamAttr::get(n.context(), n.real(adam.betas.first), n.real(adam.betas.second), n.real(adam.eps),
                           n.real(adam.weight_decay), decoupledDecay, adam.amsgrad);
}

static ir::OptimizerAttr toAttribute(const Call &call, const optim::Adam &adam) {
  return adamAttribute(Numbers(call, "Adam"), adam, /*decoupledDecay=*/false);
}

static ir::OptimizerAttr toAttribute(const Call &call, const optim::AdamW &adam) {
  return adamAttribute(Numbers(call, "AdamW"), adam, /*decoupledDecay=*/true);
}

static ir::OptimizerAttr toAttribute(const Call &call, const optim::RMSprop &rms) {
  Numbers n(call, "RMSprop");
  n.requireNotNegative("lr", rms.lr);
  n.requireNotNegative("alpha", rms.alpha);
  n.requireNotNegative("eps", rms.eps);
  n.requireNotNegative("weight_decay", rms.weight_decay);
  n.requireNotNegative("momentum", rms.momentum);
  return ir::RmsPropAttr::get(n.context(), n.real(rms.alpha), n.real(rms.eps), n.real(rms.weight_decay),
                              n.real(rms.momentum), rms.centered);
}

//===- schedules --------------------------------------------------------------------------------------------------===//

static ir::LrScheduleAttr toAttribute(const Call &call, const optim::StepLR &schedule) {
  Numbers n(call, "StepLR");
  n.requireSteps("step_size", schedule.step_size);
  n.requireNotNegative("gamma", schedule.gamma);
  return ir::StepLrAttr::get(n.context(), schedule.step_size, n.real(schedule.gamma));
}

static ir::LrScheduleAttr toAttribute(const Call &call, const optim::LinearLR &schedule) {
  Numbers n(call, "LinearLR");
  n.require(schedule.start_factor > 0 && schedule.start_factor <= 1, "start_factor", schedule.start_factor);
  n.require(schedule.end_factor >= 0 && schedule.end_factor <= 1, "end_factor", schedule.end_factor);
  n.requireSteps("total_iters", schedule.total_iters);
  return ir::LinearLrAttr::get(n.context(), n.real(schedule.start_factor), n.real(schedule.end_factor),
                               schedule.total_iters);
}

static ir::LrScheduleAttr toAttribute(const Call &call, const optim::CosineAnnealingLR &schedule) {
  Numbers n(call, "CosineAnnealingLR");
  n.requireSteps("T_max", schedule.T_max);
  n.requireNotNegative("eta_min", schedule.eta_min);
  return ir::CosineAnnealingLrAttr::get(n.context(), schedule.T_max, n.real(schedule.eta_min));
}

template <typename... Kinds> static auto anyToAttribute(const Call &call, const std::variant<Kinds...> &any) {
  return std::visit([&](const auto &one) { return toAttribute(call, one); }, any);
}

static ir::LrScheduleAttr toAttribute(const Call &call, const optim::SequentialLR &schedule) {
  Numbers n(call, "SequentialLR");
  if (schedule.schedulers.size() != schedule.milestones.size() + 1)
    n.fail(std::to_string(schedule.schedulers.size()) + " schedules need one milestone fewer, not " +
           std::to_string(schedule.milestones.size()));
  for (size_t i = 0; i < schedule.milestones.size(); ++i) {
    n.requireSteps("a milestone", schedule.milestones[i]);
    if (i > 0 && schedule.milestones[i] <= schedule.milestones[i - 1])
      n.fail("milestones must increase, but " + std::to_string(schedule.milestones[i]) + " follows " +
             std::to_string(schedule.milestones[i - 1]));
  }
  SmallVector<Attribute> schedulers;
  for (const auto &scheduler : schedule.schedulers)
    schedulers.push_back(anyToAttribute(call, scheduler));
  return ir::SequentialLrAttr::get(n.context(), ArrayAttr::get(n.context(), schedulers),
                                   DenseI64ArrayAttr::get(n.context(), schedule.milestones));
}

//===- groups -----------------------------------------------------------------------------------------------------===//

/// The group of each parameter that the loss depends on, and the pattern that selected the group.
static std::map<std::string, std::pair<size_t, std::string>>
assignGroups(const Call &call, const std::vector<std::string> &names, const std::vector<optim::Group> &groups) {
  std::map<std::string, std::pair<size_t, std::string>> groupOf;
  for (size_t number = 0; number < groups.size(); ++number)
    for (const std::string &pattern : groups[number].params) {
      bool found = false;
      for (const std::string &name : names) {
        if (!matches(pattern, name))
          continue;
        found = true;
        auto [known, isNew] = groupOf.try_emplace(name, number, pattern);
        if (!isNew && known->second.first != number)
          call.fail("the parameter '" + name + "' is in two groups, by '" + known->second.second + "' and by '" +
                    pattern + "'");
      }
      if (!found)
        call.fail("no parameter that the loss depends on matches '" + pattern + "'");
    }
  return groupOf;
}

static ir::ParameterGroupAttr toAttribute(const Call &call, const optim::Group &group, optim::Optimizer optimizer,
                                          ArrayRef<Attribute> parameters) {
  Numbers n(call, "a group");
  n.requireNotNegative("lr_factor", group.lr_factor);
  if (group.weight_decay)
    std::visit([&](auto &own) { own.weight_decay = *group.weight_decay; }, optimizer);
  return ir::ParameterGroupAttr::get(n.context(), ArrayAttr::get(n.context(), parameters),
                                     anyToAttribute(call, optimizer), n.real(group.lr_factor));
}

//===- arguments of minimize --------------------------------------------------------------------------------------===//

/// Null if there are no clips.
static ArrayAttr clipsOf(const Call &call, const optim::Options &options) {
  Numbers n(call, "clip");
  SmallVector<Attribute> clips;
  if (options.clip_grad_value) {
    n.requirePositive("clip_grad_value", *options.clip_grad_value);
    clips.push_back(ir::ClipGradValueAttr::get(n.context(), n.real(*options.clip_grad_value)));
  }
  if (options.clip_grad_norm) {
    n.requirePositive("clip_grad_norm", *options.clip_grad_norm);
    clips.push_back(ir::ClipGradNormAttr::get(n.context(), n.real(*options.clip_grad_norm)));
  }
  return clips.empty() ? ArrayAttr() : ArrayAttr::get(n.context(), clips);
}

static ir::EmaAttr emaOf(const Call &call, const std::optional<optim::EMA> &ema) {
  if (!ema)
    return {};
  Numbers n(call, "EMA");
  n.requireShare("decay", ema->decay);
  return ir::EmaAttr::get(n.context(), n.real(ema->decay));
}

static ir::LossScaleAttr lossScaleOf(const Call &call, const std::optional<optim::LossScale> &scale) {
  if (!scale)
    return {};
  Numbers n(call, "LossScale");
  n.require(scale->init_scale >= std::numeric_limits<float>::min() &&
                scale->init_scale <= std::numeric_limits<float>::max(),
            "init_scale", scale->init_scale);
  n.require(scale->growth_factor >= 1 && std::isfinite(scale->growth_factor), "growth_factor", scale->growth_factor);
  n.require(scale->backoff_factor > 0 && scale->backoff_factor < 1, "backoff_factor", scale->backoff_factor);
  n.requireSteps("growth_interval", scale->growth_interval);
  return ir::LossScaleAttr::get(n.context(), n.real(scale->init_scale), n.real(scale->growth_factor),
                                n.real(scale->backoff_factor), scale->growth_interval);
}

Training::Training(const Call &call, const TrainedParameters &names, const optim::Optimizer &rule,
                   const optim::Options &options)
    : lr(std::visit([](const auto &own) { return own.lr; }, rule)), optimizer(anyToAttribute(call, rule)),
      clips(clipsOf(call, options)), ema(emaOf(call, options.ema)), lossScale(lossScaleOf(call, options.loss_scale)) {
  if (options.schedule)
    schedule = anyToAttribute(call, *options.schedule);
  auto groupOf = assignGroups(call, names.behind, options.groups);
  MLIRContext *context = &call.graph.context;
  SmallVector<Attribute> rest;
  std::vector<SmallVector<Attribute>> members(options.groups.size());
  for (const std::string &name : names.reached) {
    auto group = groupOf.find(name);
    (group == groupOf.end() ? rest : members[group->second.first]).push_back(FlatSymbolRefAttr::get(context, name));
  }
  parameters = ArrayAttr::get(context, rest);
  SmallVector<Attribute> own;
  for (size_t number = 0; number < members.size(); ++number)
    if (ir::ParameterGroupAttr group = toAttribute(call, options.groups[number], rule, members[number]);
        !members[number].empty())
      own.push_back(group);
  if (!own.empty())
    groups = ArrayAttr::get(context, own);
}

} // namespace sluice::detail
