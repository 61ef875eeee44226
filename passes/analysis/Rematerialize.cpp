// Consumers in other launches rematerialize an elementwise value with batch rows when that moves fewer bytes:
//
//   %h, %d = kernel (%x: bf16) {%a = add %x, %b; %h = gelu %a; %d = its derivative at cast(%a), of f32}
//   %g = kernel (%dY, %d) {mul %dY, %d}
//     ==>  %h = kernel (%x) {gelu (add %x, %b)};  %g = kernel (%dY, %x) {mul %dY, the derivative at cast(add %x, %b)}
//
// 1. A value is computed from the sources that cost the fewest bytes: operands of its producer, or further back as long
//    as the producers are elementwise and have one index space. A source that is in memory anyway costs no write.
//    Arithmetic counts as the bytes that could be moved in the same time, except in launches with a product.
// 2. All consumers of a value rematerialize it, or none: otherwise it would be written nevertheless. The backend must
//    accept the changed launches. Values that the same groups read are considered together first, because they may have
//    common sources.
// 3. No consumer may run after one of its sources is overwritten.
//
// A value may also be kept from the forward to the backward pass for weight gradients alone, for example the image of a
// convolution. They rematerialize it if another value, which is in memory until later anyway, is the only large source.
// This moves as many bytes, and the value's memory is free after the forward pass.
#include "passes/analysis/Rematerialize.h"
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/OpClass.h"
#include "ir/Work.h"
#include "passes/analysis/ValueReaders.h"
#include <map>
#include <set>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

using Values = llvm::SetVector<Value>;

class FindingAgain {
public:
  FindingAgain(ActionListOp list, FusionRules &rules, std::vector<FusionGroup> &groups,
               DenseMap<Operation *, unsigned> &groupOf)
      : rules(rules), groups(groups), groupOf(groupOf), capacity(getCapacity(list->getParentOfType<ModuleOp>())),
        inputs(groups.size()) {
    for (auto [old, next] : list.getUpdates())
      updates[old].push_back(next);
    for (unsigned group = 0; group < groups.size(); ++group)
      setInputs(group);
  }

  void run() {
    for (unsigned group = 0; group < groups.size(); ++group) {
      for (Values &values : leftTogether(group))
        findAgain(std::move(values), group);
      SmallVector<Operation *> last(llvm::reverse(groups[group].ops));
      for (Operation *op : last)
        if (isLeftForReaders(op, group))
          findAgain(Values(op->result_begin(), op->result_end()), group);
    }
    for (unsigned group = 0; group < groups.size(); ++group) {
      SmallVector<Operation *> last(llvm::reverse(groups[group].ops));
      for (Operation *op : last)
        if (isMember(op, group) && isOfRows(op) && !needsBuffer(op))
          findForWeightGradients(op->getResult(0), group);
    }
  }

private:
  static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  /// Whether the op is elementwise and has batch rows.
  static bool isOfRows(Operation *op) {
    return classOf(op).isElementwise && !tensorOf(op->getResult(0)).hasStaticShape();
  }

  bool isMember(Operation *op, unsigned group) const {
    auto it = groupOf.find(op);
    return it != groupOf.end() && it->second == group;
  }

  void setInputs(unsigned group) { setInputs(group, contentsOf(groups[group]).inputs); }

  void setInputs(unsigned group, Values values) {
    for (Value value : inputs[group])
      readersByInput[value].erase(group);
    inputs[group] = std::move(values);
    for (Value value : inputs[group])
      readersByInput[value].insert(group);
  }

  SmallVector<unsigned> readersOf(Value value) const {
    auto its = readersByInput.find(value);
    return its == readersByInput.end() ? SmallVector<unsigned>() : llvm::to_vector(its->second);
  }

  bool isReadByOthers(Value value) const {
    auto its = readersByInput.find(value);
    return its != readersByInput.end() && !its->second.empty();
  }

  /// Whether the op's result is stored only for other groups, and these may rematerialize it. A product may not: it
  /// must read its operands from memory.
  bool isLeftForReaders(Operation *op, unsigned group) const {
    return isMember(op, group) && isOfRows(op) && !needsBuffer(op) && isReadByOthers(op->getResult(0)) &&
           !llvm::any_of(op->getUsers(), llvm::IsaPred<ContractionOp, BlockwiseOp>);
  }

  /// Values of one iteration space whose consumers are elementwise and in the same groups.
  SmallVector<Values> leftTogether(unsigned group) const {
    std::map<SmallVector<unsigned>, Values> byReaders;
    for (Operation *op : groups[group].ops) {
      if (!isLeftForReaders(op, group) || !llvm::all_of(op->getUsers(), llvm::IsaPred<ElementwiseOp>))
        continue;
      Values &values = byReaders[readersOf(op->getResult(0))];
      if (values.empty() || haveOneSpace(tensorOf(values.front()), tensorOf(op->getResult(0))))
        values.insert(op->getResult(0));
    }
    SmallVector<Values> result;
    for (auto &[readers, values] : byReaders)
      if (values.size() > 1)
        result.push_back(std::move(values));
    return result;
  }

