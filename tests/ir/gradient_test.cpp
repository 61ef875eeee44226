// Compares every gradient with central differences of the interpreter, in double precision.
#include "ir/build/Node.h"
#include "mlir/IR/Verifier.h"
#include "op_instance.h"
#include "tests/Worse.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::test;

namespace {

constexpr double kStep = 1e-5;
// The error of central differences is about step^2 times the third derivative, plus 1e-16 / step of rounding.
constexpr double kTolerance = 1e-7;

/// The entry of an instance with dY, the weights of a result's sum, as an additional input and the gradients as
/// additional outputs.
struct Differentiated {
  OpInstance instance;
  std::vector<size_t> operands; // with a gradient

  explicit Differentiated(const Sample &sample, size_t result = 0) : instance(sample.op) {
    if (!instance.op)
      return;
    Block &body = instance.entry.getBody().front();
    Value dY = body.addArgument(instance.op->getResult(result).getType(), instance.op->getLoc());
    Operation *end = body.getTerminator();
    OpBuilder builder(end);
    SmallVector<Value> dResults(instance.op->getNumResults()), outputs(instance.op->getResults());
    dResults[result] = dY;
    for (auto [number, gradient] :
         llvm::enumerate(cast<DifferentiableOp>(instance.op).buildGradient(builder, dResults))) {
      if (!gradient)
        continue;
      EXPECT_TRUE(sameShapesAndElements(gradient.getType(), instance.op->getOperand(number).getType()))
          << sample.op << "\n"
          << number;
      operands.push_back(number);
      outputs.push_back(gradient);
    }
    cast<ReturnOp>(end).getValuesMutable().assign(outputs);
    rename(body.getNumArguments(), outputs.size());
    EXPECT_TRUE(succeeded(verify(instance.entry))) << sample.op;
  }

  /// Names every input and output of the entry.
  void rename(size_t inputs, size_t outputs) {
    Builder builder(&getContext());
    SmallVector<Attribute> names;
    for (size_t i = 0; i < std::max(inputs, outputs); ++i)
      names.push_back(builder.getStringAttr("n" + Twine(i)));
    instance.entry.setInputsAttr(builder.getArrayAttr(ArrayRef(names).take_front(inputs)));
    instance.entry.setOutputsAttr(builder.getArrayAttr(ArrayRef(names).take_front(outputs)));
  }
};

} // namespace

static double dot(const HostTensor &a, const HostTensor &b) {
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i)
    sum += a.data[i] * b.data[i];
  return sum;
}

/// The largest difference between a sample's gradients and central differences, relative to max(1, |gradient|).
static double measureError(const Sample &sample, double wrongness = 1, size_t result = 0) {
  Differentiated differentiated(sample, result);
  OpInstance &instance = differentiated.instance;
  EXPECT_TRUE(instance.op) << sample.op << "\n" << instance.error;
  if (!instance.op)
    return HUGE_VAL;
  EXPECT_FALSE(differentiated.operands.empty()) << sample.op;
  std::vector<HostTensor> inputs = drawOperands(instance, sample);
  HostTensor weights(runtimeShape(instance.op->getResult(result).getType(), kRows));
  for (size_t i = 0; i < weights.data.size(); ++i)
    weights.data[i] = std::cos(double(i) * 2.3 + 0.4);
  inputs.push_back(weights);
  std::vector<HostTensor> outputs = instance.run(inputs);
  double error = 0;
  for (auto [place, operand] : llvm::enumerate(differentiated.operands)) {
    const HostTensor &gradient = outputs[instance.op->getNumResults() + place];
    for (size_t i = 0; i < gradient.data.size(); ++i) {
      auto lossAt = [&](double change) {
        std::vector<HostTensor> moved = inputs;
        moved[operand].data[i] += change;
        return dot(instance.run(moved)[result], weights);
      };
      double expected = (lossAt(kStep) - lossAt(-kStep)) / (2 * kStep), actual = gradient.data[i] * wrongness;
      error = worse(error, std::fabs(actual - expected) / std::fmax(1, std::fabs(expected)));
    }
  }
  return error;
}

/// The numbers of the results with a gradient.
static std::vector<size_t> resultsWithGradient(const Sample &sample) {
  OpInstance instance(sample.op);
  std::vector<size_t> numbers;
  for (size_t number = 0; instance.op && number < instance.op->getNumResults(); ++number)
    if (isa<FloatType>(cast<RankedTensorType>(instance.op->getResult(number).getType()).getElementType()) &&
        !llvm::is_contained(sample.constantResults, number))
      numbers.push_back(number);
  return numbers;
}

TEST(Gradient, OfEveryDifferentiableOpMatchesDifferences) {
  std::vector<std::string> names = getOpsWith<DifferentiableOp>();
  size_t samples = 0;
  for (const std::string &name : names) {
    auto offered = OperationName(name, &getContext()).getInterface<DifferentiableOp>()->samples();
    EXPECT_FALSE(offered.empty()) << name << " offers no samples";
    for (const Sample &sample : offered)
      for (size_t result : resultsWithGradient(sample))
        EXPECT_LT(measureError(sample, 1, result), kTolerance) << sample.op << " result " << result;
    samples += offered.size();
  }
  printf("checked the gradients of %zu ops in %zu samples\n", names.size(), samples);
  EXPECT_GT(names.size(), 40u);
}

