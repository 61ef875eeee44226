#include "TextEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace mlir;
using namespace sluice::loops;

namespace sluice::test {

const char *const kTextPrelude = R"(#include <cmath>
#include <cstdint>
#define EACH for (int l = 0; l < LANES; ++l)
static int64_t floordiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
template <class T> T maximum(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> T minimum(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
)";

/// Numbers in registers. Integers below 32 bits are unsigned, as lanes are.
static std::string typeName(Type type) {
  if (isa<FloatType>(type))
    return type.isF32() ? "float" : "double";
  unsigned width = type.getIntOrFloatBitWidth();
  return width == 1 ? "bool" : width == 8 ? "uint8_t" : "int" + std::to_string(width) + "_t";
}

/// An op's expression for a lane: a and b are its operands, T its type and U its operand's unsigned one.
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
      {"arith.divui", "a / b"},
      {"arith.andi", "a & b"},
      {"arith.ori", "a | b"},
      {"arith.xori", "a ^ b"},
      {"arith.shli", "(U)a << b"},
      {"arith.shrui", "(U)a >> b"},
      {"arith.negf", "-a"},
      {"arith.maximumf", "maximum(a, b)"},
      {"arith.minimumf", "minimum(a, b)"},
      {"arith.maxsi", "a > b ? a : b"},
      {"arith.maxui", "a > b ? a : b"},
      {"arith.minsi", "a < b ? a : b"},
      {"arith.minui", "a < b ? a : b"},
      {"arith.select", "a ? b : c"},
      {"arith.extf", "a"},
      {"arith.truncf", "a"},
      {"arith.trunci", "a"},
      {"arith.extui", "a"},
      {"arith.extsi", "a"},
      {"arith.fptosi", "a"},
      {"arith.fptoui", "a"},
      {"arith.sitofp", "a"},
      {"arith.uitofp", "a"},
      {"math.powf", "std::pow(a, b)"},
      {"math.absf", "std::fabs(a)"},
      {"math.absi", "a < 0 ? -a : a"},
      {"math.exp", "std::exp(a)"},
      {"math.log", "std::log(a)"},
      {"math.log1p", "std::log1p(a)"},
      {"math.sqrt", "std::sqrt(a)"},
      {"math.sin", "std::sin(a)"},
      {"math.cos", "std::cos(a)"},
      {"math.tanh", "std::tanh(a)"},
      {"math.erf", "std::erf(a)"},
      {"math.floor", "std::floor(a)"},
      {"math.ceil", "std::ceil(a)"},
      {"math.roundeven", "std::nearbyint(a)"},
  };
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    static const llvm::StringMap<std::string> signs = {{"ogt", ">"},  {"oge", ">="}, {"olt", "<"},
                                                       {"ole", "<="}, {"oeq", "=="}, {"une", "!="}};
    return "a " + signs.lookup(arith::stringifyCmpFPredicate(compare.getPredicate())) + " b";
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    static const llvm::StringMap<std::string> signs = {{"eq", "=="}, {"ne", "!="},  {"slt", "<"}, {"sle", "<="},
                                                       {"sgt", ">"}, {"sge", ">="}, {"ult", "<"}, {"ule", "<="},
                                                       {"ugt", ">"}, {"uge", ">="}};
    return "a " + signs.lookup(arith::stringifyCmpIPredicate(compare.getPredicate())) + " b";
  }
  std::string form = forms.lookup(op->getName().getStringRef());
  assert(!form.empty() && "an op that the text has no form for");
  return form;
}

static std::string numberText(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number)) {
    double value = real.getValueAsDouble();
    if (std::isnan(value))
      return "NAN";
    if (std::isinf(value))
      return value < 0 ? "-INFINITY" : "INFINITY";
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    return text;
  }
  auto integer = cast<IntegerAttr>(number);
  std::string type = typeName(integer.getType());
  return "(" + type + ")" + std::to_string(integer.getValue().getZExtValue()) + "u";
}

TextEmitter::TextEmitter(MLIRContext *context, int64_t lanes) : Emitter(context), lanes_(lanes) {
  open.push_back(std::make_shared<Level>());
}

std::string TextEmitter::function(const std::string &name) const {
  return "extern \"C\" void " + name +
         "(void *const *buffers, int64_t rows) {\nconstexpr int LANES = " + std::to_string(lanes_) + ";\n" +
         open.front()->text + "}\n";
}

// Loops.

