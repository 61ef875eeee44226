// Every op with a gradient, checked by central differences in generated f64 code.
//
// The ops and their sample inputs come from the dialect, so that a new op is covered without changes here. Each sample
// becomes a model whose loss is the sum of the op's results times fixed weights. Parameters replace static operands. An
// operand with rows is an input that a scalar parameter moves along a fixed direction.
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;
using namespace sluice::ir;

namespace {

/// The types in a sample's "(...) -> ..." part.
struct Signature {
  std::vector<std::string> operands, results;
};

std::vector<std::string> tensorTypes(const std::string &text) {
  std::vector<std::string> types;
  for (size_t at = text.find("tensor<"); at != std::string::npos; at = text.find("tensor<", at + 1))
    types.push_back(text.substr(at, text.find('>', at) + 1 - at));
  return types;
}

Signature signatureOf(const std::string &op) {
  size_t arrow = op.rfind("->"), colon = op.rfind(" : (", arrow);
  return {tensorTypes(op.substr(colon, arrow - colon)), tensorTypes(op.substr(arrow))};
}

bool isFloat(const std::string &type) { return type.ends_with("f64>"); }
bool hasRows(const std::string &type) { return type.find('?') != std::string::npos; }

constexpr int64_t kRows = 3;

size_t elements(const std::string &type) {
  size_t count = 1;
  for (size_t at = type.find('<') + 1; isdigit(type[at]) || type[at] == '?'; at = type.find('x', at) + 1)
    count *= type[at] == '?' ? kRows : std::stoul(type.substr(at));
  return count;
}

std::vector<double> draw(const std::string &key, const std::string &type, std::pair<double, double> range) {
  std::vector<float> values = portableUniform(key, elements(type), range.first, range.second);
  std::vector<double> result(values.begin(), values.end());
  if (!isFloat(type))
    for (double &value : result)
      value = std::floor(value);
  return result;
}

/// A sample as a model: its text, its inputs, and the checked parameters with their values.
struct Model {
  std::string text;
  Values inputs, parameters, fixed;
};

/// Adds sum(x * w) to the loss, for a value `x` and an input `w` of fixed weights. With `squared`, `x` is squared
/// first.
void addToLoss(Model &model, std::string &body, std::string &loss, const std::string &x, const std::string &type,
               const std::string &w, bool squared) {
  std::string axes, factor = "%" + x, pair = " : (" + type + ", " + type + ") -> " + type + "\n";
  model.inputs[w] = draw("weights" + w, type, {0.5, 1.5});
  for (ptrdiff_t axis = 0, rank = std::ranges::count(type, 'x'); axis < rank; ++axis)
    axes += (axis ? ", " : ": ") + std::to_string(axis);
  if (squared) {
    body += "    %q" + w + " = sluice.mul " + factor + ", " + factor + pair;
    factor = "%q" + w;
  }
  body += "    %v" + w + " = sluice.mul " + factor + ", %" + w + pair;
  body += "    %l" + w + " = sluice.sum %v" + w + " {axes = array<i64" + axes + ">} : (" + type + ") -> tensor<f64>\n";
  if (!loss.empty())
    body += "    %t" + w + " = sluice.add " + loss + ", %l" + w + " : (tensor<f64>, tensor<f64>) -> tensor<f64>\n";
  loss = (loss.empty() ? "%l" : "%t") + w;
}

/// With `second`, the loss consists of the squares of the first loss's gradients.
Model buildModel(const Sample &sample, bool second = false) {
  Signature signature = signatureOf(sample.op);
  std::string states, arguments, names, body, list, by, types;
  Model model;
  auto addState = [&](const std::string &kind, const std::string &name, const std::string &type) {
    states += "  sluice.state " + kind + " @" + name + " : " + type + " = <\"constant\", 0.0 : f64>\n";
  };
  auto addInput = [&](const std::string &name, const std::string &type) {
    arguments += (arguments.empty() ? "" : ", ") + ("%" + name + " : " + type);
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  };
  addState("hyperparameter", "lr", "tensor<f64>");
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    const std::string &type = signature.operands[i];
    std::string name = std::to_string(i);
    std::vector<double> value = draw(sample.op + name, type, sample.ranges.at(i));
    bool constant = std::ranges::count(sample.constantOperands, i) != 0;
    if (isFloat(type) && !hasRows(type) && !constant) {
      addState("parameter", "p" + name, type);
      body += "    %" + name + " = sluice.get @p" + name + " : " + type + "\n";
      model.parameters["p" + name] = value;
      list += (list.empty() ? "@p" : ", @p") + name;
    } else if (isFloat(type) && !constant) {
      addInput("x" + name, type);
      addInput("d" + name, type);
      addState("parameter", "p" + name, "tensor<f64>");
      std::string shape;
      for (char c : type.substr(7, type.rfind('x') - 7))
        shape += c == '?' ? std::to_string(INT64_MIN) : c == 'x' ? ", " : std::string(1, c);
      body += "    %s" + name + " = sluice.get @p" + name + " : tensor<f64>\n";
      body += "    %e" + name + " = sluice.expand %s" + name + " {dims = array<i64>, shape = array<i64: " + shape +
              ">} : (tensor<f64>) -> " + type + "\n";
      body += "    %m" + name + " = sluice.mul %e" + name + ", %d" + name + " : (" + type + ", " + type + ") -> " +
              type + "\n";
      body += "    %" + name + " = sluice.add %x" + name + ", %m" + name + " : (" + type + ", " + type + ") -> " +
              type + "\n";
      model.inputs["x" + name] = value;
      model.inputs["d" + name] = draw("direction" + name, type, {-1, 1});
      model.parameters["p" + name] = {0.0};
      list += (list.empty() ? "@p" : ", @p") + name;
    } else {
      addInput(name, type);
      model.inputs[name] = value;
      continue;
    }
    by += (by.empty() ? "%" : ", %") + name;
    types += (types.empty() ? "" : ", ") + type;
  }
  body += "    %y:" + std::to_string(signature.results.size()) + " = " + sample.op + "\n";
  std::string loss;
  for (size_t i = 0; i < signature.results.size(); ++i) {
    const std::string &type = signature.results[i], name = "w" + std::to_string(i);
    if (!isFloat(type) || std::ranges::count(sample.constantResults, i) != 0)
      continue;
    addInput(name, type);
    addToLoss(model, body, loss, "y#" + std::to_string(i), type, name, second);
  }
  if (second) {
    std::vector<std::string> operands = tensorTypes(types);
    body += "    %g:" + std::to_string(operands.size()) + " = sluice.gradient " + loss + " by " + by +
            " : (tensor<f64>, " + types + ") -> (" + types + ")\n";
    loss.clear();
    for (size_t i = 0; i < operands.size(); ++i) {
      std::string name = "u" + std::to_string(i);
      addInput(name, operands[i]);
      addToLoss(model, body, loss, "g#" + std::to_string(i), operands[i], name, true);
    }
  }
  body += "    sluice.minimize " + loss +
          ", #sluice.sgd<momentum = 9.0e-01 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> "
          "lr @lr [" +
          list + "] : tensor<f64>\n";
  model.text = "module {\n  sluice.model \"sample\" format 2 phase \"model\" capacity " + std::to_string(kRows) + "\n" +
               states + "  sluice.graph [" + names + "] (" + arguments + ") {\n" + body + "  }\n}\n";
  return model;
}