  /// Lets the consumers rematerialize the values if that is cheaper and legal.
  void findAgain(Values values, unsigned group) {
    wanted = std::move(values);
    readers = readersOf(wanted.front());
    if (isSpread())
      return;
    found.clear();
    Values sources;
    for (Value value : wanted)
      sources.set_union(sourcesOf(value, group));
    llvm::SetVector<Operation *> makers;
    for (Value value : wanted)
      addMakers(value, sources, makers);
    if (cost(sources) + costOfWork(makers) < cost(wanted) && mayFind() && !isOverwritten(sources))
      change(group, makers);
  }

  /// The group of the op that computes the value; none if it is in memory from the beginning.
  std::optional<unsigned> makerOf(Value value) const {
    auto it = groupOf.find(value.getDefiningOp());
    return it == groupOf.end() ? std::nullopt : std::optional(it->second);
  }

  /// If the reader multiplies the value by one that is computed from it, and reads it for nothing else: the group that
  /// computes the other factor.
  std::optional<unsigned> makerOfFactor(Value value, unsigned group, unsigned reader) const {
    std::optional<unsigned> found;
    for (Operation *op : groups[reader].ops) {
      if (!llvm::is_contained(op->getOperands(), value))
        continue;
      if (found || !isa<ContractionOp>(op) || llvm::count(op->getOperands(), value) > 1)
        return std::nullopt;
      for (Value other : op->getOperands())
        if (std::optional<unsigned> maker = makerOf(other); other != value && maker && dependsOn(*maker, group))
          found = maker;
      if (!found)
        return std::nullopt;
    }
    return found;
  }

  /// Lets weight gradients compute the image that is kept for them alone: in the backward pass, no others read it, and
  /// others read its source.
  void findForWeightGradients(Value image, unsigned group) {
    wanted.clear();
    wanted.insert(image);
    readers.clear();
    SmallVector<unsigned> others, makersOfFactors;
    for (unsigned reader : readersOf(image))
      if (std::optional<unsigned> maker = makerOfFactor(image, group, reader)) {
        readers.push_back(reader);
        makersOfFactors.push_back(*maker);
      } else {
        others.push_back(reader);
      }
    auto isLate = [&](unsigned one) {
      return llvm::any_of(makersOfFactors, [&](unsigned maker) { return one == maker || dependsOn(one, maker); });
    };
    if (readers.empty() || others.empty() || llvm::any_of(others, isLate))
      return;
    found.clear();
    Values sources = sourcesOf(image, group), large;
    for (Value source : sources)
      if (haveOneSpace(tensorOf(source), tensorOf(image)))
        large.insert(source);
    if (large.size() != 1 || isOverwritten(sources) || llvm::none_of(readersOf(large.front()), [&](unsigned other) {
          return !llvm::is_contained(readers, other) && isLate(other);
        }))
      return;
    llvm::SetVector<Operation *> makers;
    addMakers(image, sources, makers);
    change(group, makers);
  }

  //===- sources of values ----------------------------------------------------------------------------------------===//

  /// The cheapest sources from which `readers` can compute the value: operands of ops of the group, or the value itself
  /// unless it is in `wanted`.
  const Values &sourcesOf(Value value, unsigned group) {
    if (auto known = found.find(value); known != found.end())
      return *known->second;
    return *(found[value] = std::make_unique<Values>(findSources(value, group)));
  }

  Values findSources(Value value, unsigned group) {
    Values itself, operands;
    itself.insert(value);
    Operation *op = value.getDefiningOp();
    bool isInside = op && groups[group].contents.contains(op), isFree = isInside && !isMember(op, group);
    if (!isFree && !(isInside && isOfRows(op) && haveOneSpace(tensorOf(value), tensorOf(wanted.front()))))
      return itself;
    for (Value operand : op->getOperands())
      operands.set_union(sourcesOf(operand, group));
    bool isFound = isFree || wanted.contains(value) || cost(operands) < cost(itself);
    return isFound ? operands : itself;
  }

  /// Bytes written and read for the values that would not be moved otherwise.
  int64_t cost(const Values &values) const {
    int64_t bytes = 0;
    for (Value value : values) {
      bool isWanted = wanted.contains(value);
      auto reads = [&](unsigned reader) { return isWanted || !inputs[reader].contains(value); };
      int64_t passes = llvm::count_if(readers, reads) + (isWanted || !isLeft(value));
      bytes += passes * getBufferBytes(tensorOf(value), capacity);
    }
    return bytes;
  }

