#include "passes/backend/KernelView.h"
#include "ir/Layout.h"
#include "ir/text/Words.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static_assert(int(PhysicalDim::Whole) == SLUICE_LAYOUT_WHOLE && int(PhysicalDim::Div) == SLUICE_LAYOUT_TILE_NUMBER &&
              int(PhysicalDim::Mod) == SLUICE_LAYOUT_PLACE_IN_TILE);

void OpViews::leaveUnsaid(const Twine &what) {
  if (unsaid.empty())
    unsaid = ("backends cannot be told of " + what).str();
}

sluice_dtype OpViews::dtypeOf(Type element) {
  std::optional<sluice_dtype> dtype = ir::dtypeOf(element);
  if (!dtype)
    leaveUnsaid("an element type that has no number in dtypes.h");
  return dtype.value_or(sluice_dtype{});
}

/// Null-terminated.
const char *OpViews::keep(StringRef text) {
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
ArrayRef<sluice_layout_dim> OpViews::layoutOf(RankedTensorType type) {
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

const OpViews::TypeEntry &OpViews::of(Type type) {
  const TypeEntry *&known = types[type];
  if (known)
    return *known;
  auto tensor = cast<RankedTensorType>(type);
  ArrayRef<int64_t> shape = tensor.getShape(); // lives as long as the context
  if (!tensor.hasStaticShape())
    shape = keep(ArrayRef<int64_t>(sizesOf(shape)));
  ArrayRef<sluice_layout_dim> layout = layoutOf(tensor);
  sluice_type_view view{dtypeOf(tensor.getElementType()), shape.data(), shape.size(), layout.data(), layout.size()};
  known = new (memory) TypeEntry{view, takeUnsaid()};
  return *known;
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

sluice_attribute_view OpViews::viewOf(Operation *op, NamedAttribute attribute) {
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

const OpViews::OpEntry &OpViews::of(Operation *op) {
  const OpEntry *&known = ops[op];
  if (known)
    return *known;
  // Only the op's own attributes: annotations of other passes mean nothing to a backend.
  NamedAttrList own;
  op->getName().populateInherentAttrs(op, own);
  SmallVector<NamedAttribute> named(own.begin(), own.end());
  llvm::sort(named);
  ArrayRef<sluice_attribute_view> attributes =
      keep(ArrayRef(llvm::map_to_vector(named, [&](NamedAttribute attribute) { return viewOf(op, attribute); })));
  StringRef unsaidOfIt = takeUnsaid();
  auto results = llvm::map_to_vector(op->getResultTypes(), [&](Type type) { return &of(type); });
  sluice_op_view view{op->getName().getStringRef().data(),
                      nullptr,
                      op->getNumOperands(),
                      op->getNumResults(),
                      attributes.data(),
                      attributes.size(),
                      sizeof(sluice_attribute_view),
                      op};
  known = new (memory) OpEntry{view, keep(ArrayRef<const TypeEntry *>(results)), unsaidOfIt};
  return *known;
}

StringRef OpViews::takeUnsaid() {
  StringRef taken = unsaid.empty() ? "" : keep(unsaid);
  unsaid.clear();
  return taken;
}

/// Values get their numbers in one pass, for which the numbers of inputs and of results are separate.
void KernelView::addOps(ArrayRef<Operation *> members, ValueRange inputs, ValueRange outputs, OpViews &views) {
  auto leaveUnsaid = [&](StringRef text) { unsaidText = unsaidText.empty() ? text : unsaidText; };
  constexpr size_t kOfResult = ~(SIZE_MAX >> 1); // set in the number of a result
  llvm::SmallDenseMap<Value, size_t, 16> numbers;
  numbers.reserve(unsigned(inputs.size() + 2 * members.size()));
  auto addValue = [&](const OpViews::TypeEntry &type) {
    values.push_back(type.view);
    leaveUnsaid(type.unsaid);
  };
  for (Value input : inputs)
    if (numbers.try_emplace(input, values.size()).second)
      addValue(views.of(input.getType()));
  size_t numResults = 0;
  for (Operation *op : members) {
    for (Value operand : op->getOperands()) {
      auto [entry, isInput] = numbers.try_emplace(operand, values.size());
      if (isInput)
        addValue(views.of(operand.getType()));
      operands.push_back(entry->second);
    }
    for (Value result : op->getResults())
      numbers[result] = kOfResult | numResults++;
  }
  view.num_operands = values.size();
  auto finalNumber = [&](size_t number) {
    return number & kOfResult ? view.num_operands + (number & ~kOfResult) : number;
  };
  for (size_t &operand : operands)
    operand = finalNumber(operand);
  const size_t *itsOperands = operands.data();
  for (Operation *op : members) {
    const OpViews::OpEntry &its = views.of(op);
    leaveUnsaid(its.unsaid);
    llvm::for_each(its.results, [&](const OpViews::TypeEntry *type) { addValue(*type); });
    ops.push_back(its.view);
    ops.back().operands = itsOperands;
    itsOperands += its.view.num_operands;
  }
  for (Value output : outputs)
    results.push_back(finalNumber(numbers.at(output)));
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
  view.name = "";
  auto kernel = dyn_cast<KernelOp>(op);
  if (!kernel) {
    addOps(op, {}, op->getResults(), ownViews);
    return;
  }
  setName(kernel.getName());
  Block &body = kernel.getBody().front();
  auto members = llvm::to_vector(llvm::make_pointer_range(body.without_terminator()));
  addOps(members, body.getArguments(), body.getTerminator()->getOperands(), ownViews);
}

KernelView::KernelView(ArrayRef<Operation *> members, ValueRange outputs, OpViews &views) {
  view.name = "";
  addOps(members, {}, outputs, views);
}

void KernelView::setName(StringRef text) {
  name = text.str();
  view.name = name.c_str();
}

void KernelView::setSymbol(StringRef text) {
  symbol = text.str();
  view.symbol = symbol.empty() ? nullptr : symbol.c_str();
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
