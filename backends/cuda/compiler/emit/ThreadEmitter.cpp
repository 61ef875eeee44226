#include "backends/cuda/compiler/emit/ThreadEmitter.h"

#include "backends/cuda/compiler/emit/IndexText.h"
#include "backends/cuda/compiler/emit/Prelude.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace mlir;
using namespace sluice::loops;

namespace sluice::cuda {

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

void ThreadEmitter::declare(const std::string &type, const std::string &name, const std::string &value) {
  if (isSingle()) {
    line(fmt::format("{} {} = {};", type, name, value));
  } else {
    line(fmt::format("{} {}[{}];", type, name, group.perThread));
    each(fmt::format("{}[l] = {};", name, value));
  }
}

template <typename H> H ThreadEmitter::define(const std::string &type, const std::string &value) {
  std::string name = newName();
  charge(onlyFirst ? 1 : double(group.perThread));
  declare(type, name, value);
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
  std::string name = newName(), first = nameOf(begin);
  std::optional<int64_t> last = variableOf(end).constant;
  bool isKnown = variableOf(begin).constant == 0 && last == trips && step == 1;
  openLevel(carried,
            fmt::format("for (Index {0} = {1}; {0} < {2}; {0} += {3}) {{", name, nameOf(begin), nameOf(end), step),
            trips, isKnown ? name : "");
  open.back()->isUnrolled = group.threads == 1;
  return {named<Count>(name), open.back()->carried};
}

// Carried values are variables outside of the braces.
void ThreadEmitter::openLevel(ArrayRef<Element> carried, const std::string &head, int64_t trips,
                              const std::string &trip) {
  auto level = std::make_shared<Level>();
  for (Element element : carried)
    level->carried.push_back(define<Element>(variableOf(element).type, eachOf(element)));
  level->head = head;
  level->number = nextLevel++;
  level->trips = trips;
  level->trip = trip;
  open.push_back(level);
}

void ThreadEmitter::beginBlock(Condition condition, ArrayRef<Element> carried) {
  openLevel(carried, condition ? fmt::format("if ({}) {{", firstOf(condition)) : "{", /*trips=*/1,
            condition ? "" : "0");
}

SmallVector<Element> ThreadEmitter::end(ArrayRef<Element> next) {
  std::shared_ptr<Level> level = open.back();
  SmallVector<Element> copies; // the next value of one carried variable may be the present value of another
  for (Element element : next)
    copies.push_back(define<Element>(variableOf(element).type, eachOf(element)));
  for (auto [to, from] : llvm::zip_equal(level->carried, copies))
    each(fmt::format("{} = {};", eachOf(to), eachOf(from)));
  open.pop_back();
  double cycles = level->cycles * double(level->trips);
  charge(cycles);
  loads.addLoop(level->number, cycles);
  line((level->isUnrolled ? "_Pragma(\"unroll\") " : "") + level->head); // after earlier statements
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

Count ThreadEmitter::constant(int64_t value) {
  Count count = named<Count>(fmt::format("{}ll", value));
  variables.back().constant = value;
  return count;
}

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
  std::vector<std::string> names;
  for (Element operand : operands)
    names.push_back(eachOf(operand));
  return define<Element>(typeName(op->getResult(0).getType()), opText(op, names));
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

/// The definition of a function. It has an include guard, because several kernels of one text may define it.
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
  std::string value = fmt::format("{} < {}", laneNumber(), count);
  Condition condition = define<Condition>("bool", value);
  ofLanes[nameOf(condition)] = value;
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

//===- across threads ---------------------------------------------------------------------------------------------===//

constexpr double kBarriers = 20; // cycles of two barriers and the accesses between them

std::string ThreadEmitter::heldAs(const std::string &type, int64_t count) {
  charge(kBarriers);
  bool isLong = type == "double" || type == "long long";
  heldBytes = std::max(heldBytes, count * (isLong ? 8 : 4));
  return fmt::format("({} *)held", type);
}

Element ThreadEmitter::rotate(Element element, int64_t by) {
  const std::string &name = variableOf(element).name, &type = variableOf(element).type;
  if (by < group.perThread)
    return define<Element>(type, fmt::format("{}[(l + {}) % {}]", name, by, group.perThread));
  onlyFirst = true; // until spreadFirst, only the first of each thread's elements is used
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

LaneArray ThreadEmitter::makeArray(Element like, int64_t count) {
  const std::string &type = variableOf(like).type;
  std::string name = newName();
  line(isSingle() ? fmt::format("{} {}[{}];", type, name, count)
                  : fmt::format("{} {}[{}][{}];", type, name, count, group.perThread));
  return named<LaneArray>(name, type);
}

Element ThreadEmitter::read(LaneArray array, Count place) {
  return define<Element>(variableOf(array).type,
                         fmt::format("{}[{}]{}", nameOf(array), nameOf(place), isSingle() ? "" : "[l]"));
}

void ThreadEmitter::write(LaneArray array, Count place, Element element) {
  each(fmt::format("{}[{}]{} = {};", nameOf(array), nameOf(place), isSingle() ? "" : "[l]", eachOf(element)));
}

} // namespace sluice::cuda