  /// The arithmetic in bytes that could be moved in the same time. Devices execute about ten operations per byte. An op
  /// is one operation, or several if it is a function, so 8 ops count as one byte. In a launch with a product the
  /// arithmetic is negligible.
  int64_t costOfWork(const llvm::SetVector<Operation *> &makers) const {
    auto isWithoutProduct = [&](unsigned reader) { return !hasProduct(reader); };
    RankedTensorType type = tensorOf(wanted.front());
    int64_t elements = getBufferBytes(type, capacity) / getElementBytes(type.getElementType());
    constexpr int64_t kOpsOfByte = 8;
    return llvm::count_if(readers, isWithoutProduct) * int64_t(makers.size()) * elements / kOpsOfByte;
  }

  /// Whether the value is stored in memory anyway.
  bool isLeft(Value value) const {
    Operation *op = value.getDefiningOp();
    return !op || !groupOf.contains(op) || needsBuffer(op) || isReadByOthers(value);
  }

  /// Adds the ops that compute the value from its sources, in order.
  static void addMakers(Value value, const Values &sources, llvm::SetVector<Operation *> &makers) {
    Operation *op = value.getDefiningOp();
    if (sources.contains(value) || makers.contains(op))
      return;
    for (Value operand : op->getOperands())
      addMakers(operand, sources, makers);
    makers.insert(op);
  }

  //===- legality -------------------------------------------------------------------------------------------------===//

  bool hasProduct(unsigned group) const { return llvm::any_of(groups[group].contents, llvm::IsaPred<ContractionOp>); }

  /// Whether each reader visits each element once. A fold whose result is read in the same launch, or has as many
  /// elements as its input, visits its input several times. Readers may not update in place either.
  bool mayFind() const {
    return llvm::none_of(readers, [&](unsigned reader) {
      const llvm::SetVector<Operation *> &contents = groups[reader].contents;
      auto isInside = [&](Operation *user) { return contents.contains(user); };
      return llvm::any_of(contents, [&](Operation *op) {
        bool isFold = isReduction(op) && !isa<ContractionOp>(op);
        return isa<UpdateOp>(op) || (isFold && (haveOneSpace(tensorOf(op->getResult(0)), tensorOf(wanted.front())) ||
                                                llvm::any_of(op->getUsers(), isInside)));
      });
    });
  }