Emitter::Inside TextEmitter::beginLoop(Count begin, Count end, int64_t step, int64_t, ArrayRef<Element> carried) {
  std::string name = newName();
  openLevel(carried);
  line("for (int64_t " + name + " = " + nameOf(begin) + "; " + name + " < " + nameOf(end) + "; " + name +
       " += " + std::to_string(step) + ") {");
  return {named<Count>(name), open.back()->carried};
}

// Variables outside of the braces hold what is carried.
void TextEmitter::openLevel(ArrayRef<Element> carried) {
  auto level = std::make_shared<Level>();
  for (Element element : carried)
    level->carried.push_back(newLanes<Element>(variableOf(element).type, laneOf(element)));
  open.push_back(level);
}

void TextEmitter::beginBlock(Condition condition, ArrayRef<Element> carried) {
  openLevel(carried);
  line(condition ? "if (" + nameOf(condition) + "[0]) {" : "{");
}

SmallVector<Element> TextEmitter::end(ArrayRef<Element> next) {
  std::shared_ptr<Level> level = open.back();
  SmallVector<Element> copies; // what becomes one carried value may be another's
  for (Element element : next)
    copies.push_back(newLanes<Element>(variableOf(element).type, laneOf(element)));
  for (auto [to, from] : llvm::zip_equal(level->carried, copies))
    line("EACH " + laneOf(to) + " = " + laneOf(from) + ";");
  line("}");
  open.pop_back();
  open.back()->text += level->text;
  return level->carried;
}

void TextEmitter::enter(unsigned depth) {
  left.push_back(open);
  open.resize(depth + 1);
}

void TextEmitter::leave() {
  open = left.back();
  left.pop_back();
}

// Counts.

Count TextEmitter::newCount(const std::string &value) {
  std::string name = newName();
  line("int64_t " + name + " = " + value + ";");
  return named<Count>(name);
}

Count TextEmitter::constant(int64_t value) { return named<Count>(std::to_string(value)); }

Count TextEmitter::arithmetic(CountOp op, Count first, Count second) {
  std::string a = nameOf(first), b = nameOf(second);
  switch (op) {
  case CountOp::Add:
    return newCount(a + " + " + b);
  case CountOp::Sub:
    return newCount(a + " - " + b);
  case CountOp::Mul:
    return newCount(a + " * " + b);
  case CountOp::Div:
    return newCount(a + " / " + b);
  case CountOp::CeilDiv:
    return newCount("(" + a + " + " + b + " - 1) / " + b);
  case CountOp::Rem:
    return newCount(a + " % " + b);
  case CountOp::Min:
    return newCount(a + " < " + b + " ? " + a + " : " + b);
  }
  llvm_unreachable("an unknown op on counts");
}

std::string TextEmitter::expression(AffineExpr index) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(index))
    return std::to_string(constant.getValue());
  if (isa<AffineDimExpr>(index)) {
    Count value = space().valueOf(index);
    return value ? nameOf(value) : "l";
  }
  auto binary = cast<AffineBinaryOpExpr>(index);
  std::string a = expression(binary.getLHS()), b = expression(binary.getRHS());
  switch (index.getKind()) {
  case AffineExprKind::Add:
    return "(" + a + " + " + b + ")";
  case AffineExprKind::Mul:
    return "(" + a + " * " + b + ")";
  case AffineExprKind::FloorDiv:
    return "floordiv(" + a + ", " + b + ")";
  case AffineExprKind::Mod:
    return "(" + a + " - floordiv(" + a + ", " + b + ") * " + b + ")";
  default:
    llvm_unreachable("an expression that no index is");
  }
}

Count TextEmitter::count(AffineExpr index) { return newCount(expression(index)); }

// Elements.

template <typename H> H TextEmitter::newLanes(const std::string &type, const std::string &value) {
  std::string name = newName();
  line(type + " " + name + "[LANES]; EACH " + name + "[l] = " + value + ";");
  return named<H>(name, type);
}

Element TextEmitter::constant(TypedAttr number) {
  enter(0);
  Element element = newLanes<Element>(typeName(number.getType()), numberText(number));
  leave();
  return element;
}

Element TextEmitter::index(AffineExpr index, Type type) {
  return newLanes<Element>(typeName(type), "(" + typeName(type) + ")" + expression(index));
}

Element TextEmitter::rows(Type type) { return newLanes<Element>(typeName(type), "rows"); }

