#include "backends/loops/FusionRules.h"

#include "ir/Dialect.h"
#include "ir/Layout.h"
#include "ir/OpClass.h"
#include "ir/Work.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace sluice::loops {

using namespace mlir;

namespace {

/// Maximum columns of a sum over the rows that joins an op that folds each row (rule 4): a few vectors.
constexpr int64_t kMostColumnsOfFolds = 64;

/// Maximum terms of folds whose results are reduced in the same kernel (rule 4), where one task may run all of them.
constexpr int64_t kMostTermsOfOneTask = 256;

/// A kernel under construction, op by op, in the order of the view.
class KernelGrowth {
public:
  KernelGrowth(const sluice_kernel_view &kernel, bool throughMoves, const llvm::BitVector &ofOperands)
      : kernel(kernel), throughMoves(throughMoves), ofOperands(ofOperands), makers(kernel.num_values, kOutside),
        isResult(kernel.num_values), isRematerialized(kernel.num_ops), isOfSum(kernel.num_ops),
        isOfSumsAlone(kernel.num_ops), isOfProduct(kernel.num_ops) {
    for (size_t result : llvm::ArrayRef(kernel.results, kernel.num_results))
      isResult.set(result);
    size_t value = kernel.num_operands;
    bool hasSum = false, hasProduct = false;
    for (size_t op = 0; op < kernel.num_ops; ++op) {
      firstResult.push_back(value);
      for (size_t i = 0; i < opAt(op).num_results; ++i)
        makers[value++] = op;
      classes.push_back(ir::classOf(operationOf(op)));
      kinds.push_back(findKind(op));
      hasSum |= kinds.back() == RowReduction;
      hasProduct |= kinds.back() == Product;
      if (costsNothing(op) || isOfOperand(op))
        isRematerialized.set(op);
    }
    for (size_t op = 0; op < kernel.num_ops && hasSum; ++op) {
      isOfSum[op] = findWhetherOfSum(op);
      isOfSumsAlone[op] = findWhetherOfSumsAlone(op);
    }
    for (size_t op = 0; op < kernel.num_ops && hasProduct; ++op)
      isOfProduct[op] = findWhetherOfProduct(op);
  }

  bool lastOpJoins() {
    size_t last = kernel.num_ops - 1;
    if (!staysNarrow(last))
      return false;
    for (size_t op = 0; op < last; ++op)
      if (!isRematerialized.test(op))
        add(op);
    return begun ? canJoin(last) : canBegin(last);
  }

private:
  static constexpr size_t kOutside = SIZE_MAX;

  /// The index space of the kernel's loops. `RowReduction` sums over the rows. `Scatter` is a scatter_add, a cumsum or
  /// an update. `Alone` works on blocks, and nothing joins it.
  enum Kind { Product, Loop, RowReduction, Scatter, Alone };

  const sluice_op_view &opAt(size_t op) const { return *sluice_kernel_op_at(&kernel, op); }
  llvm::ArrayRef<size_t> operandsOf(size_t op) const { return {opAt(op).operands, opAt(op).num_operands}; }
  Operation *operationOf(size_t op) const { return static_cast<Operation *>(opAt(op).operation); }
  bool isElementwise(size_t op) const { return classes[op].isElementwise; }
  bool isInjective(size_t op) const { return classes[op].isInjective; }
  Kind kindOf(size_t op) const { return kinds[op]; }
  RankedTensorType typeOf(size_t op) const { return cast<RankedTensorType>(operationOf(op)->getResult(0).getType()); }
  /// Whether consumers rematerialize the op: it is not a result, and only moves or widens elements, shifts or scales a
  /// product (isReadFromProduct), is read in parts (isReadInParts), or computes a scalar from such ops.
  bool costsNothing(size_t op) const {
    for (size_t i = 0; i < opAt(op).num_results; ++i)
      if (isResult.test(firstResult[op] + i))
        return false;
    Operation *operation = operationOf(op);
    if (isInjective(op) || ir::isWidening(operation) || ir::isReadFromProduct(operation) ||
        ir::isReadInParts(operation))
      return true;
    return isElementwise(op) && typeOf(op).getRank() == 0 && llvm::all_of(operandsOf(op), [&](size_t operand) {
             return makers[operand] != kOutside && isRematerialized.test(makers[operand]);
           });
  }

  /// Whether a product computes the op as it reads an operand. The op may not be a result.
  bool isOfOperand(size_t op) const {
    return op < ofOperands.size() && ofOperands.test(op) && !isResult.test(firstResult[op]);
  }

