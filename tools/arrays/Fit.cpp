// A training loop on arrays.
#include "sluice/array/fit.h"
#include "sluice/array/ops.h"
#include "sluice/array/tape.h"
#include <cstdio>
#include <limits>
#include <memory>

namespace sluice {

Trainer::Trainer(TrainerOptions its, Where where) : options(std::move(its)) {
  if (options.max_epochs < 0 || options.num_gpus < 0 || !(options.gradient_clip_val >= 0))
    throw Error("Trainer: max_epochs, num_gpus and gradient_clip_val must not be negative: " +
                    std::to_string(options.max_epochs) + ", " + std::to_string(options.num_gpus) + ", " +
                    std::to_string(options.gradient_clip_val),
                where);
  for (int i = 0; i < std::min(options.num_gpus, gpu_count()); ++i)
    gpus.push_back(gpu(i));
}

Batch Trainer::prepare_batch(const Batch &batch, Where where) const {
  Batch moved;
  for (const Array &array : batch)
    moved.push_back(gpus.empty() ? array : array.to(gpus.front(), where));
  return moved;
}

void Trainer::prepare_model(Learner &model, Where where) const {
  if (!gpus.empty())
    model.to(gpus.front(), where);
}

/// The mean of scalars on a device, which the host reads at once.
static double meanOf(const std::vector<Array> &losses, std::source_location where) {
  static constexpr size_t part = 64; // a function of all losses would be compiled for each number of batches
  double sum = 0;
  for (size_t begin = 0; begin < losses.size(); begin += part) {
    std::vector<Array> some(losses.begin() + std::ptrdiff_t(begin),
                            losses.begin() + std::ptrdiff_t(std::min(begin + part, losses.size())));
    some.resize(part, some.front().new_zeros({}, where)); // so that one function serves all
    sum += stack(some, 0, where).to(f64, where).sum({}, false, where).item(where);
  }
  return losses.empty() ? 0 : sum / double(losses.size());
}

std::vector<Epoch> Trainer::fit(Learner &model, const TrainingData &data, Where where) {
  prepare_model(model, where);
  optim::Options limits;
  if (options.gradient_clip_val > 0)
    limits.clip_grad_norm = options.gradient_clip_val;
  std::unique_ptr<optim::Trainer> optimizer; // lazy layers have parameters after the first batch
  std::vector<Epoch> epochs;
  for (std::int64_t number = 0; number < options.max_epochs; ++number) {
    std::vector<Array> losses;
    model.train();
    for (const Batch &given : data.make_train ? data.make_train(number) : data.train) {
      Batch batch = prepare_batch(given, where);
      auto tape = record();
      Array loss = model.training_step(batch);
      loss.backward(false, where);
      if (!optimizer)
        optimizer = std::make_unique<optim::Trainer>(model, model.configure_optimizers(), limits, where);
      optimizer->step(where);
      losses.push_back(loss.detach(where));
    }
    Epoch epoch{number, meanOf(losses, where)};
    if (!data.validation.empty()) {
      NoGrad pause;
      model.eval();
      losses.clear();
      for (const Batch &batch : data.validation)
        losses.push_back(model.validation_step(prepare_batch(batch, where)));
      epoch.validation_loss = meanOf(losses, where);
    }
    epochs.push_back(epoch);
    bool goesOn = true;
    for (const EpochCallback &callback : options.callbacks)
      goesOn &= callback(epoch, model);
    if (!goesOn)
      break;
  }
  return epochs;
}

//===- callbacks --------------------------------------------------------------------------------------------------===//

EpochCallback log_epochs() {
  return [](const Epoch &epoch, Learner &) {
    std::fprintf(stderr, "epoch %lld: loss %g", static_cast<long long>(epoch.number), epoch.loss);
    if (epoch.validation_loss)
      std::fprintf(stderr, ", validation %g", *epoch.validation_loss);
    std::fprintf(stderr, "\n");
    return true;
  };
}

static double watchedLoss(const Epoch &epoch) { return epoch.validation_loss.value_or(epoch.loss); }

EpochCallback checkpoint(const std::string &path) {
  return [path, least = std::numeric_limits<double>::infinity()](const Epoch &epoch, Learner &model) mutable {
    if (watchedLoss(epoch) < least) {
      least = watchedLoss(epoch);
      model.save(path);
    }
    return true;
  };
}

EpochCallback early_stopping(std::int64_t patience) {
  return [patience, least = std::numeric_limits<double>::infinity(), worse = std::int64_t(0)](const Epoch &epoch,
                                                                                              Learner &) mutable {
    worse = watchedLoss(epoch) < least ? 0 : worse + 1;
    least = std::min(least, watchedLoss(epoch));
    return worse < patience;
  };
}

} // namespace sluice
