// What PyTorch computes in float64 for a model program, and what it computes it from: initial values and batches that
// any program can reproduce (Portable.h).
#pragma once

#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::test {

/// What tests/data/golden/make_golden.py ran.
struct Network {
  std::string name;                ///< of the program
  std::string figures;             ///< of the file: the program's name, and a variant behind a dot
  std::vector<int64_t> input;      ///< shape of one image, or of a row of words
  int64_t classes;                 ///< of the labels
  std::string lastNorm = "(none)"; ///< the norms that end a residual branch, whose weights begin small
  bool labelsPixels = false;       ///< each pixel has a label
  std::string arguments = "";      ///< of the program, beside those that all have
  /// The inputs that have a row's words, and for each of them the next; none of images.
  std::vector<std::string> words = {};
  /// What of their names PyTorch's figures call otherwise than the program: theirs, and its own. These matrices lie
  /// transposed in the program.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  /// Parts of the program's text, and what stands there in that of the figures: of a smaller network, say.
  std::vector<std::pair<std::string, std::string>> replaced = {};
};

class Golden {
public:
  explicit Golden(Network net);

  /// The model that the figures are of, with the program's own optimizer.
  std::string model() const;
  /// The same with the optimizer of the figures.
  std::string modelWithOptimizer() const;
  /// Whether it keeps momentum.
  bool hasMomentum() const { return figures["optimizer"].value("momentum", 0.0) != 0; }
  bool isAdamW() const { return figures["optimizer"]["kind"] == "AdamW"; }
  /// Whether it keeps what first gradients were.
  bool keepsGradients() const { return hasMomentum() || isAdamW(); }
  /// Behind a parameter's name, that of the state which is left of its gradient.
  const char *keptGradient() const { return isAdamW() ? ".exp_avg" : ".momentum_buffer"; }
  /// A gradient of the first step, of what is kept of it.
  std::vector<double> firstGradient(const std::string &parameter, std::vector<double> kept) const;

  int64_t rows() const { return figures["batch"]; }
  /// Of a step: those, or fewer.
  int64_t rows(int step) const;
  Values batch(int step) const;
  const std::vector<std::string> &parameters() const { return names; }
  std::vector<double> initial(const std::string &parameter) const;

  /// How many steps were recorded.
  int steps() const { return int(figures["loss_f64"].size()); }

  double loss(int step) const { return figures["loss_f64"][step]; }
  double lossError() const { return figures["loss_f32_max_rel_error"]; } ///< of PyTorch's f32
  /// By tensor: norm, samples, and the error of PyTorch's f32.
  const nlohmann::json &firstGradients() const { return figures["first_gradient"]; }
  const nlohmann::json &finalValues() const { return figures["final"]; }
  /// Of the first batch, behind the last step; older files have none.
  nlohmann::json predicted() const { return figures.value("predicted", nlohmann::json::object()); }

private:
  bool isImage() const { return net.input.size() == 3; }
  nlohmann::json asInProgram(const nlohmann::json &digests) const;
  void addPatches(std::vector<float> &x, const std::vector<float> &patches) const;

  Network net;
  nlohmann::json figures;
  std::vector<std::string> names;
};

} // namespace sluice::test