  Kind findKind(size_t op) const {
    Operation *operation = operationOf(op);
    if (classes[op].isContraction)
      return Product;
    if (classes[op].isBlockwise)
      return Alone;
    if (classes[op].isUpdate || isa<ir::ScatterAddOp, ir::CumSumOp>(operation))
      return Scatter;
    if (!classes[op].isElement)
      return Loop;
    auto hasRows = [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); };
    bool reducesRows =
        llvm::any_of(operation->getOperandTypes(), hasRows) && llvm::none_of(operation->getResultTypes(), hasRows);
    return reducesRows ? RowReduction : Loop;
  }

  /// The ops that are rematerialized for `op`.
  llvm::BitVector foundFor(size_t op) const {
    llvm::BitVector found(kernel.num_ops);
    SmallVector<size_t> work{op};
    while (!work.empty())
      for (size_t operand : operandsOf(work.pop_back_val()))
        if (size_t maker = makers[operand]; maker != kOutside && isRematerialized.test(maker) && !found.test(maker)) {
          found.set(maker);
          work.push_back(maker);
        }
    return found;
  }

  /// Whether the kernel of `op` stays within kMaxOpsInKernel. Operands are decided one by one, so each of them is
  /// assumed to rematerialize as many ops as the one that is checked.
  bool staysNarrow(size_t op) const {
    return llvm::all_of(operandsOf(op), [&](size_t operand) {
      size_t maker = makers[operand];
      return maker == kOutside || !isRematerialized.test(maker) ||
             (foundFor(maker).count() + 1) * opAt(op).num_operands < kMaxOpsInKernel;
    });
  }

  bool readsMemory(size_t op) const {
    return llvm::all_of(operandsOf(op), [&](size_t operand) {
      size_t maker = makers[operand];
      return maker == kOutside || isOfOperand(maker) || (throughMoves && isInjective(maker) && readsMemory(maker));
    });
  }

  /// Whether `op` folds each row of rematerialized values whose rows are not contiguous in memory: transposed values,
  /// or values gathered along the last dimension. Each pass of the fold would repeat the noncontiguous reads.
  bool foldsWhatIsApart(size_t op) const {
    llvm::BitVector found = foundFor(op);
    return foldsEachRow(op) &&
           llvm::any_of(found.set_bits(), [&](size_t maker) { return movesApart(operationOf(maker)); });
  }