TEST(Gradient, WrongByAThousandthIsFound) {
  Sample sample = OperationName("sluice.exp", &getContext()).getInterface<DifferentiableOp>()->samples()[0];
  EXPECT_GT(measureError(sample, 1.001), kTolerance);
}

TEST(Gradient, OneThatIsNoNumberIsFound) {
  Sample sample = OperationName("sluice.exp", &getContext()).getInterface<DifferentiableOp>()->samples()[0];
  EXPECT_EQ(measureError(sample, NAN), INFINITY);
}

// At ties, where differences are meaningless: PyTorch's conventions.
TEST(Gradient, IsSharedAtTies) {
  struct Case {
    const char *op;
    std::vector<double> x, dX;
  };
  const Case cases[] = {
      {"\"sluice.reduce_max\"(%0) {axes = array<i64: 0>} : (tensor<4xf64>) -> tensor<f64>",
       {2, 5, 5, 1},
       {0, 0.5, 0.5, 0}},
      {"\"sluice.relu\"(%0) : (tensor<3xf64>) -> tensor<3xf64>", {-1, 0, 2}, {0, 0, 1}},
      {"\"sluice.abs\"(%0) : (tensor<3xf64>) -> tensor<3xf64>", {-1, 0, 2}, {-1, 0, 1}},
      {"\"sluice.max_pool2d\"(%0) {kernel = array<i64: 1, 3>, stride = array<i64: 1, 3>, padding = array<i64: 0, 0, 0, "
       "0>, dilation = array<i64: 1, 1>} : "
       "(tensor<1x1x1x3xf64>) -> (tensor<1x1x1x1xf64>, tensor<1x1x1x1xui8>)",
       {4, 4, 1},
       {1, 0, 0}},
      {"\"sluice.max_pool2d\"(%0) {kernel = array<i64: 1, 3>, stride = array<i64: 1, 2>, padding = array<i64: 0, 1, 0, "
       "1>, dilation = array<i64: 1, 1>} : "
       "(tensor<1x1x1x3xf64>) -> (tensor<1x1x1x2xf64>, tensor<1x1x1x2xui8>)",
       {-INFINITY, -INFINITY, -INFINITY},
       {1, 1, 0}},
  };
  for (const Case &test : cases) {
    Differentiated differentiated({test.op, {}});
    OpInstance &instance = differentiated.instance;
    ASSERT_TRUE(instance.op) << instance.error;
    HostTensor ones(runtimeShape(instance.op->getResult(0).getType(), kRows), 1);
    EXPECT_EQ(instance.run({makeTensor(instance.op->getOperand(0), test.x), ones}).back().data, test.dX) << test.op;
  }
}

// At kinks, where differences are meaningless too: the results of PyTorch 2.15 in float64, including NaN.
TEST(Gradient, AtKinksIsPyTorchs) {
  struct Case {
    const char *op;
    std::vector<double> x, dX;
  };
  const Case cases[] = {
      {"\"sluice.clip\"(%0) {min = -0.5 : f64, max = 1.5 : f64} : (tensor<6xf64>) -> tensor<6xf64>",
       {-1, -0.5, 0, 1.5, 2, NAN},
       {0, 0, 1, 0, 0, 0}},
      {"\"sluice.clip\"(%0) {min = -0.5 : f64} : (tensor<5xf64>) -> tensor<5xf64>",
       {-1, -0.5, 0, INFINITY, NAN},
       {0, 0, 1, 1, 0}},
      {"\"sluice.clip\"(%0) {max = 1.5 : f64} : (tensor<4xf64>) -> tensor<4xf64>", {-1, 1.5, 2, NAN}, {1, 0, 0, 0}},
      {"\"sluice.relu6\"(%0) : (tensor<6xf64>) -> tensor<6xf64>", {-1, 0, 3, 6, 7, NAN}, {0, 0, 1, 0, 0, 1}},
      {"\"sluice.hardswish\"(%0) : (tensor<4xf64>) -> tensor<4xf64>", {-4, -3, 3, 4}, {0, 0, 1, 1}},
      {"\"sluice.hardsigmoid\"(%0) : (tensor<4xf64>) -> tensor<4xf64>", {-4, -3, 3, 4}, {0, 0, 0, 0}},
      {"\"sluice.leaky_relu\"(%0) {alpha = 0.125 : f64} : (tensor<3xf64>) -> tensor<3xf64>",
       {-1, 0, 3},
       {0.125, 0.125, 1}},
      {"\"sluice.prod\"(%0) {axes = array<i64: 1>} : (tensor<4x3xf64>) -> tensor<4xf64>",
       {1, 2, 3, 0, 2, 3, 0, 0, 3, 2, 4, 0.5},
       {6, 3, 2, 6, 0, 0, 0, 0, 0, 2, 1, 8}},
      {"\"sluice.elu\"(%0) {alpha = 0.5 : f64} : (tensor<2xf64>) -> tensor<2xf64>", {0, 3}, {0.5, 1}},
  };
  for (const Case &test : cases) {
    Differentiated differentiated({test.op, {}});
    OpInstance &instance = differentiated.instance;
    ASSERT_TRUE(instance.op) << instance.error;
    HostTensor ones(runtimeShape(instance.op->getResult(0).getType(), kRows), 1);
    EXPECT_EQ(instance.run({makeTensor(instance.op->getOperand(0), test.x), ones}).back().data, test.dX) << test.op;
  }
}