  /// Whether readers move or broadcast any of the values: every position would recompute it.
  bool isSpread() const {
    return llvm::any_of(wanted, [&](Value value) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) {
        auto moves = [&](unsigned reader) { return groups[reader].contents.contains(user); };
        return isInjective(user) && llvm::any_of(readers, moves);
      });
    });
  }

  /// Whether a reader may run after a source is overwritten.
  bool isOverwritten(const Values &sources) {
    auto isUpdated = [](Value value) {
      return llvm::any_of(value.getUses(),
                          [](OpOperand &use) { return isa<UpdateOp>(use.getOwner()) && use.getOperandNumber() == 0; });
    };
    auto isLate = [&](Value next) {
      auto writer = groupOf.find(next.getDefiningOp());
      return writer != groupOf.end() && llvm::any_of(readers, [&](unsigned reader) {
               return reader == writer->second || dependsOn(reader, writer->second);
             });
    };
    return llvm::any_of(
        sources, [&](Value source) { return isUpdated(source) || llvm::any_of(updates.lookup(source), isLate); });
  }

  bool dependsOn(unsigned group, unsigned other) const {
    return groups[group].dependsOn.size() > other && groups[group].dependsOn.test(other);
  }

  /// A result of an op of a group. Among the first `count` ops of the group, it is a result of their launch if others
  /// read it: `readUntil >= count`.
  struct KeptResult {
    Value value;
    size_t maker;     ///< place of its op in the group
    size_t readUntil; ///< place of its last reader in the group; kForever if there are others
  };
  static constexpr size_t kForever = SIZE_MAX;

  /// The ops of a group, and the launch contents after each of these ops.
  struct Growth {
    explicit Growth(const FusionGroup &group) : ops(group.ops), contents(contentsOf(group, &counts).ops) {}

    ArrayRef<Operation *> contentsOfFirst(size_t count) const {
      return contents.getArrayRef().take_front(counts[count - 1]);
    }

    ArrayRef<Operation *> ops;
    SmallVector<size_t> counts;
    llvm::SetVector<Operation *> contents;
    std::optional<SmallVector<KeptResult>> results; ///< of all ops; none until they are needed
  };

  /// The last place of the value's readers, also through rematerialized ops, as isReadApart finds readers.
  size_t lastPlaceOfReaders(Value value, const DenseMap<Operation *, size_t> &places) {
    size_t last = 0;
    for (Operation *user : value.getUsers()) {
      if (auto place = places.find(user); place != places.end())
        last = std::max(last, place->second);
      else if (!isCompute(user) || !rules.isRecomputed(user))
        return kForever;
      else
        for (Value result : user->getResults())
          last = std::max(last, lastPlaceOfReaders(result, places));
    }
    return last;
  }

  ArrayRef<KeptResult> resultsOf(Growth &group) {
    if (group.results)
      return *group.results;
    DenseMap<Operation *, size_t> places;
    for (auto [place, op] : llvm::enumerate(group.ops))
      places[op] = place;
    group.results.emplace();
    for (auto [place, op] : llvm::enumerate(group.ops))
      for (Value result : op->getResults())
        group.results->push_back({result, place, isLeft(result) ? kForever : lastPlaceOfReaders(result, places)});
    return *group.results;
  }

  /// Whether the backend still accepts the remaining ops of the group in one launch, given that it accepted all of
  /// them. Each op must join its predecessors. The last op is checked first: a launch that has become too large fails
  /// there, before all other checks.
  bool joinsAsBefore(const FusionGroup &before, const FusionGroup &after, bool leavesAsBefore) {
    Growth some(before), others(after);
    size_t left = after.ops.size();
    for (size_t count = before.ops.size(); count > 0 && left > 0; --count) {
      if (before.ops[count - 1] != after.ops[left - 1])
        continue;
      bool areAlike = leavesAsBefore && some.counts[count - 1] == others.counts[left - 1];
      if (!areAlike && !lastJoins(others, left) && (left == after.ops.size() || lastJoins(some, count)))
        return false;
      --left;
    }
    return true;
  }

  /// Whether the last of the first `count` ops of a group can join its predecessors.
  bool lastJoins(Growth &group, size_t count) {
    Operation *last = group.ops[count - 1];
    SmallVector<Value> results;
    for (const KeptResult &result : resultsOf(group))
      if (result.maker + 1 < count && result.readUntil >= count)
        results.push_back(result.value);
    ArrayRef<Operation *> first = group.contentsOfFirst(count);
    llvm::SetVector<Operation *> contents(first.begin(), first.end());
    contents.remove(last);
    return rules.canJoin(last, contents, results);
  }

  //===- the change -----------------------------------------------------------------------------------------------===//

  /// Adds the makers to the readers and removes dead ops from the group, if the backend accepts both.
  void change(unsigned group, const llvm::SetVector<Operation *> &makers) {
    SmallVector<unsigned> changed = readers;
    changed.push_back(group);
    auto before = llvm::map_to_vector(changed, [&](unsigned index) { return groups[index]; });
    auto inputsBefore = llvm::map_to_vector(readers, [&](unsigned reader) { return inputs[reader]; });
    for (unsigned reader : readers) {
      llvm::SetVector<Operation *> contents = makers;
      contents.insert(groups[reader].contents.begin(), groups[reader].contents.end());
      groups[reader].contents = std::move(contents);
      setInputs(reader);
    }
    removeUnread(groups[group]);
    bool joinAsBefore = true;
    for (auto [index, old] : llvm::zip_equal(changed, before))
      joinAsBefore = joinAsBefore && joinsAsBefore(old, groups[index], /*leavesAsBefore=*/index != group);
    if (joinAsBefore) {
      setInputs(group);
    } else {
      for (auto [index, old] : llvm::zip_equal(changed, before))
        groups[index] = old;
      for (auto [reader, old] : llvm::zip_equal(readers, inputsBefore))
        setInputs(reader, old);
    }
    for (Operation *op : before.back().ops)
      if (!llvm::is_contained(groups[group].ops, op))
        groupOf.erase(op);
  }

  void removeUnread(FusionGroup &group) {
    FusionGroup needed = group;
    llvm::erase_if(needed.ops, [&](Operation *op) { return isOfRows(op) && !isLeft(op->getResult(0)); });
    group.contents = contentsOf(needed).ops;
    llvm::erase_if(group.ops, [&](Operation *op) { return !group.contents.contains(op); });
  }

  FusionRules &rules;
  std::vector<FusionGroup> &groups;
  DenseMap<Operation *, unsigned> &groupOf;
  DenseMap<Value, SmallVector<Value, 1>> updates; // values that replace others in place
  int64_t capacity;
  std::vector<Values> inputs; // per group
  DenseMap<Value, std::set<unsigned>> readersByInput;
  // For the values under consideration: the groups that read them, and their sources.
  Values wanted;
  SmallVector<unsigned> readers;
  DenseMap<Value, std::unique_ptr<Values>> found;
};

} // namespace

void rematerializeCheaperOps(ActionListOp list, FusionRules &rules, std::vector<FusionGroup> &groups,
                             DenseMap<Operation *, unsigned> &groupOf) {
  FindingAgain(list, rules, groups, groupOf).run();
}

} // namespace sluice::passes
