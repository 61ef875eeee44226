// Replicas of a module that train as one.
#include "sluice/array/mirrored.h"
#include "sluice/array/ops.h"
#include "sluice/array/tape.h"

namespace sluice {

void allreduce(std::vector<Array> &arrays, std::source_location where) {
  for (size_t i = 1; i < arrays.size(); ++i) {
    Array there = arrays[i].to(arrays[0].device(where), where);
    detail::assign({arrays[0], where}, add(ArrayArg(arrays[0], where), ArrayArg(there, where)));
  }
  for (size_t i = 1; i < arrays.size(); ++i)
    arrays[0].copy_to(arrays[i], where);
}

namespace detail {

MirroredModules::MirroredModules(std::vector<Device> devices, std::vector<nn::Module *> modules,
                                 std::source_location where)
    : places(std::move(devices)), modules(std::move(modules)) {
  if (places.empty())
    throw Error("Mirrored: the list of devices is empty", where);
  for (size_t i = 0; i < places.size(); ++i)
    this->modules[i]->to(places[i], where);
}

void MirroredModules::minimize(const optim::Optimizer &its, const optim::Options &more) {
  optimizer = its;
  options = more;
}

/// Makes all replicas equal. Lazy layers have their parameters after a call.
void MirroredModules::begin(const std::vector<Array> &x, std::source_location where) {
  NoGrad pause;
  for (size_t i = 0; i < modules.size(); ++i) {
    modules[i]->eval();
    (*modules[i])(ArrayArg(x[i], where));
    modules[i]->train();
  }
  for (size_t i = 1; i < modules.size(); ++i)
    modules[i]->load_state_dict(modules[0]->state_dict(where), where);
  for (nn::Module *module : modules)
    trainers.emplace_back(*module, optimizer, options, where);
}

Array MirroredModules::trainBatch(const Array &x, const Array &y, const BatchLoss &loss, std::source_location where) {
  auto [xs, ys] = split_batch(ArrayArg(x, where), y, places, {.even_split = false});
  if (trainers.empty())
    begin(xs, where);
  double rows = double(x.size(0, where));
  std::vector<Array> losses;
  for (size_t i = 0; i < modules.size(); ++i) { // all devices work at once
    Tape tape;
    double share = double(xs[i].size(0)) / rows;
    losses.push_back(mul(loss((*modules[i])(ArrayArg(xs[i], where)), ys[i]), share));
    losses.back().backward(false, where);
  }
  std::vector<std::vector<Array>> parameters;
  for (nn::Module *module : modules)
    parameters.push_back(module->parameters(where));
  for (size_t number = 0; number < parameters[0].size(); ++number) {
    std::vector<Array> gradients;
    for (const std::vector<Array> &its : parameters)
      if (Array gradient = its[number].grad(); bool{gradient})
        gradients.push_back(std::move(gradient));
    allreduce(gradients, where);
  }
  for (optim::Trainer &trainer : trainers)
    trainer.step(where);
  Array sum = losses[0].detach(where);
  for (size_t i = 1; i < losses.size(); ++i)
    sum = add(sum, losses[i].detach(where).to(places[0], where));
  return sum;
}

} // namespace detail
} // namespace sluice
