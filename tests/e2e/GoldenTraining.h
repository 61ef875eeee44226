// Training from a network's initial values, on its batches, and how PyTorch's figures judge it.
#pragma once

#include "tests/e2e/Golden.h"

namespace sluice::test {

/// What training gives.
struct GoldenRun {
  std::vector<double> losses; ///< before each update
  Values first;               ///< gradients, if the model's own optimizer keeps them
  Values final, predicted;    ///< if it has come to the last step
};

/// States as PyTorch's training began with.
template <typename Model> void setInitial(Model &model, const Golden &golden) {
  model.init(0);
  for (const std::string &name : golden.parameters())
    model.setState(name, golden.initial(name));
}

/// What the optimizer keeps of the first gradients, as they were.
template <typename Model> Values firstGradients(const Model &model, const Golden &golden) {
  Values gradients;
  for (const std::string &name : golden.parameters())
    gradients[name] = golden.firstGradient(name, model.state(name + golden.keptGradient()));
  return gradients;
}

/// The text of a model that keeps its gradients, as momentum, before anything clips them.
std::string withMomentum(std::string text, const Golden &golden);

/// All steps that were recorded, or the first of them.
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

/// Norm and samples of every tensor against the recorded ones, relative to the norm.
void expectDigests(const Values &values, const nlohmann::json &digests, double tolerance);

/// Losses to 1e-9, and the final values and what is predicted with them if the run got so far.
void expectTruth(const GoldenRun &run, const Golden &golden);

/// Loss and gradients of the first step, to 1e-9.
template <typename Model> void expectFirstStep(Model &model, const Golden &golden) {
  expectTruth(train(model, golden, 1), golden);
  expectDigests(firstGradients(model, golden), golden.firstGradients(), 1e-9);
}

/// The error that f32 may have where PyTorch's has this one.
double allowedError(double theirs);

/// AdamW's first step is the rate times the gradient's sign, however small the gradient. Where f32 exceeds the yardstick by
/// elements whose first gradient is zero but for rounding, of which there are a few, it is given what f64 has.
void settleTies(GoldenRun &run, const GoldenRun &truth, const nlohmann::json &digests);

/// The tensors whose error exceeds their yardstick, and their errors.
std::map<std::string, double> beyondYardstick(const Values &values, const Values &truth, const nlohmann::json &digests);

} // namespace sluice::test
