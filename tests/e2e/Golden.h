// PyTorch's float64 results for a model program, and their inputs: initial values and batches that any program can
// reproduce (Portable.h).
#pragma once

#include "tests/e2e/Harness.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::test {

/// A network that tests/data/golden/make_golden.py ran.
struct Network {
  std::string name;                ///< name of the program
  std::string figures;             ///< name of the file: the program's name, and an optional variant after a dot
  std::vector<int64_t> input;      ///< shape of one image, or of a row of words
  int64_t classes;                 ///< number of classes
  std::string lastNorm = "(none)"; ///< the norms at the end of residual branches, with small initial weights
  bool labelsPixels = false;       ///< every pixel has a label
  std::string arguments = "";      ///< arguments of the program, in addition to the common ones
  /// The inputs with a row's words, each with the input of the next words; empty for images.
  std::vector<std::string> words = {};
  /// Parts of names that differ between PyTorch's results and the program: PyTorch's and the program's. These matrices
  /// are transposed in the program.
  std::vector<std::pair<std::string, std::string>> renamed = {};
  /// Parts of the program's text and their replacements for the recorded network, for example for a smaller one.
  std::vector<std::pair<std::string, std::string>> replaced = {};
};

class Golden {
public:
  explicit Golden(Network net);

  /// The recorded model with the program's own optimizer.
  std::string model() const;
  /// The recorded model with the recorded optimizer.
  std::string modelWithOptimizer() const;
  /// Whether the optimizer keeps momentum.
  bool hasMomentum() const { return figures["optimizer"].value("momentum", 0.0) != 0; }
  bool isAdamW() const { return figures["optimizer"]["kind"] == "AdamW"; }
  /// Whether the optimizer's state reveals the first gradients.
  bool keepsGradients() const { return hasMomentum() || isAdamW(); }
  /// Suffix of the state that contains the first gradient of a parameter.
  const char *keptGradient() const { return isAdamW() ? ".exp_avg" : ".momentum_buffer"; }
  /// A first-step gradient, computed from the optimizer's state.
  std::vector<double> firstGradient(const std::string &parameter, std::vector<double> kept) const;

  int64_t rows() const { return figures["batch"]; }
  /// Rows of a step: the batch size, or fewer.
  int64_t rows(int step) const;
  Values batch(int step) const;
  const std::vector<std::string> &parameters() const { return names; }
  std::vector<double> initial(const std::string &parameter) const;

  /// Number of recorded steps.
  int steps() const { return int(figures["loss_f64"].size()); }

  double loss(int step) const { return figures["loss_f64"][step]; }
  double lossError() const { return figures["loss_f32_max_rel_error"]; } ///< error of PyTorch's f32
  /// By tensor: norm, samples, and PyTorch's f32 error.
  const nlohmann::json &firstGradients() const { return figures["first_gradient"]; }
  const nlohmann::json &finalValues() const { return figures["final"]; }
  /// Predictions for the first batch after the last step; older files have none.
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
