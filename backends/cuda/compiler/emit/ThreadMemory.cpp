// Loads and stores of threads.
#include "backends/cuda/compiler/emit/IndexText.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "ir/Types.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace mlir;
using namespace sluice::loops;

namespace sluice::cuda {

static std::string addressOf(const Memory &memory) {
  return memory.byteOffset ? fmt::format("(b{} + {})", memory.buffer, memory.byteOffset)
                           : fmt::format("b{}", memory.buffer);
}

static int64_t bytesOf(Type element) { return std::max(8u, element.getIntOrFloatBitWidth()) / 8; }

/// Charges a load or store of a thread's elements. Adjacent lanes share cache lines; other lanes use a line each.
void ThreadEmitter::chargeAccess(AffineExpr offset, const Lanes &lanes, bool isPack) {
  accessesPacks_ &= isPack || !lanes.variable || !space().usesLane(offset);
  bool isShared = !lanes.variable || !space().usesLane(offset) || space().isContiguous(offset, lanes.variable);
  charge(isPack     ? 4
         : isShared ? 4 * double(group.perThread)
                    : double(std::min(group.threads, kWarp) * group.perThread));
}

/// Splits the lane variable of an index into the thread's number and the number of its element.
ThreadEmitter::InThread ThreadEmitter::inThread(AffineExpr index, AffineExpr lane) const {
  InThread its{space(), index, {}};
  AffineExpr ofThread = its.space.addVariable(thread, {0, group.threads - 1}, /*keep=*/true);
  its.element = its.space.addVariable({}, {0, group.perThread - 1}, /*keep=*/true);
  its.index = index.replace(lane, ofThread * group.perThread + its.element);
  return its;
}

/// Whether the condition is the same for all elements of a thread.
bool ThreadEmitter::isWhole(Condition condition, AffineExpr lane) const {
  auto said = saidBy.find(nameOf(condition));
  return said != saidBy.end() && llvm::all_of(said->second, [&](AffineExpr index) {
           InThread its = inThread(index, lane);
           return !its.space.usesLane(its.space.normalize(its.index));
         });
}

/// The offset of a thread's first element, if the thread's elements are contiguous, aligned to their total size, and
/// all active or all inactive.
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

/// The prefix of a statement that accesses a pack: "if (conditions) ", or nothing.
std::string ThreadEmitter::ifAll(std::initializer_list<Condition> conditions) const {
  std::string all;
  for (Condition condition : conditions)
    if (condition)
      all += (all.empty() ? "" : " && ") + firstOf(condition);
  return all.empty() ? "" : fmt::format("if ({}) ", all);
}

/// The expression of a thread's elements as a pack that begins at `place`.
std::string ThreadEmitter::packAt(Type element, const std::string &address, const std::string &place) const {
  return fmt::format("packAt<{}>(({} *){} + {})", group.perThread, memoryTypeName(element), address, place);
}

/// The offset in a form that is equal for all loops with the same trip count at the same depth; nothing if it depends
/// on variables inside of them.
std::string ThreadEmitter::inAnyLoop(AffineExpr offset) const {
  const Level &loop = *open.back();
  bool isOutside = true;
  auto name = [&](AffineExpr variable, bool) -> std::string {
    Count count = space().valueOf(variable);
    if (!count) {
      isOutside &= !space().elementOf(variable);
      return "lane";
    }
    const Variable &found = variableOf(count);
    isOutside &= found.name == loop.trip || found.depth < open.size();
    return found.name == loop.trip ? "trip" : found.name;
  };
  LinearIndex index = space().analyze(offset);
  std::vector<std::string> terms;
  for (const LinearIndex::Term &term : index.terms)
    terms.push_back(fmt::format("{} * {}", term.coefficient, indexText(space(), term.atom, name)));
  std::ranges::sort(terms);
  return isOutside ? fmt::format("{} + {}", llvm::join(terms, " + "), index.constant) : "";
}

/// Records a load for KeptLoads, and returns the array that keeps it, if any. Only loads of rows along lanes, in loops
/// of known trip counts, can be kept.
std::optional<unsigned> ThreadEmitter::note(const Source &from, AffineExpr offset, const Lanes &lanes,
                                            Condition condition) {
  const Level &loop = *open.back();
  LoopLoads::Load load{"", loop.number, from.buffer,
                       loop.trips * group.perThread * llvm::divideCeilSigned(bytesOf(from.element), 4)};
  auto exists = lanes.exists ? ofLanes.find(nameOf(lanes.exists)) : ofLanes.end();
  bool isOfRow = from.buffer >= 0 && !loop.trip.empty() && lanes.variable && space().usesLane(offset);
  if (isOfRow && !condition && (!lanes.exists || exists != ofLanes.end()))
    if (std::string place = inAnyLoop(offset); !place.empty())
      load.what = fmt::format("{} in {}: {} {}[{}] where {}", loop.trips, open[open.size() - 2]->number,
                              memoryTypeName(from.element), from.address, place, lanes.exists ? exists->second : "any");
  loads.add(std::move(load));
  size_t number = nextLoad++;
  return number < kept.size() ? kept[number] : std::nullopt;
}

std::string ThreadEmitter::keptIn(unsigned array, const std::string &type, const Lanes &lanes,
                                  llvm::function_ref<std::string()> load) {
  std::shared_ptr<Level> loop = open.back();
  std::string name = fmt::format("kept{}", array);
  std::string element = fmt::format("{}[{}]{}", name, loop->trip, isSingle() ? "" : "[l]");
  loop->isUnrolled = loop->trip != "0";
  if (!filled.insert(array).second)
    return element;
  enter(depth() - 1);
  line(fmt::format("{} {}[{}]{};", type, name, loop->trips, isSingle() ? "" : fmt::format("[{}]", group.perThread)));
  openLevel({}, loop->head, loop->trips, loop->trip);
  open.back()->isUnrolled = loop->isUnrolled;
  if (lanes.exists)
    declare("bool", nameOf(lanes.exists), ofLanes.at(nameOf(lanes.exists)));
  each(fmt::format("{} = {};", element, load()));
  end({});
  leave();
  return element;
}

/// Loads all elements of a thread as a pack; returns the expression of its element `l`.
std::string ThreadEmitter::packText(const Source &from, const std::string &place, const std::string &type,
                                    std::initializer_list<Condition> conditions) {
  std::string pack = newName();
  line(fmt::format("Pack<{}, {}> {} = {{}};", memoryTypeName(from.element), group.perThread, pack));
  line(ifAll(conditions) + fmt::format("{} = {};", pack, packAt(from.element, from.address, place)));
  return fmt::format("({})elementOf({}, l)", type, pack);
}

/// The expression of element `l`, loaded separately.
std::string ThreadEmitter::elementText(const Source &from, AffineExpr offset, const std::string &type,
                                       std::initializer_list<Condition> conditions) {
  std::string place = fmt::format("(({} *){})[{}]", memoryTypeName(from.element), from.address, text(offset)), held;
  if (ir::isHalf(from.element))
    place = "(" + type + ")" + place;
  for (Condition one : conditions)
    if (one)
      held += (held.empty() ? "" : " && ") + eachOf(one);
  if (!held.empty() && !isSingle() && !space().usesLane(offset)) { // one load for all elements, if any condition holds
    std::string any = newName();
    line(fmt::format("bool {} = false;", any));
    each(fmt::format("{} |= {};", any, held));
    held = any;
  }
  return held.empty() ? place : fmt::format("{} ? {} : 0", held, place);
}

Element ThreadEmitter::loadFrom(const Source &from, AffineExpr offset, const Lanes &lanes, Condition condition) {
  std::string type = from.element.isInteger(1) ? "bool" : typeName(from.element);
  std::optional<std::string> ofPack = placeOfPack(from.element, from.byteOffset, offset, lanes);
  if (condition && ofPack && !isWhole(condition, lanes.variable))
    ofPack.reset();
  chargeAccess(offset, lanes, ofPack.has_value());
  auto load = [&] {
    return ofPack ? packText(from, *ofPack, type, {lanes.exists, condition})
                  : elementText(from, offset, type, {lanes.exists, condition});
  };
  std::optional<unsigned> array = note(from, offset, lanes, condition);
  return define<Element>(type, array ? keptIn(*array, type, lanes, load) : load());
}

Element ThreadEmitter::load(const Memory &memory, AffineExpr offset, const Lanes &lanes, Condition condition) {
  return loadFrom({addressOf(memory), memory.byteOffset, memory.type.getElementType(), memory.buffer}, offset, lanes,
                  condition);
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
  return loadFrom({name, kUnaligned, constant.getElementType()}, offset, lanes, condition);
}

void ThreadEmitter::store(const Memory &memory, AffineExpr offset, const Lanes &lanes, Element element) {
  Type type = memory.type.getElementType();
  loads.addStore(memory.buffer);
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

} // namespace sluice::cuda
