#include "tools/arrays/SavedValues.h"

#include "mlir/IR/Diagnostics.h"
#include "passes/Passes.h"
#include "sluice/ops.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace sluice::detail {

/// The ops of a graph after `last`, without those in steps and branches.
static std::vector<Operation *> opsAfter(GraphImpl &graph, Operation *last) {
  std::vector<Operation *> ops;
  Block &body = graph.graph.getBody().front();
  for (Operation &op : llvm::make_range(last ? std::next(last->getIterator()) : body.begin(), body.end()))
    ops.push_back(&op);
  return ops;
}

[[noreturn]] static void failImpure(const char *function, std::source_location where) {
  throw Error(std::string(function) + ": two traces of the function built different ops; it must be pure", where);
}

std::vector<Value> valuesOf(GraphImpl &graph, Operation *last, const std::vector<SavedValue> &saved,
                            const char *function, std::source_location where) {
  std::vector<Operation *> ops = opsAfter(graph, last);
  std::vector<Value> values;
  for (const SavedValue &its : saved) {
    if (its.op >= ops.size() || its.result >= ops[its.op]->getNumResults())
      failImpure(function, where);
    values.push_back(ops[its.op]->getResult(its.result));
  }
  return values;
}

/// Makes all consumers of a value read an input instead.
static void useSaved(GraphImpl &graph, Value value, Value given) {
  OpBuilder builder(graph.builder.getContext());
  builder.setInsertionPointAfterValue(value);
  auto saved = builder.create<ir::SavedOp>(value.getLoc(), value, given);
  value.replaceAllUsesExcept(saved, saved);
}

void useSaved(GraphImpl &graph, Operation *last, const std::vector<SavedValue> &saved, ArrayRef<Tensor> given,
              const char *function, std::source_location where) {
  std::vector<Value> values = valuesOf(graph, last, saved, function, where);
  for (size_t i = 0; i < values.size(); ++i) {
    Value input = Access::value(given[i]);
    if (values[i].getType() != input.getType())
      failImpure(function, where);
    useSaved(graph, values[i], input);
  }
}

namespace {

/// Differentiates a traced function as if all its values were saved, to find the values that the gradients read.
class Finder {
public:
  Finder(CallGraph &call, const std::vector<bool> &isDifferentiated)
      : call(call), graph(*Access::graph(call.graph)), where(call.request.where), ops(opsAfter(graph, nullptr)) {
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (isDifferentiated[i] && is_float(call.inputs[i].dtype()))
        operands.push_back(call.inputs[i]);
    for (const Tensor &result : call.results)
      isResult.insert(Access::value(result));
  }

  std::vector<SavedValue> run() {
    std::vector<Tensor> reached = giveGradients();
    if (reached.empty())
      return {};
    giveValues();
    std::vector<Tensor> gradients = sluice::grad(Arg(loss, where), reached);
    for (size_t i = 0; i < gradients.size(); ++i)
      call.graph.output("g" + std::to_string(i), Arg(gradients[i], where));
    return withoutCheap(readByGradients());
  }

private:
  /// An input with the type of a value.
  Value inputLike(Value value, const std::string &name) {
    auto type = cast<RankedTensorType>(value.getType());
    return graph.addInputOn(ir::getDevice(type), name, RankedTensorType::get(type.getShape(), type.getElementType()),
                            where);
  }

  /// Builds a loss in which each result has a gradient as its factor. Returns the operands on which the loss depends.
  std::vector<Tensor> giveGradients() {
    for (size_t i = 0; i < call.ownResults; ++i) {
      const Tensor &result = call.results[i];
      bool depends = is_float(result.dtype()) && llvm::any_of(operands, [&](const Tensor &operand) {
                       return graph.dependsOn(Access::value(result), Access::value(operand));
                     });
      if (depends)
        addToLoss(result, Access::tensor(graph, inputLike(Access::value(result), "d" + std::to_string(i))));
    }
    std::vector<Tensor> reached;
    if (bool exists{loss}; exists)
      llvm::copy_if(operands, std::back_inserter(reached), [&](const Tensor &operand) {
        return graph.dependsOn(Access::value(loss), Access::value(operand));
      });
    return reached;
  }

  void addToLoss(const Tensor &result, const Tensor &gradient) {
    Tensor part = (result * gradient).to(f32);
    if (part.dim() > 0)
      part = part.sum();
    bool exists{loss};
    std::optional<Device> device = exists ? loss.device() : std::nullopt;
    loss = exists ? loss + (device ? part.to(*device) : part) : part;
  }

  /// Makes the consumers of all values of the function read inputs instead.
  void giveValues() {
    for (size_t op = 0; op < ops.size(); ++op)
      for (OpResult result : ops[op]->getResults()) {
        bool isValue = isa<RankedTensorType>(result.getType()) && ir::getDevice(result.getType());
        if (!isValue || ops[op]->getNumOperands() == 0)
          continue;
        std::string name = "s" + std::to_string(op) + "_" + std::to_string(result.getResultNumber());
        useSaved(graph, result, inputLike(result, name));
      }
  }

  /// The names of the inputs that the gradients read. Empty if differentiation fails: `backward` reports the reason.
  llvm::StringSet<> readByGradients() {
    ScopedDiagnosticHandler ignored(&graph.context, [](Diagnostic &) { return success(); });
    OwningOpRef<ModuleOp> module = moduleOf(call.graph, where).clone();
    llvm::StringSet<> read;
    passes::keepVariables(*module);
    if (failed(passes::buildEntryPoints(*module)))
      return read;
    for (auto entry : module->getOps<ir::EntryOp>())
      for (StringRef input : entry.getInputs().getAsValueRange<StringAttr>())
        read.insert(input);
    return read;
  }

  static bool isCheap(Operation *op) {
    return op->getNumOperands() == 0 || isa<ir::ElementwiseOp, ir::SameElementsOp>(op);
  }

  /// The values to save: those that the gradients read, except cheap ones.
  std::vector<SavedValue> withoutCheap(const llvm::StringSet<> &read) {
    std::vector<SavedValue> saved;
    llvm::DenseSet<Value> isAvailable(isResult);
    for (size_t op = 0; op < ops.size(); ++op)
      for (OpResult result : ops[op]->getResults()) {
        auto given = [&](Value operand) {
          auto before = operand.getDefiningOp<ir::SavedOp>();
          return !operand.getDefiningOp() || isAvailable.contains(before ? before.getValue() : operand);
        };
        std::string name = "s" + std::to_string(op) + "_" + std::to_string(result.getResultNumber());
        bool isRead = read.contains(name) && !isResult.contains(result);
        bool isComputed = isCheap(ops[op]) && llvm::all_of(ops[op]->getOperands(), given);
        if (isRead && !isComputed)
          saved.push_back({op, result.getResultNumber()});
        if (isRead || isComputed)
          isAvailable.insert(result);
      }
    return saved;
  }

  CallGraph &call;
  GraphImpl &graph;
  std::source_location where;
  std::vector<Operation *> ops; ///< of the function
  std::vector<Tensor> operands; ///< those with gradients
  llvm::DenseSet<Value> isResult;
  Tensor loss;
};

} // namespace

std::vector<SavedValue> findSaved(CallGraph &call, const std::vector<bool> &isDifferentiated) {
  return Finder(call, isDifferentiated).run();
}

} // namespace sluice::detail
