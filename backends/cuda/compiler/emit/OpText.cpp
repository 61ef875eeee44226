#include "backends/cuda/compiler/emit/OpText.h"

#include "ir/Types.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

using namespace mlir;

namespace sluice::cuda {

std::string typeName(Type type) {
  if (isa<FloatType>(type))
    return type.isF64() ? "double" : "float";
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "bool";
  case 8:
    return "Byte";
  case 32:
    return "int";
  default:
    return "long long";
  }
}

std::string memoryTypeName(Type element) {
  if (element.isInteger(1))
    return "Byte";
  return element.isBF16() ? "BF16" : element.isF16() ? "F16" : typeName(element);
}

static std::string unsignedName(Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  return width <= 8 ? typeName(type) : width == 32 ? "unsigned" : "unsigned long long";
}

static std::string signedName(Type type) { return type.isInteger(8) ? "signed char" : typeName(type); }

/// An op's expression: a, b and c are its operands, T its type, U and S that of its first operand as an unsigned and a
/// signed one, and $ the suffix of function names for floats.
static std::string formOf(Operation *op) {
  static const llvm::StringMap<std::string> forms = {
      {"arith.addf", "a + b"},
      {"arith.addi", "a + b"},
      {"arith.subf", "a - b"},
      {"arith.subi", "a - b"},
      {"arith.mulf", "a * b"},
      {"arith.muli", "a * b"},
      {"arith.divf", "a / b"},
      {"arith.divsi", "a / b"},
      {"arith.divui", "(U)a / (U)b"},
      {"arith.remf", "fmod$(a, b)"},
      {"arith.andi", "a & b"},
      {"arith.ori", "a | b"},
      {"arith.xori", "a ^ b"},
      {"arith.shli", "(U)a << b"},
      {"arith.shrsi", "a >> b"},
      {"arith.shrui", "(U)a >> b"},
      {"arith.negf", "-a"},
      {"arith.maximumf", "maximum(a, b)"},
      {"arith.minimumf", "minimum(a, b)"},
      {"arith.maxsi", "a > b ? a : b"},
      {"arith.maxui", "(U)a > (U)b ? a : b"},
      {"arith.minsi", "a < b ? a : b"},
      {"arith.minui", "(U)a < (U)b ? a : b"},
      {"arith.select", "a ? b : c"},
      {"arith.extf", "a"},
      {"arith.truncf", "a"},
      {"arith.trunci", "a"},
      {"arith.extui", "(U)a"},
      {"arith.extsi", "a"},
      {"arith.fptosi", "a"},
      {"arith.fptoui", "a"},
      {"arith.sitofp", "(S)a"},
      {"arith.uitofp", "(U)a"},
      {"math.fma", "fma$(a, b, c)"},
      {"math.powf", "pow$(a, b)"},
      {"math.absf", "fabs$(a)"},
      {"math.absi", "a < 0 ? -a : a"},
      {"math.exp", "exp$(a)"},
      {"math.expm1", "expm1$(a)"},
      {"math.log", "log$(a)"},
      {"math.log1p", "log1p$(a)"},
      {"math.sqrt", "sqrt$(a)"},
      {"math.sin", "sin$(a)"},
      {"math.cos", "cos$(a)"},
      {"math.asin", "asin$(a)"},
      {"math.acos", "acos$(a)"},
      {"math.atan", "atan$(a)"},
      {"math.sinh", "sinh$(a)"},
      {"math.cosh", "cosh$(a)"},
      {"math.asinh", "asinh$(a)"},
      {"math.acosh", "acosh$(a)"},
      {"math.atanh", "atanh$(a)"},
      {"math.tanh", "tanh$(a)"},
      {"math.erf", "erf$(a)"},
      {"math.floor", "floor$(a)"},
      {"math.ceil", "ceil$(a)"},
      {"math.roundeven", "rint$(a)"},
  };
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    static const llvm::StringMap<std::string> signs = {{"ogt", ">"},  {"oge", ">="}, {"olt", "<"},
                                                       {"ole", "<="}, {"oeq", "=="}, {"une", "!="}};
    return "a " + signs.lookup(arith::stringifyCmpFPredicate(compare.getPredicate())) + " b";
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    static const llvm::StringMap<std::string> forms = {
        {"eq", "a == b"},       {"ne", "a != b"},       {"slt", "a < b"},       {"sle", "a <= b"},
        {"sgt", "a > b"},       {"sge", "a >= b"},      {"ult", "(U)a < (U)b"}, {"ule", "(U)a <= (U)b"},
        {"ugt", "(U)a > (U)b"}, {"uge", "(U)a >= (U)b"}};
    return forms.lookup(arith::stringifyCmpIPredicate(compare.getPredicate()));
  }
  if (Type to = op->getResult(0).getType(); isa<arith::TruncFOp>(op) && ir::isHalf(to))
    return "rounded<" + memoryTypeName(to) + ">(a)";
  std::string form = forms.lookup(op->getName().getStringRef());
  assert(!form.empty() && "an op that the text has no form for");
  return form;
}

// Halves, infinities and NaN are emitted as bits.
std::string numberText(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number)) {
    bool isSingle = real.getType().isF32();
    APFloat value = real.getValue();
    if (ir::isHalf(real.getType()))
      return fmt::format("{{{:#x}}}", value.bitcastToAPInt().getZExtValue());
    if (!value.isFinite()) {
      uint64_t bits = value.bitcastToAPInt().getZExtValue();
      return isSingle ? fmt::format("__int_as_float({:#x})", bits) : fmt::format("__longlong_as_double({:#x}ll)", bits);
    }
    return fmt::format("{:a}{}", real.getValueAsDouble(), isSingle ? "f" : "");
  }
  auto integer = cast<IntegerAttr>(number);
  return fmt::format("({}){}u{}", typeName(integer.getType()), integer.getValue().getZExtValue(),
                     integer.getValue().getBitWidth() > 32 ? "ll" : "");
}

std::string opText(Operation *op, ArrayRef<std::string> operands) {
  Type result = op->getResult(0).getType();
  std::string form = formOf(op), text;
  for (size_t i = 0; i < form.size(); ++i) {
    auto isWordAt = [&](size_t at) { return at < form.size() && (isalnum(form[at]) || form[at] == '$'); };
    bool isAlone = !isWordAt(i + 1) && (i == 0 || !isWordAt(i - 1));
    if (form[i] == '$')
      text += result.isF32() ? "f" : "";
    else if (isAlone && form[i] == 'T')
      text += typeName(result);
    else if (isAlone && form[i] == 'U')
      text += unsignedName(op->getOperand(0).getType());
    else if (isAlone && form[i] == 'S')
      text += signedName(op->getOperand(0).getType());
    else if (isAlone && form[i] >= 'a' && form[i] <= 'c')
      text += operands[size_t(form[i] - 'a')];
    else
      text += form[i];
  }
  return fmt::format("({})({})", typeName(result), text);
}

} // namespace sluice::cuda
