#include "op_instance.h"
#include "ir/text/ParseGuard.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <map>
#include <random>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::test {

MLIRContext &getContext() {
  static MLIRContext *context = [] {
    auto *created = new MLIRContext(MLIRContext::Threading::DISABLED); // so that a test may fork
    created->loadDialect<SluiceDialect, arith::ArithDialect, math::MathDialect, vector::VectorDialect>();
    return created;
  }();
  return *context;
}

/// The types in `(a, b)` or `a`.
static std::vector<std::string> splitTypes(StringRef list) {
  list = list.trim();
  if (list.consume_front("("))
    list = list.drop_back();
  SmallVector<StringRef> parts;
  list.split(parts, ", ", -1, /*KeepEmpty=*/false);
  return std::vector<std::string>(parts.begin(), parts.end());
}

static std::string repeat(size_t count, const std::function<std::string(size_t)> &part) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(part(i));
  return llvm::join(parts, ", ");
}

OpInstance::OpInstance(const std::string &text) {
  auto [before, types] = StringRef(text).rsplit(" : (");
  auto [operandList, resultList] = types.split(") -> ");
  std::vector<std::string> operands = splitTypes(operandList), results = splitTypes(resultList);
  std::string entryText =
      "sluice.entry @test [" + repeat(operands.size(), [](size_t i) { return ("\"i" + llvm::Twine(i) + "\"").str(); }) +
      "] -> [" + repeat(results.size(), [](size_t i) { return ("\"o" + llvm::Twine(i) + "\"").str(); }) + "] (" +
      repeat(operands.size(), [&](size_t i) { return ("%" + llvm::Twine(i) + ": " + operands[i]).str(); }) +
      ") {\n%r:" + std::to_string(results.size()) + " = " + text + "\nsluice.return " +
      repeat(results.size(), [](size_t i) { return ("%r#" + llvm::Twine(i)).str(); }) + " : " +
      llvm::join(results, ", ") + "\n}";
  llvm::Expected<OwningOpRef<ModuleOp>> parsed = parseModuleText(entryText, "test", getContext());
  if (!parsed) {
    error = llvm::toString(parsed.takeError());
    return;
  }
  module = std::move(*parsed);
  entry = *module->getBody()->getOps<EntryOp>().begin();
  op = &entry.getBody().front().front();
}

std::vector<HostTensor> OpInstance::run(const std::vector<HostTensor> &operands) {
  StateMap states;
  SmallVector<HostTensor> results = *interpret(entry, operands, states, kRows);
  return std::vector<HostTensor>(results.begin(), results.end());
}

HostTensor makeTensor(Value value, std::vector<double> data) {
  HostTensor tensor(runtimeShape(value.getType(), kRows));
  assert(tensor.data.size() == data.size() && "a test's operand has the wrong number of elements");
  tensor.data = std::move(data);
  return tensor;
}

std::vector<HostTensor> drawOperands(OpInstance &instance, const Sample &sample) {
  std::mt19937_64 random(7);
  std::vector<HostTensor> operands;
  for (auto [operand, range] : llvm::zip_equal(instance.op->getOperands(), sample.ranges)) {
    HostTensor tensor(runtimeShape(operand.getType(), kRows));
    Type type = cast<RankedTensorType>(operand.getType()).getElementType();
    for (double &element : tensor.data) {
      element = std::uniform_real_distribution<double>(range.first, range.second)(random);
      element = isa<IntegerType>(type) ? std::floor(element) : roundTo(type, element);
    }
    operands.push_back(tensor);
  }
  return operands;
}

