#include "passes/analysis/ContentKey.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace sluice::passes {

namespace {

class KeyWriting {
public:
  explicit KeyWriting(llvm::function_ref<Type(Type)> typeOf) : typeOf(typeOf) {}

  void add(Block &block) {
    add(block.getNumArguments());
    for (BlockArgument argument : block.getArguments())
      define(argument);
    for (Operation &op : block)
      add(op);
    add(kEndOfBlock);
  }

  std::string take() { return std::move(key); }

private:
  static constexpr uint64_t kEndOfBlock = UINT64_MAX;

  void add(uint64_t part) { key.append(reinterpret_cast<const char *>(&part), sizeof part); }
  void addAddress(const void *part) { add(reinterpret_cast<uintptr_t>(part)); }

  void define(Value value) {
    numbers.try_emplace(value, numbers.size());
    addAddress(typeOf(value.getType()).getAsOpaquePointer());
  }

  void add(Operation &op) {
    addAddress(op.getName().getAsOpaquePointer());
    addAddress(op.getAttrDictionary().getAsOpaquePointer());
    add(op.getNumOperands());
    for (Value operand : op.getOperands())
      add(numbers.at(operand));
    add(op.getNumResults());
    for (Value result : op.getResults())
      define(result);
    add(op.getNumRegions());
    for (Region &region : op.getRegions())
      for (Block &block : region)
        add(block);
  }

  llvm::function_ref<Type(Type)> typeOf;
  DenseMap<Value, uint64_t> numbers;
  std::string key;
};

} // namespace

std::string contentKey(Block &block, llvm::function_ref<Type(Type)> typeOf) {
  KeyWriting writing(typeOf);
  writing.add(block);
  return writing.take();
}

} // namespace sluice::passes
