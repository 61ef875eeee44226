// Modules from untrusted text. ModuleTextCheck.cpp restricts the text before MLIR's parser runs; this file checks the
// properties that SSA dominance does not cover afterwards.
#include "ir/text/ParseGuard.h"

#include "ir/Module.h"
#include "ir/ValueType.h"
#include "ir/text/DiagnosticText.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "runtime/files/InputFile.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace sluice::ir {

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Dominance is not enforced in graph regions, such as a module's body, nor in unreachable blocks. There a value may
/// depend on itself, and folding such a value does not terminate.
static LogicalResult verifyOrder(Operation *root) {
  WalkResult result = root->walk([](Operation *op) -> WalkResult {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && producer->getBlock() == op->getBlock() && !producer->isBeforeInBlock(op))
        return op->emitOpError("uses a value before it is defined");
    }
    for (Region &region : op->getRegions()) {
      if (region.empty())
        continue;
      llvm::SmallPtrSet<Block *, 8> reached{&region.front()};
      SmallVector<Block *> work{&region.front()};
      while (!work.empty())
        for (Block *next : work.pop_back_val()->getSuccessors())
          if (reached.insert(next).second)
            work.push_back(next);
      if (reached.size() != region.getBlocks().size())
        return op->emitOpError("holds a block that nothing reaches");
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifySize(Operation *op, Type type, int64_t capacity) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return success();
  int64_t elements = 1;
  for (int64_t size : shaped.getShape())
    if (llvm::MulOverflow(elements, ShapedType::isDynamic(size) ? capacity : std::max<int64_t>(size, 1), elements) ||
        elements >= kMaxElements)
      return op->emitOpError() << "has a value of type " << type << ", too large to address with a capacity of "
                               << capacity << " rows";
  return success();
}

static LogicalResult verifyValues(ModuleOp module, llvm::function_ref<LogicalResult(Operation *, Type)> verifyValue) {
  WalkResult result = module->walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (failed(verifyValue(op, type)))
        return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(verifyValue(op, type)))
            return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Ops verify constrained operands themselves, but not results and block arguments without users.
static LogicalResult verifyTypes(ModuleOp module) {
  for (auto state : module.getOps<StateOp>())
    if (failed(verifyValueType(state, state.getStoredType())))
      return failure();
  return verifyValues(
      module, [](Operation *op, Type type) { return isa<EventType>(type) ? success() : verifyValueType(op, type); });
}

/// Checks shapes again with the capacity of the batch dimension.
static LogicalResult verifyCapacity(ModuleOp module) {
  int64_t capacity = std::max<int64_t>(getCapacity(module), 1);
  return verifyValues(module, [&](Operation *op, Type type) { return verifySize(op, type, capacity); });
}

/// Pins and chosen devices are read on any op; they must be strings.
static LogicalResult verifyPins(ModuleOp module) {
  WalkResult result = module->walk([&](Operation *op) -> WalkResult {
    for (StringRef name : {StringRef(kPinAttr), StringRef(kChosenAttr)})
      if (Attribute device = op->getAttr(name); device && !isa<StringAttr>(device))
        return op->emitOpError() << "attribute '" << name << "' must be the name of a device, but is " << device;
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

llvm::Expected<OwningOpRef<ModuleOp>> parseModuleText(llvm::StringRef text, llvm::StringRef name,
                                                      MLIRContext &context) {
  if (std::string problem = problemOfFormat(text); !problem.empty())
    return makeError(name + ":" + problem);
  if (llvm::Error error = checkModuleText(text, name))
    return error;
  context.loadDialect<SluiceDialect>();
  context.allowUnregisteredDialects(false);
  context.printOpOnDiagnostic(false); // the location suffices; the op of an error may be the whole module

  DiagnosticText diagnostics(&context);
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config, name);
  if (module && succeeded(verifyOrder(*module)) && succeeded(verify(*module)) && succeeded(verifyTypes(*module)) &&
      succeeded(verifyCapacity(*module)) && succeeded(verifyPins(*module)))
    return module;
  llvm::StringRef errors = llvm::StringRef(diagnostics.errors()).rtrim();
  return errors.empty() ? makeError(name + ": not a valid module") : makeError(errors);
}

llvm::Expected<OwningOpRef<ModuleOp>> parseModuleFile(llvm::StringRef path, MLIRContext &context) {
  std::string text;
  files::Failure failure = files::readFile(path.str(), files::Source::regularOrPipe, kMaxModelBytes, text);
  if (!failure.empty())
    return makeError(path + ": " + failure);
  return parseModuleText(text, path, context);
}

} // namespace sluice::ir