Element TextEmitter::apply(Operation *op, ArrayRef<Element> operands) {
  std::string type = typeName(op->getResult(0).getType()), form = "(T)(" + formOf(op) + ")", text;
  for (size_t i = 0; i < form.size(); ++i) {
    bool isWord = isalnum(form[i]) && !isalnum(form[i - 1]) && !isalnum(form[i + 1]);
    if (!isWord || isdigit(form[i]))
      text += form[i];
    else
      text += form[i] == 'T' ? type : form[i] == 'U' ? "u" + type : laneOf(operands[form[i] - 'a']);
  }
  return newLanes<Element>(type, text);
}

// Conditions.

Condition TextEmitter::isNonNegative(AffineExpr index) {
  return newLanes<Condition>("bool", expression(index) + " >= 0");
}
Condition TextEmitter::firstLanes(AffineExpr, Count count) {
  return newLanes<Condition>("bool", "l < " + nameOf(count));
}
Condition TextEmitter::firstLanes(int64_t count) { return newLanes<Condition>("bool", "l < " + std::to_string(count)); }
Condition TextEmitter::both(Condition a, Condition b) {
  return newLanes<Condition>("bool", laneOf(a) + " && " + laneOf(b));
}
Element TextEmitter::select(Condition condition, Element then, Element otherwise) {
  return newLanes<Element>(variableOf(then).type, laneOf(condition) + " ? " + laneOf(then) + " : " + laneOf(otherwise));
}

// Memory.

static std::string addressOf(const Memory &memory) {
  return "((char *)buffers[" + std::to_string(memory.buffer) + "] + " + std::to_string(memory.byteOffset) + ")";
}

static std::string memoryTypeName(Type element) {
  return element.isUnsignedInteger() || element.isInteger(1) ? "uint8_t" : typeName(element);
}

Element TextEmitter::loadFrom(const std::string &address, Type element, AffineExpr offset, const Lanes &lanes,
                              Condition condition) {
  std::string place = "((" + memoryTypeName(element) + " *)" + address + ")[" + expression(offset) + "]", held;
  for (Condition one : {lanes.exists, condition})
    if (one)
      held += laneOf(one) + " && ";
  std::string type = element.isUnsignedInteger() ? "uint8_t" : typeName(element);
  return newLanes<Element>(type, held.empty() ? place : StringRef(held).drop_back(4).str() + " ? " + place + " : 0");
}

Element TextEmitter::load(const Memory &memory, AffineExpr offset, const Lanes &lanes, Condition condition) {
  return loadFrom(addressOf(memory), memory.type.getElementType(), offset, lanes, condition);
}

Element TextEmitter::load(DenseElementsAttr constant, AffineExpr offset, const Lanes &lanes, Condition condition) {
  std::string name = newName(), numbers;
  for (Attribute number : constant.getValues<Attribute>())
    numbers += numberText(number) + ", ";
  line("static const " + memoryTypeName(constant.getElementType()) + " " + name + "[] = {" + numbers + "};");
  return loadFrom(name, constant.getElementType(), offset, lanes, condition);
}

void TextEmitter::store(const Memory &memory, AffineExpr offset, const Lanes &lanes, Element element) {
  std::string each = lanes.variable ? "EACH " : "for (int l = 0; l < 1; ++l) ";
  std::string held = lanes.exists ? "if (" + laneOf(lanes.exists) + ") " : "";
  line(each + held + "((" + memoryTypeName(memory.type.getElementType()) + " *)" + addressOf(memory) + ")[" +
       expression(offset) + "] = " + laneOf(element) + ";");
}

// Lanes together.

Element TextEmitter::rotate(Element element, int64_t by) {
  return newLanes<Element>(variableOf(element).type, nameOf(element) + "[(l + " + std::to_string(by) + ") % LANES]");
}
Element TextEmitter::spreadFirst(Element element) {
  return newLanes<Element>(variableOf(element).type, nameOf(element) + "[0]");
}
Slots TextEmitter::makeSlots(Element like, int64_t count) {
  std::string name = newName();
  line(variableOf(like).type + " " + name + "[LANES][" + std::to_string(count) + "];");
  return named<Slots>(name, variableOf(like).type);
}
Element TextEmitter::read(Slots slots, Count place) {
  return newLanes<Element>(variableOf(slots).type, laneOf(slots) + "[" + nameOf(place) + "]");
}
void TextEmitter::write(Slots slots, Count place, Element element) {
  line("EACH " + laneOf(slots) + "[" + nameOf(place) + "] = " + laneOf(element) + ";");
}

} // namespace sluice::test