/// The largest difference between the computed gradient and central differences, relative to the gradient's scale.
double gradientError(const Model &model) {
  Compiled program(model.text, {}, {.threads = 1});
  program.init(0);
  auto reset = [&](const std::string &name, const std::vector<double> &value) {
    program.setState(name, value);
    program.setState(name + ".momentum_buffer", std::vector<double>(value.size(), 0.0));
  };
  auto lossAt = [&] { return program.run("train_step", model.inputs, kRows).at("loss")[0]; };
  for (auto &[name, value] : model.parameters)
    reset(name, value);
  lossAt(); // the learning rate is zero: only the momentum buffers change
  Values gradients;
  for (auto &[name, value] : model.parameters)
    gradients[name] = program.state(name + ".momentum_buffer");
  double scale = 1e-3, worst = 0;
  for (auto &[name, gradient] : gradients)
    for (double g : gradient)
      scale = std::max(scale, std::fabs(g));
  for (auto &[name, value] : model.parameters)
    for (size_t i = 0; i < value.size(); ++i) {
      double step = 1e-5;
      std::vector<double> moved = value;
      moved[i] = value[i] + step;
      program.setState(name, moved);
      double above = lossAt();
      moved[i] = value[i] - step;
      program.setState(name, moved);
      double below = lossAt();
      program.setState(name, value);
      worst = worse(worst, std::fabs((above - below) / (2 * step) - gradients[name][i]) / scale);
    }
  return worst;
}