static const std::map<std::string, std::vector<Sample>> &getOtherSamples() {
  auto unary = [](const char *name) {
    return Sample{std::string("\"sluice.") + name + "\"(%0) : (tensor<3x5xf64>) -> tensor<3x5xf64>", {{-2, 2}}};
  };
  auto logical = [](const char *name) {
    return Sample{std::string("\"sluice.") + name + "\"(%0, %1) : (tensor<9xi1>, tensor<9xi1>) -> tensor<9xi1>",
                  {{0, 2}, {0, 2}}};
  };
  // All kinds of integers; the second range is that of the second operand, if there is one.
  auto bitwise = [](const std::string &name, std::vector<std::pair<double, double>> second) {
    std::vector<Sample> samples;
    for (const char *element : {"i32", "i64", "ui8"}) {
      std::string type = std::string("tensor<40x") + element + ">";
      std::vector<std::pair<double, double>> ranges{element == std::string("ui8") ? std::pair(0.0, 256.0)
                                                                                  : std::pair(-2e9, 2e9)};
      ranges.insert(ranges.end(), second.begin(), second.end());
      if (second.size() == 1 && element == std::string("ui8"))
        ranges[1].first = 0;
      samples.push_back({"\"sluice." + name + "\"(%0" + (second.empty() ? "" : ", %1") + ") : (" + type +
                             (second.empty() ? "" : ", " + type) + ") -> " + type,
                         ranges});
    }
    return samples;
  };
  auto with = [](std::vector<Sample> samples, const Sample &sample) {
    samples.push_back(sample);
    return samples;
  };
  auto compare = [](const char *predicate, const char *element) {
    std::string type = std::string("tensor<20x") + element + ">";
    return Sample{std::string("\"sluice.compare\"(%0, %1) {predicate = #sluice<predicate ") + predicate + ">} : (" +
                      type + ", " + type + ") -> tensor<20xi1>",
                  {{0, 4}, {0, 4}}};
  };
  auto maxPoolGrad = [](const std::string &attributes, const std::string &y, const std::string &x, double taps) {
    return Sample{"\"sluice.max_pool2d_grad\"(%0, %1) {" + attributes + "} : (tensor<" + y + "xf64>, tensor<" + y +
                      "xui8>) -> tensor<" + x + "xf64>",
                  {{-2, 2}, {0, taps}}};
  };
  auto avgPoolGrad = [](const std::string &attributes, const std::string &y, const std::string &x) {
    return Sample{"\"sluice.avg_pool2d_grad\"(%0) {" + attributes + "} : (tensor<" + y + "xf64>) -> tensor<" + x +
                      "xf64>",
                  {{-2, 2}}};
  };
  // Inverts the samples of conv2d: `attributes` without the size of the computed operand.
  auto weightGrad = [](const char *size, const std::string &attributes, const std::string &types) {
    return Sample{std::string("\"sluice.conv2d_weight_grad\"(%0, %1) {size = array<i64: ") + size + ">, " + attributes +
                      "} : " + types,
                  {{-1, 1}, {-1, 1}}};
  };
  const std::string
      plain =
          "stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64",
      strided =
          "stride = array<i64: 2, 3>, padding = array<i64: 1, 0, 2, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64",
      dilated =
          "stride = array<i64: 1, 2>, padding = array<i64: 2, 1, 1, 1>, dilation = array<i64: 2, 1>, groups = 1 : i64",
      grouped =
          "stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64";
  auto batchNormGrad = [](const char *attributes, const std::string &x) {
    std::string channels = "tensor<3xf64>";
    return Sample{std::string("\"sluice.batch_norm_grad\"(%0, %1, %2, %3, %4) {") + attributes + "} : (" + x + ", " +
                      channels + ", " + channels + ", " + channels + ", " + x + ") -> (" + x + ", " + channels + ", " +
                      channels + ")",
                  {{-2, 2}, {0.5, 1.5}, {-1, 1}, {0.5, 2}, {-2, 2}}};
  };
  auto normGrad = [](const char *attributes, const std::string &x, const std::string &weight) {
    return Sample{std::string("\"sluice.normalize_grad\"(%0, %1, %2) {") + attributes + "} : (tensor<" + x +
                      "xf64>, tensor<" + weight + "xf64>, tensor<" + x + "xf64>) -> tensor<" + x + "xf64>",
                  {{-2, 2}, {0.5, 1.5}, {-2, 2}}};
  };
  // Queries, keys, values, dY, logsumexp and delta of two heads, and a mask.
  auto attentionGrad = [](const std::string &op, const std::string &attributes, int64_t headsOfKeys,
                          const std::string &mask) {
    auto type = [](int64_t heads, const char *items) { return "tensor<?x" + std::to_string(heads) + items + "xf64>"; };
    std::string q = type(2, "x3x4"), k = type(headsOfKeys, "x5x4"), v = type(headsOfKeys, "x5x2"), dY = type(2, "x3x2"),
                rows = type(2, "x3");
    Sample sample{"\"sluice." + op + "\"(%0, %1, %2, %3, %4, %5" + (mask.empty() ? "" : ", %6") + ") {" + attributes +
                      "} : (" + q + ", " + k + ", " + v + ", " + dY + ", " + rows + ", " + rows +
                      (mask.empty() ? "" : ", tensor<" + mask + ">") + ") -> " +
                      (op == "attention_query_grad" ? q : "(" + k + ", " + v + ")"),
                  {{-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}, {0.5, 1.5}, {-1, 1}}};
    if (!mask.empty())
      sample.ranges.push_back({0, 2});
    return sample;
  };
  auto attentionGrads = [&](const std::string &op) {
    return std::vector<Sample>{attentionGrad(op, "scale = 0.5 : f64, block = 2 : i64", 2, ""),
                               attentionGrad(op, "causal, scale = 1.5 : f64", 1, ""),
                               attentionGrad(op, "scale = -0.5 : f64, block = 3 : i64", 1, "?x1x3x5xf64"),
                               attentionGrad(op, "causal, scale = 1.0 : f64", 2, "1x2x1x5xi1")};
  };
  static const std::map<std::string, std::vector<Sample>> samples = {
      {"sluice.attention_query_grad", attentionGrads("attention_query_grad")},
      {"sluice.attention_key_value_grad", attentionGrads("attention_key_value_grad")},
      {"sluice.batch_norm_grad",
       {batchNormGrad("eps = 1.0e-3 : f64, training", "tensor<?x3x2x2xf64>"),
        batchNormGrad("training", "tensor<?x3xf64>"), batchNormGrad("", "tensor<2x3x2xf64>")}},
      {"sluice.conv2d_weight_grad",
       {weightGrad("3, 2", plain, "(tensor<?x2x5x6xf64>, tensor<?x3x3x5xf64>) -> tensor<3x2x3x2xf64>"),
        weightGrad("3, 3", strided, "(tensor<2x2x5x6xf64>, tensor<2x3x3x2xf64>) -> tensor<3x2x3x3xf64>"),
        weightGrad("3, 3", dilated, "(tensor<1x2x5x6xf64>, tensor<1x2x4x3xf64>) -> tensor<2x2x3x3xf64>"),
        weightGrad("3, 3", grouped, "(tensor<2x4x3x3xf64>, tensor<2x6x3x3xf64>) -> tensor<6x2x3x3xf64>")}},
      {"sluice.normalize_grad",
       {normGrad("axis = 1 : i64, dims = array<i64: 1>, eps = 0.125 : f64", "?x5", "5"),
        normGrad("axis = 2 : i64, dims = array<i64: 2>, eps = 1.0e-3 : f64, rms", "?x2x6", "6"),
        normGrad("axis = 2 : i64, dims = array<i64: 1, 2>, eps = 0.25 : f64", "?x2x3x4", "2x3"),
        normGrad("axis = 1 : i64, dims = array<i64: 1, 2>, eps = 0.125 : f64, rms", "3x4x2", "4x2")}},
      {"sluice.sign", {unary("sign")}},
      {"sluice.floor", {unary("floor")}},
      {"sluice.ceil", {unary("ceil")}},
      {"sluice.round", {unary("round")}},
      {"sluice.stop_gradient", {unary("stop_gradient")}},
      {"sluice.not", with(bitwise("not", {}), {"\"sluice.not\"(%0) : (tensor<9xi1>) -> tensor<9xi1>", {{0, 2}}})},
      {"sluice.and", with(bitwise("and", {{-200, 200}}), logical("and"))},
      {"sluice.or", with(bitwise("or", {{-200, 200}}), logical("or"))},
      {"sluice.xor", with(bitwise("xor", {{-200, 200}}), logical("xor"))},
      {"sluice.shift_left", bitwise("shift_left", {{-9, 40}})}, // some out of range
      {"sluice.shift_right", bitwise("shift_right", {{-9, 80}})},
      {"sluice.isnan", {{"\"sluice.isnan\"(%0) : (tensor<3xf64>) -> tensor<3xi1>", {{-2, 2}}}}},
      {"sluice.isinf", {{"\"sluice.isinf\"(%0) : (tensor<3xf64>) -> tensor<3xi1>", {{-2, 2}}}}},
      {"sluice.compare",
       {compare("eq", "i32"), compare("ne", "i64"), compare("lt", "ui8"), compare("le", "i32"), compare("gt", "f64"),
        compare("ge", "i32")}},
      {"sluice.neg",
       {{"\"sluice.neg\"(%0) : (tensor<20xi32>) -> tensor<20xi32>", {{-9, 9}}},
        {"\"sluice.neg\"(%0) : (tensor<20xui8>) -> tensor<20xui8>", {{0, 256}}}}},
      {"sluice.abs",
       {{"\"sluice.abs\"(%0) : (tensor<20xi64>) -> tensor<20xi64>", {{-9, 9}}},
        {"\"sluice.abs\"(%0) : (tensor<20xui8>) -> tensor<20xui8>", {{0, 256}}}}},
      {"sluice.clip",
       {{"\"sluice.clip\"(%0) {min = -3.0 : f64, max = 4.0 : f64} : (tensor<20xi32>) -> tensor<20xi32>", {{-9, 9}}},
        {"\"sluice.clip\"(%0) {max = 200.0 : f64} : (tensor<20xui8>) -> tensor<20xui8>", {{0, 256}}},
        {"\"sluice.clip\"(%0) {min = 0.5 : f64} : (tensor<20xf64>) -> tensor<20xf64>", {{-2, 2}}}}},
      {"sluice.div",
       {{"\"sluice.div\"(%0, %1) : (tensor<40xi32>, tensor<40xi32>) -> tensor<40xi32>", {{-20, 20}, {-3, 3}}}}},
      {"sluice.remainder",
       {{"\"sluice.remainder\"(%0, %1) : (tensor<40xi32>, tensor<40xi32>) -> tensor<40xi32>", {{-20, 20}, {-3, 3}}},
        {"\"sluice.remainder\"(%0, %1) : (tensor<40xi64>, tensor<40xi64>) -> tensor<40xi64>", {{-90, 90}, {-9, 9}}},
        {"\"sluice.remainder\"(%0, %1) : (tensor<40xui8>, tensor<40xui8>) -> tensor<40xui8>", {{0, 256}, {0, 9}}},
        {"\"sluice.remainder\"(%0, %1) : (tensor<40xf64>, tensor<40xf64>) -> tensor<40xf64>", {{-20, 20}, {-3, 3}}}}},
      {"sluice.max",
       {{"\"sluice.max\"(%0, %1) : (tensor<20xui8>, tensor<20xui8>) -> tensor<20xui8>", {{0, 256}, {0, 256}}}}},
      {"sluice.cast",
       {{"\"sluice.cast\"(%0) {to = i32} : (tensor<20xf64>) -> tensor<20xi32>", {{-4e9, 4e9}}},
        {"\"sluice.cast\"(%0) {to = ui8} : (tensor<20xf64>) -> tensor<20xui8>", {{-100, 400}}},
        {"\"sluice.cast\"(%0) {to = f64} : (tensor<20xui8>) -> tensor<20xf64>", {{0, 256}}},
        {"\"sluice.cast\"(%0) {to = i64} : (tensor<20xi32>) -> tensor<20xi64>", {{-9, 9}}},
        {"\"sluice.cast\"(%0) {to = ui8} : (tensor<20xi32>) -> tensor<20xui8>", {{-900, 900}}},
        {"\"sluice.cast\"(%0) {to = i1} : (tensor<20xf64>) -> tensor<20xi1>", {{-1, 1}}},
        {"\"sluice.cast\"(%0) {to = i32} : (tensor<20xi1>) -> tensor<20xi32>", {{0, 2}}}}},
      {"sluice.full", {{"\"sluice.full\"() {value = 2.5 : f64, type = tensor<?x2xf64>} : () -> tensor<?x2xf64>", {}}}},
      {"sluice.constant", {{"\"sluice.constant\"() {value = dense<-3> : tensor<4xi32>} : () -> tensor<4xi32>", {}}}},
      {"sluice.iota",
       {{"\"sluice.iota\"() {start = 2.5 : f64, step = -0.75 : f64, axis = 1 : i64, type = tensor<?x9xf64>} : () -> "
         "tensor<?x9xf64>",
         {}},
        {"\"sluice.iota\"() {start = 3.0 : f64, step = -2.0 : f64, axis = 0 : i64, type = tensor<?x5xi64>} : () -> "
         "tensor<?x5xi64>",
         {}},
        {"\"sluice.iota\"() {start = 0.5 : f64, step = 0.25 : f64, axis = 0 : i64, type = tensor<?x3xf32>} : () -> "
         "tensor<?x3xf32>",
         {}},
        {"\"sluice.iota\"() {start = -7.0 : f64, step = 3.0 : f64, axis = 0 : i64, type = tensor<20x3xi32>} : () -> "
         "tensor<20x3xi32>",
         {}},
        {"\"sluice.iota\"() {start = 4.0 : f64, step = -5.0 : f64, axis = 1 : i64, type = tensor<2x40xi64>} : () -> "
         "tensor<2x40xi64>",
         {}}}},
      {"sluice.prod",
       {{"\"sluice.prod\"(%0) {axes = array<i64: 0>} : (tensor<4x3xi32>) -> tensor<3xi32>", {{-9, 9}}},
        {"\"sluice.prod\"(%0) {axes = array<i64: 1>} : (tensor<3x4xui8>) -> tensor<3xui8>", {{0, 4}}}}},
      {"sluice.rows", {{"\"sluice.rows\"() {to = f64} : () -> tensor<f64>", {}}}},
      {"sluice.one_hot",
       {{"\"sluice.one_hot\"(%0) {classes = 4 : i64, to = f64} : (tensor<?xi32>) -> tensor<?x4xf64>", {{-1, 6}}}}},
      {"sluice.softmax_cross_entropy",
       {{"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<?x4x3xf64>, tensor<?x3xi32>) -> tensor<?x3xf64>",
         {{-2, 2}, {-2, 6}}}}},
      {"sluice.ignore_index",
       {{"\"sluice.ignore_index\"(%0) {size = 4 : i64, ignored = -7 : i64} : (tensor<?x3xi32>) -> tensor<?x3xi32>",
         {{-8, 4}}},
        {"\"sluice.ignore_index\"(%0) {size = 4 : i64, ignored = 2 : i64} : (tensor<20xi64>) -> tensor<20xi64>",
         {{0, 4}}}}},
      {"sluice.argmax",
       {{"\"sluice.argmax\"(%0) {axis = 1 : i64} : (tensor<?x9xi32>) -> tensor<?xi32>", {{0, 4}}},
        {"\"sluice.argmax\"(%0) {axis = 0 : i64} : (tensor<?x9xf64>) -> tensor<9xi32>", {{-3, 0}}}}},
      {"sluice.max_pool2d_grad",
       {maxPoolGrad("size = array<i64: 4, 4>, kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = "
                    "array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>",
                    "?x2x2x2", "?x2x4x4", 4),
        maxPoolGrad("size = array<i64: 5, 5>, kernel = array<i64: 3, 3>, stride = array<i64: 2, 1>, padding = "
                    "array<i64: 1, 1, 1, 0>, dilation = array<i64: 1, 1>",
                    "2x1x3x4", "2x1x5x5", 9),
        maxPoolGrad("size = array<i64: 4, 5>, kernel = array<i64: 2, 3>, stride = array<i64: 1, 2>, padding = "
                    "array<i64: 1, 0, 1, 0>, dilation = array<i64: 2, 1>",
                    "1x2x4x2", "1x2x4x5", 6),
        maxPoolGrad("size = array<i64: 5, 5>, kernel = array<i64: 2, 2>, stride = array<i64: 3, 2>, padding = "
                    "array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>",
                    "1x1x2x3", "1x1x5x5", 4)}},
      {"sluice.avg_pool2d_grad",
       {avgPoolGrad("size = array<i64: 4, 4>, kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = "
                    "array<i64: 0, 0, 0, 0>",
                    "?x2x2x2", "?x2x4x4"),
        avgPoolGrad("size = array<i64: 5, 4>, kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = "
                    "array<i64: 1, 1, 1, 0>",
                    "2x1x3x4", "2x1x5x4"),
        avgPoolGrad("size = array<i64: 6, 5>, kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = "
                    "array<i64: 1, 0, 1, 1>, ceil_mode, count_include_pad",
                    "1x2x4x3", "1x2x6x5")}},
      {"sluice.uniform",
       {{"\"sluice.uniform\"(%0) {stream = 0 : i64, a = -1.0 : f64, b = 2.0 : f64, type = tensor<3x5xf64>} : "
         "(tensor<2xi32>) -> tensor<3x5xf64>",
         {{-1e9, 1e9}}},
        {"\"sluice.uniform\"(%0) {stream = 7 : i64, a = 0.0 : f64, b = 1.0 : f64, type = tensor<?x5xf64>} : "
         "(tensor<2xi32>) -> tensor<?x5xf64>",
         {{-1e9, 1e9}}},
        {"\"sluice.uniform\"(%0) {stream = 0 : i64, a = -1.0 : f64, b = 2.0 : f64, type = tensor<3x5xf64>, wide} : "
         "(tensor<2xi32>) -> tensor<3x5xf64>",
         {{-1e9, 1e9}}},
        {"\"sluice.uniform\"(%0) {stream = 3 : i64, a = 0.25 : f64, b = 0.5 : f64, type = tensor<?x5xf64>, wide} : "
         "(tensor<2xi32>) -> tensor<?x5xf64>",
         {{-1e9, 1e9}}}}},
      {"sluice.random_bits",
       {{"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<3x5xi32>} : (tensor<2xi32>) -> tensor<3x5xi32>",
         {{-1e9, 1e9}}},
        {"\"sluice.random_bits\"(%0) {stream = 9 : i64, type = tensor<?x5xi32>} : (tensor<2xi32>) -> tensor<?x5xi32>",
         {{-1e9, 1e9}}}}},
      {"sluice.gather", // some out of range
       {{"\"sluice.gather\"(%0, %1) {axis = 1 : i64} : (tensor<?x4xf64>, tensor<2x3xi32>) -> tensor<?x2x3xf64>",
         {{-2, 2}, {-2, 7}}}}},
      {"sluice.take_along", // some out of range
       {{"\"sluice.take_along\"(%0, %1) {axis = 1 : i64} : (tensor<?x4xf64>, tensor<?x6xi32>) -> tensor<?x6xf64>",
         {{-2, 2}, {-2, 7}}}}},
      {"sluice.add_along", // some out of range
       {{"\"sluice.add_along\"(%0, %1) {axis = 1 : i64, size = 4 : i64} : (tensor<?x6xf64>, tensor<?x6xi64>) -> "
         "tensor<?x4xf64>",
         {{-2, 2}, {-2, 7}}}}},
      {"sluice.cumsum",
       {{"\"sluice.cumsum\"(%0) {axis = 0 : i64} : (tensor<9x4xi64>) -> tensor<9x4xi64>", {{-9, 9}}},
        {"\"sluice.cumsum\"(%0) {axis = 1 : i64, reverse} : (tensor<?x7xui8>) -> tensor<?x7xui8>", {{0, 256}}}}},
      {"sluice.scatter_add", // some out of range
       {{"\"sluice.scatter_add\"(%0, %1) {axis = 1 : i64, size = 4 : i64} : (tensor<?x2x3xf64>, tensor<2x3xi32>) -> "
         "tensor<?x4xf64>",
         {{-2, 2}, {-2, 7}}}}},
      {"sluice.normal",
       {{"\"sluice.normal\"(%0) {stream = -3 : i64, a = 1.0 : f64, b = 2.0 : f64, type = tensor<20xf64>} : "
         "(tensor<2xi32>) -> tensor<20xf64>",
         {{-1e9, 1e9}}},
        {"\"sluice.normal\"(%0) {stream = 0 : i64, a = 1.0 : f64, b = 2.0 : f64, type = tensor<300xf64>, wide} : "
         "(tensor<2xi32>) -> tensor<300xf64>",
         {{-1e9, 1e9}}}}},
      {"sluice.bernoulli",
       {{"\"sluice.bernoulli\"(%0) {stream = 0 : i64, p = 0.5 : f64, type = tensor<3x50xi1>} : (tensor<2xi32>) -> "
         "tensor<3x50xi1>",
         {{-1e9, 1e9}}},
        {"\"sluice.bernoulli\"(%0, %1) {stream = 7 : i64, p = 0.3 : f64, type = tensor<2x?x7xi1>} : (tensor<2xi32>, "
         "tensor<i64>) -> tensor<2x?x7xi1>",
         {{-1e9, 1e9}, {0, 1e6}}}}},
      {"sluice.dequantize_blocks",
       {{"\"sluice.dequantize_blocks\"(%0, %1) {axis = 1 : i64} : (tensor<3x64xui8>, tensor<3x2xf16>) -> "
         "tensor<3x64xf32>",
         {{0, 256}, {0, 2}}},
        {"\"sluice.dequantize_blocks\"(%0, %1) {axis = 0 : i64} : (tensor<32x40xui8>, tensor<1x40xf16>) -> "
         "tensor<32x40xf32>",
         {{0, 256}, {0, 2}}}}},
      {"sluice.power_sum",
       {{"\"sluice.power_sum\"(%0, %1) {power = 1 : i64} : (tensor<?x3x2x5xf64>, tensor<3xf64>) -> tensor<3xf64>",
         {{-2, 2}, {-1, 1}}},
        {"\"sluice.power_sum\"(%0, %1) {power = 2 : i64} : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<3xf64>",
         {{-2, 2}, {-1, 1}}}}},
      {"sluice.reduce_max",
       {{"\"sluice.reduce_max\"(%0) {axes = array<i64: 0>} : (tensor<4x3xi32>) -> tensor<3xi32>", {{-9, 9}}}}},
      {"sluice.reduce_min",
       {{"\"sluice.reduce_min\"(%0) {axes = array<i64: 0>} : (tensor<4x3xui8>) -> tensor<3xui8>", {{0, 256}}}}},
      {"sluice.relayout", {{"\"sluice.relayout\"(%0) : (tensor<2x3xf64>) -> tensor<2x3xf64>", {{-2, 2}}}}},
      {"sluice.reshape",
       {{"\"sluice.reshape\"(%0) {shape = array<i64: 6, 4, 1, 2>} : (tensor<2x1x3x8xf64>) -> tensor<6x4x1x2xf64>",
         {{-2, 2}}},
        {"\"sluice.reshape\"(%0) {shape = array<i64>} : (tensor<1x1xf64>) -> tensor<f64>", {{-2, 2}}},
        {"\"sluice.reshape\"(%0) {shape = array<i64: -1, 4, 2>} : (tensor<?x8xf64>) -> tensor<?x4x2xf64>", {{-2, 2}}}}},
  };
  return samples;
}

std::vector<Sample> getSamples(const std::string &name) {
  std::vector<Sample> samples;
  if (auto *differentiable = OperationName(name, &getContext()).getInterface<DifferentiableOp>())
    for (Sample &sample : differentiable->samples())
      samples.push_back(sample);
  auto others = getOtherSamples().find(name);
  if (others != getOtherSamples().end())
    samples.insert(samples.end(), others->second.begin(), others->second.end());
  return samples;
}

} // namespace sluice::test
