#include "backends/cuda/compiler/ThreadEmitter.h"

#include "backends/cuda/compiler/IndexText.h"
#include "backends/cuda/compiler/Prelude.h"
#include "ir/Types.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

using namespace mlir;
using namespace sluice::loops;

namespace sluice::cuda {

/// Numbers in registers. Integers below 32 bits are unsigned, as lanes are.
static std::string typeName(Type type) {
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

/// An op's expression: a, b and c are its operands, T its type, U that of its first operand as an unsigned one, and $ what
/// the names of functions on floats end with.
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
      {"arith.andi", "a & b"},
      {"arith.ori", "a | b"},
      {"arith.xori", "a ^ b"},
      {"arith.shli", "(U)a << b"},
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
      {"arith.sitofp", "a"},
      {"arith.uitofp", "(U)a"},
      {"math.powf", "pow$(a, b)"},
      {"math.absf", "fabs$(a)"},
      {"math.absi", "a < 0 ? -a : a"},
      {"math.exp", "exp$(a)"},
      {"math.log", "log$(a)"},
      {"math.log1p", "log1p$(a)"},
      {"math.sqrt", "sqrt$(a)"},
      {"math.sin", "sin$(a)"},
      {"math.cos", "cos$(a)"},
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

/// A number as C++ has it. What is no number, or none of its own, goes by its bits.
static std::string numberText(Attribute number) {
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

ThreadEmitter::ThreadEmitter(MLIRContext *context, ThreadGroup group)
    : Emitter(context), group(group), thread(named<Count>("thread")) {
  open.push_back(std::make_shared<Level>());
}

std::string ThreadEmitter::indented(const std::string &text) const {
  return std::string(2 * open.size(), ' ') + text + "\n";
}

void ThreadEmitter::each(const std::string &statement) {
  line(isSingle() ? statement : fmt::format("EACH({}) {}", group.perThread, statement));
}

template <typename H> H ThreadEmitter::define(const std::string &type, const std::string &value) {
  std::string name = newName();
  charge(onlyFirst ? 1 : double(group.perThread));
  if (isSingle()) {
    line(fmt::format("{} {} = {};", type, name, value));
  } else {
    line(fmt::format("{} {}[{}];", type, name, group.perThread));
    each(fmt::format("{}[l] = {};", name, value));
  }
  return named<H>(name, type);
}

std::string ThreadEmitter::kernel(const std::string &name, int64_t buffers) const {
  std::string bounds = isBlock() ? fmt::format("__launch_bounds__({}) ", group.threads) : "";
  std::string called;
  for (const auto &[function, text] : functions)
    called += text;
  std::string held = heldBytes ? fmt::format("  alignas(16) __shared__ Byte held[{}];\n", heldBytes) : "";
  return called + kernelHead(name, buffers, bounds) + held +
         fmt::format("  const Index task = (Index)blockIdx.x * (blockDim.x / {0}) + threadIdx.x / {0};\n"
                     "  if (task >= tasks) return;\n"
                     "  const int thread = threadIdx.x % {0};\n"
                     "  const unsigned group = groupMask({0});\n{1}}}\n",
                     group.threads, open.front()->text);
}

//===- loops ------------------------------------------------------------------------------------------------------===//

Emitter::Inside ThreadEmitter::beginLoop(Count begin, Count end, int64_t step, int64_t trips,
                                         ArrayRef<Element> carried) {
  std::string name = newName(), unrolled = group.threads == 1 ? "_Pragma(\"unroll\") " : "";
  openLevel(carried,
            fmt::format("{4}for (Index {0} = {1}; {0} < {2}; {0} += {3}) {{", name, nameOf(begin), nameOf(end), step,
                        unrolled),
            trips);
  return {named<Count>(name), open.back()->carried};
}

// Variables outside of the braces hold what is carried.
void ThreadEmitter::openLevel(ArrayRef<Element> carried, const std::string &head, int64_t trips) {
  auto level = std::make_shared<Level>();
  for (Element element : carried)
    level->carried.push_back(define<Element>(variableOf(element).type, eachOf(element)));
  level->runs = open.back()->runs * double(trips);
  level->text = indented(head); // behind what will still be emitted around it
  open.push_back(level);
}

void ThreadEmitter::beginBlock(Condition condition, ArrayRef<Element> carried) {
  openLevel(carried, condition ? fmt::format("if ({}) {{", firstOf(condition)) : "{", /*trips=*/1);
}

SmallVector<Element> ThreadEmitter::end(ArrayRef<Element> next) {
  std::shared_ptr<Level> level = open.back();
  SmallVector<Element> copies; // what becomes one carried value may be another's
  for (Element element : next)
    copies.push_back(define<Element>(variableOf(element).type, eachOf(element)));
  for (auto [to, from] : llvm::zip_equal(level->carried, copies))
    each(fmt::format("{} = {};", eachOf(to), eachOf(from)));
  open.pop_back();
  open.back()->text += level->text;
  line("}");
  return level->carried;
}

void ThreadEmitter::enter(unsigned depth) {
  left.push_back(open);
  open.resize(depth + 1);
}

void ThreadEmitter::leave() {
  open = left.back();
  left.pop_back();
}

//===- counts and indices -----------------------------------------------------------------------------------------===//

Count ThreadEmitter::newCount(const std::string &value) {
  std::string name = newName();
  line(fmt::format("Index {} = {};", name, value));
  return named<Count>(name);
}

Count ThreadEmitter::constant(int64_t value) { return named<Count>(fmt::format("{}ll", value)); }

Count ThreadEmitter::arithmetic(CountOp op, Count first, Count second) {
  std::string a = nameOf(first), b = nameOf(second);
  switch (op) {
  case CountOp::Add:
    return newCount(a + " + " + b);
  case CountOp::Sub:
    return newCount(a + " - " + b);
  case CountOp::Mul:
    return newCount(a + " * " + b);
  case CountOp::Div:
    return newCount(fmt::format("quotient({}, {})", a, b));
  case CountOp::CeilDiv:
    return newCount(fmt::format("quotient({0} + {1} - 1, {1})", a, b));
  case CountOp::Rem:
    return newCount(fmt::format("{0} - quotient({0}, {1}) * {1}", a, b));
  case CountOp::Min:
    return newCount(fmt::format("{0} < {1} ? {0} : {1}", a, b));
  case CountOp::Max:
    return newCount(fmt::format("{0} > {1} ? {0} : {1}", a, b));
  }
  llvm_unreachable("an unknown op on counts");
}

std::string ThreadEmitter::laneNumber() const {
  return isSingle() ? "thread" : fmt::format("(thread * {} + l)", group.perThread);
}

std::string ThreadEmitter::text(const IndexSpace &space, AffineExpr index) const {
  return indexText(space, index, [&](AffineExpr variable, bool isWide) {
    Count count = space.valueOf(variable);
    Element data = space.elementOf(variable);
    std::string name = count ? nameOf(count) : data ? eachOf(data) : laneNumber();
    bool isAsWide = count ? isWide : !data && !isWide;
    return isAsWide ? name : (isWide ? "(Index)" : "(int)") + name;
  });
}

Count ThreadEmitter::count(AffineExpr index) { return newCount(text(index)); }
Count ThreadEmitter::count(Element integer) { return newCount(firstOf(integer)); }

//===- elements ---------------------------------------------------------------------------------------------------===//

Element ThreadEmitter::constant(TypedAttr number) {
  enter(0);
  Element element = define<Element>(typeName(number.getType()), numberText(number));
  leave();
  return element;
}

Element ThreadEmitter::index(AffineExpr index, Type type) {
  return define<Element>(typeName(type), fmt::format("({})({})", typeName(type), text(index)));
}

Element ThreadEmitter::rows(Type type) { return define<Element>(typeName(type), "(" + typeName(type) + ")rows"); }

Element ThreadEmitter::apply(Operation *op, ArrayRef<Element> operands) {
  constexpr double kFunction = 20;
  if (isa<math::MathDialect>(op->getDialect()))
    charge(kFunction * double(group.perThread));
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
    else if (isAlone && form[i] >= 'a' && form[i] <= 'c')
      text += eachOf(operands[form[i] - 'a']);
    else
      text += form[i];
  }
  return define<Element>(typeName(result), fmt::format("({})({})", typeName(result), text));
}

std::optional<SmallVector<Element>> ThreadEmitter::call(StringRef name, ArrayRef<Element> operands, FunctionBody body) {
  if (group.threads == 1)
    return std::nullopt;
  std::string type = variableOf(operands[0]).type, function = fmt::format("{}_{}", name.str(), type);
  std::replace(function.begin(), function.end(), ' ', '_');
  ThreadEmitter inside(space().getContext(), {/*threads=*/1, /*perThread=*/1});
  SmallVector<Element> arguments, results;
  std::vector<std::string> parameters, values;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    arguments.push_back(inside.named<Element>(fmt::format("a{}", number), type));
    parameters.push_back(fmt::format("{} a{}", type, number));
    values.push_back(eachOf(operand));
  }
  SmallVector<Element> inner = body(inside, arguments);
  functions[function] = functionText(function, inside, llvm::join(parameters, ", "), inner);
  charge(inside.cost() * double(group.perThread));
  auto made = define<Element>(function + "_results", fmt::format("{}({})", function, llvm::join(values, ", ")));
  for (auto [number, result] : llvm::enumerate(inner))
    results.push_back(define<Element>(variableOf(result).type, fmt::format("{}.r{}", eachOf(made), number)));
  return results;
}

/// Several kernels of one text may bring it.
std::string ThreadEmitter::functionText(const std::string &function, ThreadEmitter &inside,
                                        const std::string &parameters, ArrayRef<Element> results) const {
  std::string members;
  for (auto [number, result] : llvm::enumerate(results))
    members += fmt::format("{} r{}; ", variableOf(result).type, number);
  std::string values = llvm::join(llvm::map_range(results, [](Element one) { return nameOf(one); }), ", ");
  return fmt::format("#ifndef HAS_{0}\n#define HAS_{0}\nstruct {0}_results {{ {1}}};\n"
                     "static __device__ OUT_OF_LINE {0}_results {0}({2}) {{\n{3}  return {{{4}}};\n}}\n#endif\n",
                     function, members, parameters, inside.body(), values);
}

//===- conditions -------------------------------------------------------------------------------------------------===//

Condition ThreadEmitter::isEqual(Count count, int64_t value) {
  return define<Condition>("bool", fmt::format("{} == {}", nameOf(count), value));
}
Condition ThreadEmitter::isNonNegative(AffineExpr index) {
  Condition condition = define<Condition>("bool", text(index) + " >= 0");
  saidBy[nameOf(condition)] = {index};
  return condition;
}
Condition ThreadEmitter::firstLanes(AffineExpr lane, Count count) {
  return define<Condition>("bool", fmt::format("{} < {}", text(lane), nameOf(count)));
}
Condition ThreadEmitter::firstLanes(int64_t count) {
  Condition condition = define<Condition>("bool", fmt::format("{} < {}", laneNumber(), count));
  if (count % group.perThread == 0)
    saidBy[nameOf(condition)] = {};
  return condition;
}
Condition ThreadEmitter::both(Condition a, Condition b) {
  Condition condition = define<Condition>("bool", eachOf(a) + " && " + eachOf(b));
  auto ofA = saidBy.find(nameOf(a)), ofB = saidBy.find(nameOf(b));
  if (ofA != saidBy.end() && ofB != saidBy.end()) {
    SmallVector<AffineExpr> all = ofA->second;
    llvm::append_range(all, ofB->second);
    saidBy[nameOf(condition)] = all;
  }
  return condition;
}
Element ThreadEmitter::clamp(Element integer, int64_t size) {
  const std::string &type = variableOf(integer).type;
  int64_t last = type == "int" ? std::min<int64_t>(size - 1, INT32_MAX) : size - 1;
  return define<Element>(type, fmt::format("{0} < 0 ? 0 : {0} < {1} ? {0} : {1}", eachOf(integer), last));
}
Element ThreadEmitter::select(Condition condition, Element then, Element otherwise) {
  return define<Element>(variableOf(then).type,
                         fmt::format("{} ? {} : {}", eachOf(condition), eachOf(then), eachOf(otherwise)));
}

//===- memory -----------------------------------------------------------------------------------------------------===//

static std::string addressOf(const Memory &memory) {
  return memory.byteOffset ? fmt::format("(b{} + {})", memory.buffer, memory.byteOffset)
                           : fmt::format("b{}", memory.buffer);
}

static int64_t bytesOf(Type element) { return std::max(8u, element.getIntOrFloatBitWidth()) / 8; }

/// Neighbouring lanes share the lines that they read or write; others have one each.
void ThreadEmitter::chargeAccess(AffineExpr offset, const Lanes &lanes, bool isPack) {
  accessesPacks_ &= isPack || !lanes.variable || !space().usesLane(offset);
  bool isShared = !lanes.variable || !space().usesLane(offset) || space().isContiguous(offset, lanes.variable);
  charge(isPack     ? 4
         : isShared ? 4 * double(group.perThread)
                    : double(std::min(group.threads, kWarp) * group.perThread));
}

/// With what tells a thread's elements apart as a variable of its own.
ThreadEmitter::InThread ThreadEmitter::inThread(AffineExpr index, AffineExpr lane) const {
  InThread its{space(), index, {}};
  AffineExpr ofThread = its.space.addVariable(thread, {0, group.threads - 1}, /*keep=*/true);
  its.element = its.space.addVariable({}, {0, group.perThread - 1}, /*keep=*/true);
  its.index = index.replace(lane, ofThread * group.perThread + its.element);
  return its;
}

/// Whether a thread's elements have the condition together.
bool ThreadEmitter::isWhole(Condition condition, AffineExpr lane) const {
  auto said = saidBy.find(nameOf(condition));
  return said != saidBy.end() && llvm::all_of(said->second, [&](AffineExpr index) {
           InThread its = inThread(index, lane);
           return !its.space.usesLane(its.space.normalize(its.index));
         });
}

/// Where a thread's elements begin, if they lie side by side, from a multiple of their size on, and exist together.
std::optional<std::string> ThreadEmitter::placeOfPack(Type element, int64_t byteOffset, AffineExpr offset,
                                                      const Lanes &lanes) const {
  if (isSingle() || !lanes.variable || (lanes.exists && !isWhole(lanes.exists, lanes.variable)) ||
      byteOffset % (bytesOf(element) * group.perThread) != 0)
    return std::nullopt;
  InThread its = inThread(offset, lanes.variable);
  if (!its.space.isContiguous(its.index, its.element))
    return std::nullopt;
  LinearIndex first = its.space.analyze(its.index);
  first.add(its.element, -1);
  auto isMultiple = [&](const LinearIndex::Term &term) { return term.coefficient % group.perThread == 0; };
  if (first.constant % group.perThread != 0 || !llvm::all_of(first.terms, isMultiple))
    return std::nullopt;
  return text(its.space, its.space.toExpr(first));
}

/// In front of what is done to packs.
std::string ThreadEmitter::ifAll(std::initializer_list<Condition> conditions) const {
  std::string all;
  for (Condition condition : conditions)
    if (condition)
      all += (all.empty() ? "" : " && ") + firstOf(condition);
  return all.empty() ? "" : fmt::format("if ({}) ", all);
}

/// A thread's elements together, from this place on.
std::string ThreadEmitter::packAt(Type element, const std::string &address, const std::string &place) const {
  return fmt::format("packAt<{}>(({} *){} + {})", group.perThread, memoryTypeName(element), address, place);
}

Element ThreadEmitter::loadFrom(const std::string &address, int64_t byteOffset, Type element, AffineExpr offset,
                                const Lanes &lanes, Condition condition) {
  std::string type = element.isInteger(1) ? "bool" : typeName(element);
  std::optional<std::string> ofPack = placeOfPack(element, byteOffset, offset, lanes);
  if (condition && ofPack && !isWhole(condition, lanes.variable))
    ofPack.reset();
  chargeAccess(offset, lanes, ofPack.has_value());
  if (ofPack) {
    std::string pack = newName();
    line(fmt::format("Pack<{}, {}> {} = {{}};", memoryTypeName(element), group.perThread, pack));
    line(ifAll({lanes.exists, condition}) + fmt::format("{} = {};", pack, packAt(element, address, *ofPack)));
    return define<Element>(type, fmt::format("({})elementOf({}, l)", type, pack));
  }
  std::string place = fmt::format("(({} *){})[{}]", memoryTypeName(element), address, text(offset)), held;
  if (ir::isHalf(element))
    place = "(" + type + ")" + place;
  for (Condition one : {lanes.exists, condition})
    if (one)
      held += (held.empty() ? "" : " && ") + eachOf(one);
  if (!held.empty() && !isSingle() && !space().usesLane(offset)) { // one for all, if any of them wants it
    std::string any = newName();
    line(fmt::format("bool {} = false;", any));
    each(fmt::format("{} |= {};", any, held));
    held = any;
  }
  return define<Element>(type, held.empty() ? place : fmt::format("{} ? {} : 0", held, place));
}

Element ThreadEmitter::load(const Memory &memory, AffineExpr offset, const Lanes &lanes, Condition condition) {
  return loadFrom(addressOf(memory), memory.byteOffset, memory.type.getElementType(), offset, lanes, condition);
}

Element ThreadEmitter::loadToStore(const Memory &memory, AffineExpr offset, const Lanes &lanes) {
  Condition stores = lanes.variable ? Condition() : define<Condition>("bool", "thread == 0");
  return load(memory, offset, lanes, stores);
}

Element ThreadEmitter::load(DenseElementsAttr constant, AffineExpr offset, const Lanes &lanes, Condition condition) {
  std::string name = newName(), numbers;
  for (Attribute number : constant.getValues<Attribute>())
    numbers += numberText(number) + ", ";
  line(fmt::format("static const {} {}[] = {{{}}};", memoryTypeName(constant.getElementType()), name, numbers));
  constexpr int64_t kUnaligned = 1;
  return loadFrom(name, kUnaligned, constant.getElementType(), offset, lanes, condition);
}

void ThreadEmitter::store(const Memory &memory, AffineExpr offset, const Lanes &lanes, Element element) {
  Type type = memory.type.getElementType();
  std::optional<std::string> ofPack = placeOfPack(type, memory.byteOffset, offset, lanes);
  chargeAccess(offset, lanes, ofPack.has_value());
  std::string address = addressOf(memory),
              place = fmt::format("(({} *){})[{}]", memoryTypeName(type), address, text(offset));
  if (!lanes.variable) {
    line("if (thread == 0)");
    line("  " + fmt::format("{} = {};", place, firstOf(element)));
  } else if (ofPack) {
    std::string pack = newName();
    line(fmt::format("Pack<{}, {}> {};", memoryTypeName(type), group.perThread, pack));
    line(fmt::format("fill({}, {});", pack, nameOf(element)));
    line(ifAll({lanes.exists}) + fmt::format("{} = {};", packAt(type, address, *ofPack), pack));
  } else {
    each(lanes.exists ? fmt::format("if ({}) {} = {};", eachOf(lanes.exists), place, eachOf(element))
                      : fmt::format("{} = {};", place, eachOf(element)));
  }
}

//===- threads together -------------------------------------------------------------------------------------------===//

constexpr double kBarriers = 20; // two, with what is between them

std::string ThreadEmitter::heldAs(const std::string &type, int64_t count) {
  charge(kBarriers);
  bool isLong = type == "double" || type == "long long";
  heldBytes = std::max(heldBytes, count * (isLong ? 8 : 4));
  return fmt::format("({} *)held", type);
}

Element ThreadEmitter::rotate(Element element, int64_t by) {
  const auto &[name, type] = variableOf(element);
  if (by < group.perThread)
    return define<Element>(type, fmt::format("{}[(l + {}) % {}]", name, by, group.perThread));
  onlyFirst = true; // from here on, one of each thread's elements counts
  int64_t threads = by / group.perThread;
  if (threads < kWarp)
    return define<Element>(type, fmt::format("({})__shfl_sync(group, {}, thread + {}, {})", type, firstOf(element),
                                             threads, std::min(group.threads, kWarp)));
  std::string taken = newName();
  line(fmt::format("{0} {1} = takeFrom<{2}>(thread, {3}, {4});", type, taken, threads, heldAs(type, threads),
                   firstOf(element)));
  return define<Element>(type, taken);
}

Element ThreadEmitter::spreadFirst(Element element) {
  onlyFirst = false;
  if (isBlock()) {
    const std::string &type = variableOf(element).type;
    std::string first = newName();
    line(fmt::format("{} {} = ofFirst(thread, {}, {});", type, first, heldAs(type, 1), firstOf(element)));
    return define<Element>(type, first);
  }
  return define<Element>(
      variableOf(element).type,
      fmt::format("({})__shfl_sync(group, {}, 0, {})", variableOf(element).type, firstOf(element), group.threads));
}

Slots ThreadEmitter::makeSlots(Element like, int64_t count) {
  const std::string &type = variableOf(like).type;
  std::string name = newName();
  line(isSingle() ? fmt::format("{} {}[{}];", type, name, count)
                  : fmt::format("{} {}[{}][{}];", type, name, count, group.perThread));
  return named<Slots>(name, type);
}

Element ThreadEmitter::read(Slots slots, Count place) {
  return define<Element>(variableOf(slots).type,
                         fmt::format("{}[{}]{}", nameOf(slots), nameOf(place), isSingle() ? "" : "[l]"));
}

void ThreadEmitter::write(Slots slots, Count place, Element element) {
  each(fmt::format("{}[{}]{} = {};", nameOf(slots), nameOf(place), isSingle() ? "" : "[l]", eachOf(element)));
}

} // namespace sluice::cuda