/// The error of a sample; infinite if its model does not compile.
double errorOf(const Sample &sample, bool second = false) {
  try {
    return gradientError(buildModel(sample, second));
  } catch (const std::exception &error) {
    ADD_FAILURE() << error.what();
    return INFINITY;
  }
}

/// Central differences with step 1e-5 are accurate to about 1e-10 / 1e-5 + 1e-10.
constexpr double kTolerance = 1e-6;

std::vector<mlir::RegisteredOperationName> differentiableOps(mlir::MLIRContext &context) {
  context.loadDialect<SluiceDialect>();
  std::vector<mlir::RegisteredOperationName> ops;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (op.hasInterface<DifferentiableOp>())
      ops.push_back(op);
  return ops;
}

} // namespace

TEST(Gradient, EveryDifferentiableOpAgreesWithFiniteDifferences) {
  mlir::MLIRContext context;
  size_t checked = 0, instances = 0;
  for (mlir::RegisteredOperationName op : differentiableOps(context)) {
    std::vector<Sample> samples;
    for (const Sample &sample : op.getInterface<DifferentiableOp>()->samples())
      samples.push_back(sample);
    EXPECT_FALSE(samples.empty()) << op.getStringRef().str() << " is differentiable and offers no sample inputs";
    for (const Sample &sample : samples) {
      EXPECT_LT(errorOf(sample), kTolerance) << sample.op;
      ++instances;
    }
    ++checked;
  }
  std::printf("checked the gradients of %zu ops in %zu instances\n", checked, instances);
  EXPECT_GE(checked, 40u);
}

// Tests gradients of gradients. With SLUICE_TEST_FULL it tests those of all ops, otherwise one sample of each op that
// is not elementwise.
TEST(Gradient, OfEveryGradientAgreesWithFiniteDifferences) {
  mlir::MLIRContext context;
  size_t checked = 0, most = std::getenv("SLUICE_TEST_FULL") ? SIZE_MAX : 1;
  for (mlir::RegisteredOperationName op : differentiableOps(context)) {
    if (most == 1 && op.hasInterface<ElementwiseOp>())
      continue;
    llvm::SmallVector<Sample> samples = op.getInterface<DifferentiableOp>()->samples();
    for (size_t i = 0; i < std::min(samples.size(), most); ++i, ++checked)
      EXPECT_LT(errorOf(samples[i], /*second=*/true), kTolerance) << samples[i].op;
  }
  EXPECT_GE(checked, 30u);
}

// Tests the check: a loss with a wrong gradient must be detected. The gradient of a stopped branch is missing on
// purpose.
TEST(Gradient, AWrongGradientIsNoticed) {
  Sample sample{"\"sluice.exp\"(%0) : (tensor<2x3xf64>) -> tensor<2x3xf64>", {{-1, 1}}};
  Model model = buildModel(sample);
  EXPECT_LT(gradientError(model), kTolerance);
  model.text =
      replaced(model.text, "    %y:1 = \"sluice.exp\"(%0)",
               "    %z = sluice.stop_gradient %0 : (tensor<2x3xf64>) -> tensor<2x3xf64>\n    %q = sluice.mul %z, %0 : "
               "(tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>\n    %y:1 = \"sluice.exp\"(%q)");
  EXPECT_GT(gradientError(model), 1e-2);
}

// sqrt(0 * x) is 0 for all x, and its gradient by the chain rule is infinity times 0.
TEST(Gradient, OneThatIsNoNumberIsNoticed) {
  Model model = buildModel({"\"sluice.sqrt\"(%0) : (tensor<2x3xf64>) -> tensor<2x3xf64>", {{1, 2}}});
  model.text = replaced(model.text, "    %y:1 = \"sluice.sqrt\"(%0)",
                        "    %s = sluice.stop_gradient %0 : (tensor<2x3xf64>) -> tensor<2x3xf64>\n    %n = sluice.sub "
                        "%s, %s : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>\n    %z = sluice.mul %n, %0 : "
                        "(tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>\n    %y:1 = \"sluice.sqrt\"(%z)");
  EXPECT_EQ(gradientError(model), INFINITY);
}