  static bool movesApart(Operation *op) {
    auto last = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank() - 1; };
    if (auto gather = dyn_cast<ir::GatherOp>(op))
      return int64_t(gather.getAxis()) == last(gather.getX());
    auto transpose = dyn_cast<ir::TransposeOp>(op);
    return transpose && transpose.getPermutation().back() != last(transpose.getX());
  }

  bool canBegin(size_t op) const {
    return ((kindOf(op) != Product && kindOf(op) != Alone) || readsMemory(op)) && !foldsWhatIsApart(op);
  }

  /// The producer of an operand, or of its widened value.
  size_t beforeWidening(size_t operand) const {
    size_t maker = makers[operand];
    bool isWidened = maker != kOutside && isRematerialized.test(maker) && ir::isWidening(operationOf(maker));
    return isWidened ? operandsOf(maker).front() : operand;
  }

  /// Whether an op of the kernel so far computes an operand of `op` over the kernel's index space.
  bool computesOperand(size_t op) const {
    return llvm::any_of(operandsOf(op), [&](size_t value) {
      size_t operand = beforeWidening(value), maker = makers[operand];
      return maker < op && maker != kOutside && !isRematerialized.test(maker) &&
             ir::haveOneSpace(cast<RankedTensorType>(
                                  operationOf(maker)->getResult(unsigned(operand - firstResult[maker])).getType()),
                              space);
    });
  }

  /// Whether the results of the earlier ops, apart from rematerialized ones, have no consumers except `op` and these
  /// ops.
  bool isOnlyReader(size_t op) const {
    for (size_t before = 0; before < op; ++before)
      for (size_t i = 0; i < opAt(before).num_results; ++i)
        if (!isRematerialized.test(before) && isResult.test(firstResult[before] + i))
          return false;
    for (size_t reader = 0; reader < kernel.num_ops; ++reader)
      for (size_t operand : operandsOf(reader)) {
        size_t maker = makers[operand];
        bool isOf = maker != kOutside && maker < op && !isRematerialized.test(maker);
        if (isOf && (reader > op || isRematerialized.test(reader)))
          return false;
      }
    return true;
  }

  /// Whether `op` sums over the rows of values that the kernel's loops visit anyway.
  bool isSumOfLoop(size_t op) const { return kind == Loop && kindOf(op) == RowReduction && computesOperand(op); }

  /// Whether any of `readers` reads the result of an op of this kernel for which `isSuch` holds.
  bool readAny(const llvm::BitVector &readers, llvm::function_ref<bool(size_t)> isSuch) const {
    return llvm::any_of(readers.set_bits(), [&](size_t reader) {
      return llvm::any_of(operandsOf(reader), [&](size_t operand) {
        size_t maker = makers[operand];
        return maker != kOutside && !isRematerialized.test(maker) && isSuch(maker);
      });
    });
  }

  /// Whether the op's result is a sum over the rows, or is computed from one elementwise.
  bool findWhetherOfSum(size_t op) const {
    return kindOf(op) == RowReduction || (isElementwise(op) && llvm::any_of(operandsOf(op), [&](size_t operand) {
                                            size_t maker = makers[operand];
                                            return maker < op && isOfSum.test(maker);
                                          }));
  }

  /// Whether the op is elementwise, and is computed in this kernel only from sums over the rows, at the same index,
  /// apart from rematerialized ops.
  bool findWhetherOfSumsAlone(size_t op) const {
    return isElementwise(op) && llvm::all_of(operandsOf(op), [&](size_t operand) {
             size_t maker = makers[operand];
             if (maker == kOutside || isRematerialized.test(maker))
               return true;
             return maker < op && ir::haveOneSpace(typeOf(maker), typeOf(op)) &&
                    (kindOf(maker) == RowReduction || isOfSumsAlone.test(maker));
           });
  }

  /// Whether `op` reads a sum over the rows of this kernel, or a value computed from one, broadcast by rematerialized
  /// ops.
  bool readsSpreadSum(size_t op) const {
    return readAny(foundFor(op), [&](size_t maker) { return isOfSum.test(maker); });
  }

  /// Whether the op is a product, or is computed from one in this kernel.
  bool findWhetherOfProduct(size_t op) const {
    return kindOf(op) == Product || llvm::any_of(operandsOf(op), [&](size_t operand) {
             size_t maker = makers[operand];
             return maker < op && isOfProduct.test(maker);
           });
  }

  /// Whether `op` reads values computed from a product of this kernel through ops that move elements. A product's
  /// kernel holds only one tile of sums at a time, and would compute each of these sums again, in another order.
  bool readsProductElsewhere(size_t op) const {
    return llvm::any_of(foundFor(op).set_bits(),
                        [&](size_t mover) { return isInjective(mover) && isOfProduct.test(mover); });
  }

  /// Whether an op has a fold for each row, on which all its elements depend: a softmax, or a norm.
  bool foldsEachRow(size_t op) const {
    return classes[op].isElement && !isElementwise(op) && !isRematerialized.test(op) &&
           llvm::any_of(operationOf(op)->getOperandTypes(),
                        [&](Type type) { return cast<RankedTensorType>(type).getShape() == typeOf(op).getShape(); });
  }

  /// Whether `op` sums over the rows of a kernel that folds each row, with many columns. All rows are visited for a few
  /// columns at a time, and every visit would fold each row again.
  bool foldsRowsAgain(size_t op) const {
    if (kindOf(op) != RowReduction || typeOf(op).getNumElements() <= kMostColumnsOfFolds)
      return false;
    for (size_t before = 0; before < op; ++before)
      if (foldsEachRow(before))
        return true;
    return false;
  }

  /// Adds the values outside of the kernel, with the elements of a sum, that the sum reads: directly, or through
  /// elementwise and rematerialized ops. Fails if one of these ops is also a result.
  bool addSummed(size_t sum, llvm::SmallDenseSet<size_t> &values) const {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(operationOf(sum)->getOperand(0).getType()).getShape();
    SmallVector<size_t> work{sum};
    llvm::SmallDenseSet<size_t> seen;
    while (!work.empty()) {
      size_t op = work.pop_back_val();
      for (auto [operand, value] : llvm::zip(operandsOf(op), operationOf(op)->getOperands())) {
        size_t maker = makers[operand];
        if (maker == kOutside) {
          if (cast<RankedTensorType>(value.getType()).getShape() == shape)
            values.insert(operand);
        } else if (isResult.test(operand) || !(isElementwise(maker) || isRematerialized.test(maker))) {
          return false;
        } else if (seen.insert(maker).second) {
          work.push_back(maker);
        }
      }
    }
    return true;
  }

  /// Whether `op` is the same reduction of the rows as others of the kernel, and reads one of the values that these
  /// read, so that one pass computes all.
  bool isSumBesideSums(size_t op) const {
    llvm::SmallDenseSet<size_t> its, others;
    if (kind != RowReduction || kindOf(op) != RowReduction || !addSummed(op, its))
      return false;
    for (size_t before = 0; before < op; ++before) {
      if (kindOf(before) != RowReduction)
        continue;
      Operation *one = operationOf(before), *other = operationOf(op);
      auto summed = [](Operation *sum) { return cast<RankedTensorType>(sum->getOperand(0).getType()); };
      if (one->getName() != other->getName() || one->getAttrDictionary() != other->getAttrDictionary() ||
          !ir::haveOneSpace(summed(one), summed(other)) || !addSummed(before, others))
        return false;
    }
    return llvm::any_of(its, [&](size_t value) { return others.contains(value); });
  }

  static int64_t staticElements(Type type) {
    int64_t count = 1;
    for (int64_t size : cast<RankedTensorType>(type).getShape())
      count *= ShapedType::isDynamic(size) ? 1 : size;
    return count;
  }

  /// The ops of the kernel that `op` is computed from.
  llvm::BitVector madeFrom(size_t op) const {
    llvm::BitVector all(kernel.num_ops);
    SmallVector<size_t> work{op};
    while (!work.empty())
      for (size_t operand : operandsOf(work.pop_back_val()))
        if (size_t maker = makers[operand]; maker != kOutside && !all.test(maker)) {
          all.set(maker);
          work.push_back(maker);
        }
    return all;
  }

  /// Whether `op` reduces the results of folds of many terms in the kernel. In a separate launch, each fold can be a
  /// task.
  bool reducesLongFolds(size_t op) const {
    auto folds = [&](size_t before) {
      return classes[before].isElement && !isElementwise(before) && !isRematerialized.test(before) &&
             llvm::any_of(operationOf(before)->getOperandTypes(), [&](Type type) {
               return staticElements(type) > kMostTermsOfOneTask * staticElements(typeOf(before));
             });
    };
    return !isElementwise(op) && llvm::any_of(madeFrom(op).set_bits(), folds);
  }

  /// Whether `op` updates a part of a value in memory with elements of the kernel's index space, in index order. If the
  /// elements are read from memory, and not computed in the kernel, the kernel must be free of folds.
  bool storesPart(size_t op) const {
    auto update = dyn_cast<ir::UpdateOp>(operationOf(op));
    if (!update || kind != Loop || !ir::isUncut(space) || !ir::isUncut(typeOf(op)))
      return false;
    Value stored = ir::storedBy(update);
    for (auto [number, operand] : llvm::enumerate(operandsOf(op)))
      if (number != update.getPartOperand() && makers[operand] != kOutside)
        return false;
    auto isMaker = [&](size_t before) { return operationOf(before) == stored.getDefiningOp(); };
    auto isSimple = [&](size_t before) {
      return isRematerialized.test(before) || isElementwise(before) || kindOf(before) == Scatter;
    };
    return ir::haveOneSpace(cast<RankedTensorType>(stored.getType()), space) &&
           (llvm::any_of(llvm::seq<size_t>(0, op), isMaker) || llvm::all_of(llvm::seq<size_t>(0, op), isSimple));
  }

  /// Whether `op` reads the result of an update in this kernel.
  bool readsUpdated(size_t op) const {
    llvm::BitVector readers = foundFor(op);
    readers.set(op);
    return readAny(readers, [&](size_t maker) { return kindOf(maker) == Scatter; });
  }

  bool canJoin(size_t op) const {
    if (kindOf(op) == Scatter)
      return storesPart(op);
    if (kindOf(op) == Product || kind == Scatter || kindOf(op) == Alone || kind == Alone || readsSpreadSum(op) ||
        readsProductElsewhere(op) || foldsWhatIsApart(op) || readsUpdated(op))
      return false;
    if (!isElementwise(op)) // a reduction, or a movement that needs a buffer
      return isSumBesideSums(op) ||
             (kind == Loop && !foldsRowsAgain(op) && !reducesLongFolds(op) && (isOnlyReader(op) || isSumOfLoop(op)));
    return (isOfSum.test(op) && isOfSumsAlone.test(op)) ||
           (kind != RowReduction && ir::haveOneSpace(typeOf(op), space) && computesOperand(op));
  }

  /// Adds an op that was accepted when it was the last op.
  void add(size_t op) {
    bool storesOnly = begun && kindOf(op) == Scatter;
    bool takesOver = !begun || (!isElementwise(op) && !storesOnly && (!isSumOfLoop(op) || isOnlyReader(op)));
    begun = true;
    if (!takesOver)
      return;
    kind = kindOf(op);
    space = typeOf(op);
  }

  const sluice_kernel_view &kernel;
  bool throughMoves;
  const llvm::BitVector &ofOperands;
  SmallVector<size_t> makers; // of each value: an op, or kOutside
  SmallVector<size_t> firstResult;
  SmallVector<Kind> kinds; // of each op
  SmallVector<ir::OpClass> classes;
  llvm::BitVector isResult, isRematerialized, isOfSum, isOfSumsAlone, isOfProduct;
  bool begun = false;
  Kind kind = Loop;
  RankedTensorType space;
};

} // namespace

bool lastOpJoins(const sluice_kernel_view &kernel, bool throughMoves, const llvm::BitVector &ofOperands) {
  return kernel.num_ops <= kMaxOpsInKernel && KernelGrowth(kernel, throughMoves, ofOperands).lastOpJoins();
}

} // namespace sluice::loops
