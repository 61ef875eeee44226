#include "backends/cpu/compiler/llvm/MaskedLoads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

namespace sluice::cpu {

/// Lanes that are false here are false in the mask; null if nothing is known about the mask.
static llvm::Constant *knownLanes(llvm::Value *mask) {
  using namespace llvm::PatternMatch;
  llvm::Constant *known = nullptr;
  match(mask, m_CombineOr(m_ImmConstant(known), m_c_And(m_Value(), m_ImmConstant(known))));
  return known;
}

static void loadOnlyWantedRegisters(llvm::IntrinsicInst *load, unsigned vectorBits) {
  auto *type = llvm::cast<llvm::FixedVectorType>(load->getType());
  unsigned lanes = type->getNumElements(), lanesAtOnce = vectorBits / type->getScalarSizeInBits();
  auto registers = llvm::seq(0u, lanes / lanesAtOnce);
  llvm::Value *mask = load->getArgOperand(2), *otherwise = load->getArgOperand(3);
  llvm::Constant *known = knownLanes(mask);
  auto isWanted = [&](unsigned number) {
    return llvm::any_of(llvm::seq(number * lanesAtOnce, (number + 1) * lanesAtOnce),
                        [&](unsigned lane) { return !known->getAggregateElement(lane)->isNullValue(); });
  };
  if (!known || lanes % lanesAtOnce != 0 || llvm::all_of(registers, isWanted))
    return;
  llvm::IRBuilder<> b(load);
  llvm::Align alignment(llvm::cast<llvm::ConstantInt>(load->getArgOperand(1))->getZExtValue());
  llvm::SmallVector<llvm::Value *> parts;
  for (unsigned number : registers) {
    unsigned first = number * lanesAtOnce;
    llvm::SmallVector<int> own = llvm::createSequentialMask(first, lanesAtOnce, 0);
    llvm::Value *part = b.CreateShuffleVector(otherwise, own);
    if (isWanted(number)) {
      llvm::Value *from = b.CreateConstGEP1_32(type->getElementType(), load->getArgOperand(0), first);
      part = b.CreateMaskedLoad(part->getType(), from, alignment, b.CreateShuffleVector(mask, own), part);
    }
    parts.push_back(part);
  }
  load->replaceAllUsesWith(llvm::concatenateVectors(b, parts));
  load->eraseFromParent();
}

void loadOnlyWantedRegisters(llvm::Module &module, unsigned vectorBits) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function)))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
          call && call->getIntrinsicID() == llvm::Intrinsic::masked_load)
        loadOnlyWantedRegisters(call, vectorBits);
}

} // namespace sluice::cpu
