// Replicas of a module on several devices, which train as one: tf.distribute.MirroredStrategy, ParameterStore of DJL.
//
//     Mirrored<Net> net(try_all_gpus());                  // declared and initialized once
//     net.minimize(optim::SGD{.lr = 0.1});
//     for (auto &[x, y] : batches)
//       double loss = net.train_batch(x, y, [](const Array &logits, const Array &label) {
//         return cross_entropy(logits, label);
//       }).item();
#pragma once

#include "sluice/array/data_parallel.h"
#include "sluice/array/train.h"

#include <functional>
#include <memory>
#include <source_location>
#include <vector>

namespace sluice {

/// The mean loss of the rows of logits and labels: a float scalar.
using BatchLoss = std::function<Array(const Array &result, const Array &label)>;

namespace detail {

/// The part of Mirrored that does not depend on the type of the module.
class MirroredModules {
public:
  MirroredModules(std::vector<Device> devices, std::vector<nn::Module *> modules, std::source_location where);
  void minimize(const optim::Optimizer &optimizer, const optim::Options &options);
  Array trainBatch(const Array &x, const Array &y, const BatchLoss &loss, std::source_location where);
  const std::vector<Device> &devices() const { return places; }

private:
  void begin(const std::vector<Array> &x, std::source_location where);

  std::vector<Device> places;
  std::vector<nn::Module *> modules;
  optim::Optimizer optimizer = optim::SGD{};
  optim::Options options;
  std::vector<optim::Trainer> trainers; ///< of each replica, after the first batch
};

} // namespace detail

/// One replica of Net, a module that is constructed without a graph, on each device. All begin with the values of the
/// first, and stay equal: each computes the gradients of its rows, the gradients are summed (allreduce), and each updates
/// its parameters alike. Statistics of batch norm are those of each replica.
template <class Net> class Mirrored {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;

  /// Throws Error for an empty list.
  explicit Mirrored(std::vector<Device> devices, Where where = Where::current())
      : replicas(makeReplicas(devices.size())), modules(std::move(devices), pointersTo(replicas), where) {}

  /// Selects the optimizer, before the first batch; by default SGD with its defaults.
  void minimize(const optim::Optimizer &optimizer, const optim::Options &options = {}) {
    modules.minimize(optimizer, options);
  }
  /// Trains on a batch, whose rows are split among the replicas; they need not be even. Returns the mean loss of all rows
  /// before the step, on the first device. Throws Error if a replica would get no row.
  Array train_batch(const Array &x, const Array &y, const BatchLoss &loss, Where where = Where::current()) {
    return modules.trainBatch(x, y, loss, where);
  }
  const std::vector<Device> &devices() const { return modules.devices(); }
  /// The replica on device number `number`; any of them predicts.
  Net &replica(std::size_t number = 0) { return *replicas.at(number); }

private:
  using Replicas = std::vector<std::unique_ptr<Net>>;
  static Replicas makeReplicas(std::size_t count) {
    Replicas made;
    for (std::size_t i = 0; i < count; ++i)
      made.push_back(std::make_unique<Net>());
    return made;
  }
  static std::vector<nn::Module *> pointersTo(const Replicas &replicas) {
    std::vector<nn::Module *> pointers;
    for (const std::unique_ptr<Net> &replica : replicas)
      pointers.push_back(replica.get());
    return pointers;
  }

  Replicas replicas;
  detail::MirroredModules modules;
};

} // namespace sluice
