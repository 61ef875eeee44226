#include "passes/backend/KernelView.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

template <typename Printable> static std::string print(Printable printable) {
  std::string text;
  llvm::raw_string_ostream(text) << printable;
  return text;
}

void KernelView::addValue(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  std::vector<int64_t> &shape = integers.emplace_back(type.getShape().begin(), type.getShape().end());
  std::replace(shape.begin(), shape.end(), ShapedType::kDynamic, int64_t(-1));
  AtAttr at = getAt(type);
  const char *layout = at && at.getLayout() ? keep(print(at.getLayout().getValue())) : "";
  numbers[value] = values.size();
  values.push_back({*dtypeOf(type.getElementType()), shape.data(), shape.size(), layout});
}

/// The elements of a constant, in row-major order.
static void readElements(DenseElementsAttr value, std::vector<int64_t> &whole, std::vector<double> &real) {
  auto type = dyn_cast<IntegerType>(value.getElementType());
  if (!type) {
    for (const APFloat &number : value.getValues<APFloat>())
      real.push_back(number.convertToDouble());
    return;
  }
  bool isSigned = !type.isUnsigned() && type.getWidth() > 1;
  for (const APInt &number : value.getValues<APInt>())
    whole.push_back(isSigned ? number.getSExtValue() : int64_t(number.getZExtValue()));
}

void KernelView::addAttribute(std::vector<sluice_attribute_view> &list, NamedAttribute attribute) {
  sluice_attribute_view item{keep(attribute.getName().str()), SLUICE_ATTRIBUTE_TEXT, nullptr, nullptr, 0, nullptr};
  std::vector<int64_t> whole;
  std::vector<double> real;
  Attribute value = attribute.getValue();
  if (isa<UnitAttr>(value))
    whole = {1};
  else if (auto boolean = dyn_cast<BoolAttr>(value))
    whole = {boolean.getValue()};
  else if (auto integer = dyn_cast<IntegerAttr>(value))
    whole = {integer.getInt()};
  else if (auto number = dyn_cast<FloatAttr>(value))
    real = {number.getValueAsDouble()};
  else if (auto array = dyn_cast<DenseI64ArrayAttr>(value))
    whole.assign(array.asArrayRef().begin(), array.asArrayRef().end());
  else if (auto elements = dyn_cast<DenseElementsAttr>(value))
    readElements(elements, whole, real);
  else if (auto text = dyn_cast<StringAttr>(value))
    item.text = keep(text.str());
  else if (auto reason = dyn_cast<CopyReasonAttr>(value))
    item.text = keep(stringifyCopyReason(reason.getValue()).str());
  else
    item.text = keep(print(value));
  if (!real.empty()) {
    item.kind = SLUICE_ATTRIBUTE_REALS;
    item.count = real.size();
    item.reals = reals.emplace_back(std::move(real)).data();
  } else if (!item.text) { // an empty list is one of integers
    item.kind = SLUICE_ATTRIBUTE_INTEGERS;
    item.count = whole.size();
    item.integers = integers.emplace_back(std::move(whole)).data();
  }
  list.push_back(item);
}

void KernelView::addOp(Operation *op) {
  std::vector<size_t> &operands = operandLists.emplace_back();
  for (Value operand : op->getOperands())
    operands.push_back(numbers.at(operand));
  std::vector<sluice_attribute_view> &attributes = attributeLists.emplace_back();
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (attribute.getName() != kPinAttr && attribute.getName() != kPlacementAttr)
      addAttribute(attributes, attribute);
  for (Value result : op->getResults())
    addValue(result);
  ops.push_back({op->getName().getStringRef().data(), operands.data(), operands.size(), op->getNumResults(),
                 attributes.data(), attributes.size(), op});
}

void KernelView::finish(ValueRange outputs) {
  for (Value output : outputs)
    results.push_back(numbers.at(output));
  view.struct_size = sizeof(view);
  view.values = values.data();
  view.num_values = values.size();
  view.ops = ops.data();
  view.num_ops = ops.size();
  view.results = results.data();
  view.num_results = results.size();
}

KernelView::KernelView(Operation *op) {
  view.operation = op;
  auto kernel = dyn_cast<KernelOp>(op);
  view.name = keep(kernel ? kernel.getName().str() : "");
  if (!kernel) {
    for (Value operand : llvm::SetVector<Value>(op->operand_begin(), op->operand_end()))
      addValue(operand);
    view.num_operands = values.size();
    addOp(op);
    finish(op->getResults());
    return;
  }
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments())
    addValue(argument);
  view.num_operands = values.size();
  for (Operation &inner : body.without_terminator())
    addOp(&inner);
  finish(body.getTerminator()->getOperands());
}

KernelView::KernelView(ArrayRef<Operation *> members, ValueRange outputs) {
  view.name = "";
  llvm::SmallPtrSet<Operation *, 16> inside(members.begin(), members.end());
  llvm::SetVector<Value> inputs;
  for (Operation *op : members)
    for (Value operand : op->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        inputs.insert(operand);
  for (Value input : inputs)
    addValue(input);
  view.num_operands = values.size();
  for (Operation *op : members)
    addOp(op);
  finish(outputs);
}

/// A module with the head of the kernel's own, in which an entry point of the kernel's name runs a copy of it:
/// bytecode of the kernel alone could not say what its operands are.
static OwningOpRef<ModuleOp> isolate(KernelOp kernel) {
  Location loc = kernel.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (Operation &op : *kernel->getParentOfType<ModuleOp>().getBody())
    if (isa<ModelOp, DeviceOp>(op))
      builder.clone(op);
  auto numbered = [&](const char *prefix, size_t count) {
    SmallVector<Attribute> names;
    for (size_t i = 0; i < count; ++i)
      names.push_back(builder.getStringAttr(prefix + std::to_string(i)));
    return builder.getArrayAttr(names);
  };
  OperationState state(loc, EntryOp::getOperationName());
  state.addAttribute("sym_name", kernel.getNameAttr());
  state.addAttribute("inputs", numbered("operand", kernel->getNumOperands()));
  state.addAttribute("outputs", numbered("result", kernel->getNumResults()));
  Block *body = new Block;
  state.addRegion()->push_back(body);
  builder.create(state);
  builder.setInsertionPointToEnd(body);
  Operation *copy = builder.clone(*kernel);
  for (OpOperand &operand : copy->getOpOperands())
    operand.set(body->addArgument(operand.get().getType(), loc));
  builder.create<ReturnOp>(loc, copy->getResults());
  return module;
}

void KernelView::addBytecode(KernelOp kernel) {
  std::string &bytes = texts.emplace_back();
  llvm::raw_string_ostream os(bytes);
  // Writing to memory cannot fail.
  (void)writeBytecodeToFile(*isolate(kernel), os);
  os.flush();
  view.bytecode = bytes.data();
  view.bytecode_size = bytes.size();
}

} // namespace sluice::passes
