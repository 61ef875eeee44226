// A training loop: the Trainer of Dive into Deep Learning and of PyTorch Lightning.
//
//     struct Line : Learner {
//       nn::Linear fc{this, "fc", 2, 1};
//       Tensor forward(Tensor x) override { return fc(x); }
//       Array training_step(const Batch &batch) override { return mse_loss((*this)(batch[0]), batch[1]); }
//       optim::Optimizer configure_optimizers() override { return optim::SGD{.lr = 0.03}; }
//     };
//     Line line;
//     Trainer trainer({.max_epochs = 3, .num_gpus = 1, .gradient_clip_val = 1});
//     trainer.fit(line, {.train = batches});
#pragma once

#include "sluice/array/train.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// The arrays of some rows: features, labels, and so on.
using Batch = std::vector<Array>;

/// A module that a Trainer trains.
class Learner : public nn::Module {
public:
  using Module::Module;
  /// The loss of a batch: a float scalar.
  virtual Array training_step(const Batch &batch) = 0;
  /// The same for validation; by default the loss of training_step. It is called in the mode of evaluation.
  virtual Array validation_step(const Batch &batch) { return training_step(batch); }
  virtual optim::Optimizer configure_optimizers() = 0;
};

/// The batches of an epoch: a vector of them, or a function that makes the vector anew for each epoch.
struct TrainingData {
  std::vector<Batch> train = {}, validation = {};
  /// Replaces `train` for the epoch with this number, from 0.
  std::function<std::vector<Batch>(std::int64_t epoch)> make_train = {};
};

/// The figures of an epoch.
struct Epoch {
  std::int64_t number = 0; ///< from 0
  double loss = 0;         ///< the mean over its batches
  std::optional<double> validation_loss = {};
};

/// Called after each epoch; false ends the training.
using EpochCallback = std::function<bool(const Epoch &epoch, Learner &model)>;
/// Prints a line for each epoch to the standard error.
EpochCallback log_epochs();
/// Writes the weights of the epoch with the least loss (of validation, if there is one) to a safetensors file.
EpochCallback checkpoint(const std::string &path);
/// Ends the training when this many epochs in a row have not lowered the loss (of validation, if there is one).
EpochCallback early_stopping(std::int64_t patience);

/// Options of Trainer, with the names and defaults of the book.
struct TrainerOptions {
  std::int64_t max_epochs = 1;
  int num_gpus = 0;             ///< the first accelerator is used if it is above 0 and there is one
  double gradient_clip_val = 0; ///< the largest L2 norm of all gradients together; 0: unlimited
  std::vector<EpochCallback> callbacks = {};
};

class Trainer {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;

  /// Throws Error for negative numbers.
  explicit Trainer(TrainerOptions options = {}, Where where = Where::current());

  /// The accelerators that it uses: gpu(0) to gpu(n - 1) with n = min(num_gpus, gpu_count()).
  const std::vector<Device> &devices() const { return gpus; }
  /// Moves each array of a batch, and a model, to the first of `devices`; does nothing without one.
  Batch prepare_batch(const Batch &batch, Where where = Where::current()) const;
  void prepare_model(Learner &model, Where where = Where::current()) const;
  /// Trains the model. Losses stay on the device; the host reads them once in an epoch. Returns the figures of all epochs.
  std::vector<Epoch> fit(Learner &model, const TrainingData &data, Where where = Where::current());

private:
  TrainerOptions options;
  std::vector<Device> gpus;
};

} // namespace sluice
