// Folding: nodes whose inputs are all known are computed by the reference functions of the ops that they would become.
#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/import/Importer.h"
#include "ir/Dialect.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <map>

namespace sluice::onnx {

using detail::Access;

/// Nodes that read or make more elements stay in the graph: the reference functions are slow and compute in doubles.
static constexpr std::int64_t kMostFolded = std::int64_t(1) << 22;

/// Whether doubles hold all elements exactly.
static bool isExact(const Known &known) {
  if (known.type() != ElementType::i64 && known.type() != ElementType::u64)
    return true;
  for (std::int64_t i = 0; i < (known.isUniform() ? std::min<std::int64_t>(known.count(), 1) : known.count()); ++i)
    if (std::abs(known.integer(i)) >= std::int64_t(1) << 53)
      return false;
  return true;
}

static bool canFold(const std::vector<ValuePtr> &operands) {
  std::int64_t elements = 0;
  for (const ValuePtr &operand : operands) {
    if (!operand)
      continue;
    const Known &known = *operand->known();
    elements += known.count();
    if (!heldAs(known.type()) || known.count() == 0 || elements > kMostFolded || !isExact(known))
      return false;
  }
  return true;
}

Tensor Importer::tensorToFold(const ValuePtr &value) {
  for (std::size_t i = 0; i < folded.size(); ++i)
    if (folded[i] == value)
      return (*foldInputs)[i];
  const Known &known = *value->known();
  Shape shape(std::vector<Dim>(known.dims().begin(), known.dims().end()));
  folded.push_back(value);
  foldInputs->push_back(target->input("x" + std::to_string(folded.size()), *heldAs(known.type()), shape));
  return foldInputs->back();
}

static ir::HostTensor hostTensorOf(const Known &known) {
  ir::HostTensor tensor(llvm::ArrayRef(known.dims()));
  tensor.data = known.reals();
  return tensor;
}

namespace {

/// Computes the ops of a graph without rows, states and regions.
class Evaluation {
public:
  void set(mlir::Value value, ir::HostTensor tensor) { values[value.getAsOpaquePointer()] = std::move(tensor); }
  const ir::HostTensor &at(mlir::Value value) const { return values.at(value.getAsOpaquePointer()); }

  bool run(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      auto reference = llvm::dyn_cast<ir::ReferenceOp>(op);
      if (!reference || op.getNumRegions() > 0 || llvm::isa<ir::GetOp>(op) || isTooLarge(op))
        return false;
      llvm::SmallVector<ir::HostTensor> operands;
      for (mlir::Value operand : op.getOperands())
        operands.push_back(at(operand));
      llvm::SmallVector<ir::HostTensor> results = reference.evaluate(operands, /*rows=*/0);
      for (auto [result, tensor] : llvm::zip_equal(op.getResults(), results)) {
        mlir::Type element = llvm::cast<mlir::RankedTensorType>(result.getType()).getElementType();
        for (double &number : tensor.data)
          number = ir::roundTo(element, number);
        if (element.isInteger(64) &&
            llvm::any_of(tensor.data, [](double number) { return std::abs(number) >= 0x1p53; }))
          return false; // doubles are not exact
        set(result, std::move(tensor));
      }
    }
    return true;
  }

private:
  static bool isTooLarge(mlir::Operation &op) {
    return llvm::any_of(op.getResultTypes(), [](mlir::Type type) {
      return llvm::cast<mlir::RankedTensorType>(type).getNumElements() > kMostFolded;
    });
  }

  std::map<void *, ir::HostTensor> values;
};

} // namespace

static Known knownOf(const ir::HostTensor &tensor, ElementType type) {
  Dims dims(tensor.shape.begin(), tensor.shape.end());
  return Known::ofReals(type, std::move(dims), tensor.data);
}

bool Importer::fold(Node &node, void (*handler)(Node &)) {
  if (foldInputs || !canFold(node.operands))
    return false;
  Graph scratch("folded");
  std::vector<Tensor> inputs;
  Graph *before = std::exchange(target, &scratch);
  foldInputs = &inputs;
  folded.clear();
  auto leave = llvm::make_scope_exit([&] {
    target = before;
    foldInputs = nullptr;
  });
  handler(node);
  Evaluation evaluation;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    evaluation.set(Access::value(inputs[i]), hostTensorOf(*folded[i]->known()));
  bool isComputed = evaluation.run(Access::graph(scratch)->graph.getBody().front());
  for (ValuePtr &result : node.results) {
    if (isComputed && result && result->tensor())
      result = valueOf(knownOf(evaluation.at(Access::value(*result->tensor())), result->type));
    else if (!isComputed)
      result = nullptr;
  }
  return isComputed;
}

} // namespace sluice::onnx
