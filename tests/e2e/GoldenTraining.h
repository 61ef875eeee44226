// Training from a network's initial values on its batches, and comparison with PyTorch's results.
#pragma once

#include "tests/e2e/Golden.h"

namespace sluice::test {

/// The results of training.
struct GoldenRun {
  std::vector<double> losses; ///< before each update
  Values first;               ///< gradients, if the model's own optimizer reveals them
  Values final, predicted;    ///< only if all steps were run
};

/// Sets the initial states of PyTorch's training.
template <typename Model> void setInitial(Model &model, const Golden &golden) {
  model.init(0);
  for (const std::string &name : golden.parameters())
    model.setState(name, golden.initial(name));
}

/// The first gradients, computed from the optimizer's states.
template <typename Model> Values firstGradients(const Model &model, const Golden &golden) {
  Values gradients;
  for (const std::string &name : golden.parameters())
    gradients[name] = golden.firstGradient(name, model.state(name + golden.keptGradient()));
  return gradients;
}

/// The text of a model that keeps its gradients as momentum, before clipping.
std::string withMomentum(std::string text, const Golden &golden);

/// Trains all recorded steps, or only the first `steps`.
template <typename Model> GoldenRun train(Model &model, const Golden &golden, int steps) {
  GoldenRun result;
  setInitial(model, golden);
  for (int step = 0; step < steps; ++step) {
    result.losses.push_back(model.run("train_step", golden.batch(step), golden.rows(step)).at("loss")[0]);
    if (step == 0 && golden.isAdamW())
      result.first = firstGradients(model, golden);
  }
  if (steps < golden.steps())
    return result;
  for (auto &[name, digest] : golden.finalValues().items())
    result.final[name] = model.state(name);
  if (!golden.predicted().empty())
    result.predicted = model.run("predict", golden.batch(0), golden.rows());
  return result;
}

/// Compares norm and samples of every tensor with the recorded values, relative to the norm.
void expectDigests(const Values &values, const nlohmann::json &digests, double tolerance);

/// Compares losses to 1e-9, and if all steps were run, the final values and the predictions.
void expectTruth(const GoldenRun &run, const Golden &golden);

/// Compares loss and gradients of the first step to 1e-9.
template <typename Model> void expectFirstStep(Model &model, const Golden &golden) {
  expectTruth(train(model, golden, 1), golden);
  expectDigests(firstGradients(model, golden), golden.firstGradients(), 1e-9);
}

/// The allowed f32 error for a given error of PyTorch's f32.
double allowedError(double theirs);

/// AdamW's first step is the rate times the gradient's sign, however small the gradient. If f32 exceeds the yardstick
/// in a few elements whose first gradient is zero except for rounding, these elements are replaced by the f64 values.
void settleTies(GoldenRun &run, const GoldenRun &truth, const nlohmann::json &digests);

/// The tensors whose error exceeds their yardstick, with the errors.
std::map<std::string, double> beyondYardstick(const Values &values, const Values &truth, const nlohmann::json &digests);

} // namespace sluice::test
