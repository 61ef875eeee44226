#include "backends/cpu/compiler/loops/ConstantData.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include <string>

namespace sluice::cpu {

using namespace mlir;

static std::string bytesOf(DenseElementsAttr elements) {
  std::string bytes;
  if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      bytes.push_back(value);
    return bytes;
  }
  assert(!elements.isSplat() && "splats need no memory");
  ArrayRef<char> raw = elements.getRawData();
  return std::string(raw.begin(), raw.end());
}

/// Names are digests, so that parts of several modules can share equal data by name.
static LLVM::GlobalOp findOrCreate(ModuleOp module, Location loc, StringRef bytes) {
  std::string name =
      "sluice_constant_" + llvm::toHex(llvm::BLAKE3::hash<16>(llvm::arrayRefFromStringRef(bytes)), /*LowerCase=*/true);
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Type type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  return b.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/true, LLVM::Linkage::Private, name, b.getStringAttr(bytes),
                                  /*alignment=*/64);
}

Value addressOfConstant(OpBuilder &b, Location loc, ModuleOp module, DenseElementsAttr elements) {
  return b.create<LLVM::AddressOfOp>(loc, findOrCreate(module, loc, bytesOf(elements)));
}

} // namespace sluice::cpu
