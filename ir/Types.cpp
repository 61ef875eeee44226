#include "ir/Types.h"
#include "ir/Dialect.h"
#include <limits>

using namespace mlir;

namespace sluice::ir {

static bool sameShapeAndElement(Type a, Type b) {
  auto ta = dyn_cast<RankedTensorType>(a), tb = dyn_cast<RankedTensorType>(b);
  return ta && tb && ta.getShape() == tb.getShape() && ta.getElementType() == tb.getElementType();
}

bool sameShapesAndElements(TypeRange a, TypeRange b) {
  return a.size() == b.size() && llvm::all_of_zip(a, b, sameShapeAndElement);
}

RankedTensorType withElement(Type type, Type element) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding());
}

RankedTensorType withShape(Type type, ArrayRef<int64_t> shape) {
  auto tensor = cast<RankedTensorType>(type);
  Attribute encoding;
  if (StringAttr device = getDevice(type))
    encoding = AtAttr::get(type.getContext(), device, AffineMapAttr());
  return RankedTensorType::get(shape, tensor.getElementType(), encoding);
}

FailureOr<sluice_dtype> dtypeOf(Type element) {
  if (element.isF32())
    return SLUICE_DTYPE_f32;
  if (element.isF64())
    return SLUICE_DTYPE_f64;
  if (element.isF16())
    return SLUICE_DTYPE_f16;
  if (element.isBF16())
    return SLUICE_DTYPE_bf16;
  if (element.isSignlessInteger(32))
    return SLUICE_DTYPE_i32;
  if (element.isSignlessInteger(64))
    return SLUICE_DTYPE_i64;
  if (element.isUnsignedInteger(8))
    return SLUICE_DTYPE_u8;
  if (element.isSignlessInteger(1))
    return SLUICE_DTYPE_boolean;
  return failure();
}

double leastOf(Type element) {
  switch (*dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
  case SLUICE_DTYPE_f64:
  case SLUICE_DTYPE_f16:
  case SLUICE_DTYPE_bf16:
    return -std::numeric_limits<double>::infinity();
  case SLUICE_DTYPE_i32:
    return -0x1p31;
  case SLUICE_DTYPE_i64:
    return -0x1p63;
  case SLUICE_DTYPE_u8:
  case SLUICE_DTYPE_boolean:
    return 0;
  }
  llvm_unreachable("a dtype beyond the table");
}

Type typeOf(MLIRContext *context, sluice_dtype dtype) {
  switch (dtype) {
  case SLUICE_DTYPE_f32:
    return Float32Type::get(context);
  case SLUICE_DTYPE_f64:
    return Float64Type::get(context);
  case SLUICE_DTYPE_i32:
    return IntegerType::get(context, 32);
  case SLUICE_DTYPE_i64:
    return IntegerType::get(context, 64);
  case SLUICE_DTYPE_u8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case SLUICE_DTYPE_boolean:
    return IntegerType::get(context, 1);
  case SLUICE_DTYPE_f16:
    return Float16Type::get(context);
  case SLUICE_DTYPE_bf16:
    return BFloat16Type::get(context);
  }
  llvm_unreachable("a dtype beyond the table");
}

bool isHalf(Type element) { return element.isF16() || element.isBF16(); }

Type getAccumulator(Type element) {
  switch (*dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
  case SLUICE_DTYPE_f64:
  case SLUICE_DTYPE_i32:
  case SLUICE_DTYPE_i64:
  case SLUICE_DTYPE_u8:
  case SLUICE_DTYPE_boolean:
    return element; // integers wrap around in it
  case SLUICE_DTYPE_f16:
  case SLUICE_DTYPE_bf16:
    return Float32Type::get(element.getContext());
  }
  llvm_unreachable("a dtype beyond the table");
}

AtAttr getAt(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<AtAttr>(tensor.getEncoding()) : AtAttr();
}

StringAttr getDevice(Type type) {
  AtAttr at = getAt(type);
  return at ? at.getDevice() : StringAttr();
}

RankedTensorType withDevice(Type type, StringAttr device) {
  auto tensor = cast<RankedTensorType>(type);
  AtAttr at = getAt(type);
  AffineMapAttr layout = at ? at.getLayout() : AffineMapAttr();
  Attribute encoding = device || layout ? AtAttr::get(type.getContext(), device, layout) : AtAttr();
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), encoding);
}

StringAttr getPin(Operation *op) { return op->getAttrOfType<StringAttr>(kPinAttr); }

bool canTakeIn(Operation *op, Operation *movement) {
  StringAttr pin = getPin(movement);
  return !pin || pin == getPin(op);
}

void setDeviceAndPin(Operation *op, StringAttr fixed, StringAttr pin) {
  if (!op->hasTrait<SameDevice>())
    return;
  bool isPinned = pin && pin != fixed && op->getNumOperands() > 0;
  if (isPinned)
    op->setAttr(kPinAttr, pin);
  for (Value result : op->getResults())
    result.setType(withDevice(result.getType(), isPinned ? StringAttr() : fixed));
}

std::string printShape(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(shape, os, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      os << "?";
    else
      os << size;
  });
  os << "]";
  return text;
}

LogicalResult inferenceError(std::optional<Location> loc, const std::string &message) {
  return emitOptionalError(loc, message);
}

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << printShape(cast<RankedTensorType>(type).getShape()) << " " << cast<RankedTensorType>(type).getElementType();
  return text;
}

LogicalResult inferBinary(std::optional<Location> loc, ValueRange operands, SmallVectorImpl<Type> &types) {
  Type a = operands[0].getType(), b = operands[1].getType();
  if (!sameShapeAndElement(a, b))
    return inferenceError(loc, "operand types differ: " + printType(a) + " and " + printType(b));
  types.push_back(withShape(a, cast<RankedTensorType>(a).getShape()));
  return success();
}

LogicalResult verifySameDevice(Operation *op) {
  StringAttr device;
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(op->getResultTypes()), llvm::to_vector(op->getOperandTypes()))) {
    StringAttr here = getDevice(type);
    if (!here)
      continue;
    if (device && here != device)
      return op->emitOpError("uses values on two devices: ") << device.getValue() << " and " << here.getValue();
    device = here;
  }
  return success();
}

} // namespace sluice::ir
