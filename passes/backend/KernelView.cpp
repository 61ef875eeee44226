#include "passes/backend/KernelView.h"
#include "ir/Layout.h"
#include "ir/text/Words.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static_assert(int(PhysicalDim::Whole) == SLUICE_LAYOUT_WHOLE && int(PhysicalDim::Div) == SLUICE_LAYOUT_TILE_NUMBER &&
              int(PhysicalDim::Mod) == SLUICE_LAYOUT_PLACE_IN_TILE);

void KernelView::leaveUnsaid(const Twine &what) {
  if (unsaidText.empty())
    unsaidText = ("backends cannot be told of " + what).str();
}

sluice_dtype KernelView::dtypeOf(Type element) {
  std::optional<sluice_dtype> dtype = ir::dtypeOf(element);
  if (!dtype)
    leaveUnsaid("an element type that has no number in dtypes.h");
  return dtype.value_or(sluice_dtype{});
}

/// Null-terminated.
const char *KernelView::keep(StringRef text) {
  MutableArrayRef<char> kept(memory.Allocate<char>(text.size() + 1), text.size() + 1);
  llvm::copy(text, kept.begin());
  kept.back() = 0;
  return kept.data();
}

/// Sizes as backends see them: the batch dimension is -1.
static SmallVector<int64_t> sizesOf(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> result(sizes);
  std::replace(result.begin(), result.end(), ShapedType::kDynamic, int64_t(-1));
  return result;
}

/// Empty if row-major.
ArrayRef<sluice_layout_dim> KernelView::layoutOf(RankedTensorType type) {
  AtAttr at = getAt(type);
  if (!at || !at.getLayout())
    return {};
  FailureOr<SmallVector<PhysicalDim>> dims = getPhysicalDims(type);
  if (failed(dims)) {
    leaveUnsaid("a layout that is not made of dimensions and their tiles");
    return {};
  }
  SmallVector<sluice_layout_dim> layout;
  for (const PhysicalDim &dim : *dims)
    layout.push_back({dim.logical, sluice_layout_part(dim.kind), dim.tile});
  return keep(ArrayRef(layout));
}

void KernelView::addValue(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<int64_t> shape = type.getShape(); // lives as long as the context
  if (!type.hasStaticShape())
    shape = keep(ArrayRef<int64_t>(sizesOf(shape)));
  ArrayRef<sluice_layout_dim> layout = layoutOf(type);
  numbers[value] = values.size();
  values.push_back({dtypeOf(type.getElementType()), shape.data(), shape.size(), layout.data(), layout.size()});
}

/// Whether a constant is a splat with so many elements that a list of them would not fit.
static bool isTooLong(DenseElementsAttr value) {
  constexpr int64_t kMostEqual = int64_t(1) << 26;
  return value.isSplat() && value.getNumElements() > kMostEqual;
}

/// The elements of a constant, in row-major order.
static void readElements(DenseElementsAttr value, SmallVectorImpl<int64_t> &whole, SmallVectorImpl<double> &real) {
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

sluice_attribute_view KernelView::viewOf(Operation *op, NamedAttribute attribute) {
  sluice_attribute_view view{};
  view.name = attribute.getName().data(); // null-terminated, as are op names
  SmallVector<int64_t> whole;
  SmallVector<double> real;
  Attribute value = attribute.getValue();
  if (isa<UnitAttr>(value)) {
    whole = {1};
  } else if (auto boolean = dyn_cast<BoolAttr>(value)) {
    whole = {boolean.getValue()};
  } else if (auto integer = dyn_cast<IntegerAttr>(value)) {
    whole = {integer.getInt()};
  } else if (auto number = dyn_cast<FloatAttr>(value)) {
    real = {number.getValueAsDouble()};
  } else if (auto array = dyn_cast<DenseI64ArrayAttr>(value)) {
    whole = sizesOf(array.asArrayRef());
  } else if (auto elements = dyn_cast<DenseElementsAttr>(value); elements && isTooLong(elements)) {
    leaveUnsaid("one number for " + Twine(elements.getNumElements()) + " elements; write it as 'sluice.full'");
  } else if (elements) {
    readElements(elements, whole, real);
  } else if (auto type = dyn_cast<TypeAttr>(value)) {
    view.kind = SLUICE_ATTRIBUTE_TYPE;
    view.dtype = dtypeOf(getElementTypeOrSelf(type.getValue()));
    if (auto tensor = dyn_cast<RankedTensorType>(type.getValue()))
      whole = sizesOf(tensor.getShape());
  } else if (std::optional<StringRef> word = wordOf(value)) {
    view.kind = SLUICE_ATTRIBUTE_WORD;
    view.word = keep(*word);
  } else {
    leaveUnsaid("the attribute '" + attribute.getName().getValue() + "' of '" + op->getName().getStringRef() + "'");
  }
  if (!real.empty()) { // an empty list is a list of integers
    view.kind = SLUICE_ATTRIBUTE_REALS;
    view.count = real.size();
    view.reals = keep(ArrayRef(real)).data();
  } else if (!view.word) {
    view.count = whole.size();
    view.integers = keep(ArrayRef(whole)).data();
  }
  return view;
}

void KernelView::addOp(Operation *op) {
  ArrayRef<size_t> operands =
      keep(ArrayRef(llvm::map_to_vector(op->getOperands(), [&](Value operand) { return numbers.at(operand); })));
  // Only the op's own attributes: annotations of other passes mean nothing to a backend.
  NamedAttrList own;
  op->getName().populateInherentAttrs(op, own);
  SmallVector<NamedAttribute> named(own.begin(), own.end());
  llvm::sort(named);
  ArrayRef<sluice_attribute_view> attributes =
      keep(ArrayRef(llvm::map_to_vector(named, [&](NamedAttribute attribute) { return viewOf(op, attribute); })));
  for (Value result : op->getResults())
    addValue(result);
  ops.push_back({op->getName().getStringRef().data(), operands.data(), operands.size(), op->getNumResults(),
                 attributes.data(), attributes.size(), sizeof(sluice_attribute_view), op});
}

void KernelView::finish(ValueRange outputs) {
  for (Value output : outputs)
    results.push_back(numbers.at(output));
  view.struct_size = sizeof(view);
  view.values = values.data();
  view.num_values = values.size();
  view.value_size = sizeof(sluice_type_view);
  view.ops = ops.data();
  view.num_ops = ops.size();
  view.op_size = sizeof(sluice_op_view);
  view.results = results.data();
  view.num_results = results.size();
}

KernelView::KernelView(Operation *op) {
  view.operation = op;
  auto kernel = dyn_cast<KernelOp>(op);
  view.name = kernel ? keep(kernel.getName()) : "";
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

/// A module with the header of the kernel's module and one entry point, named after the kernel, that runs a copy of it.
/// The bytecode of the kernel alone could not describe its operands.
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
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  // Writing to memory cannot fail.
  (void)writeBytecodeToFile(*isolate(kernel), os);
  os.flush();
  auto *kept = static_cast<char *>(memory.Allocate(bytes.size(), llvm::Align(16)));
  llvm::copy(bytes, kept);
  view.bytecode = kept;
  view.bytecode_size = bytes.size();
}

} // namespace sluice::passes
