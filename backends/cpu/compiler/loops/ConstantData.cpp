#include "backends/cpu/compiler/loops/ConstantData.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

static LLVM::GlobalOp findOrCreate(ModuleOp module, Location loc, StringRef bytes) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  StringAttr content = b.getStringAttr(bytes);
  unsigned number = 0;
  for (LLVM::GlobalOp global : module.getOps<LLVM::GlobalOp>()) {
    if (global.getValueOrNull() == content)
      return global;
    ++number;
  }
  std::string name;
  do
    name = "sluice_constant_" + std::to_string(number++);
  while (module.lookupSymbol(name));
  Type type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  return b.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, content,
                                  /*alignment=*/64);
}

Value addressOfConstant(OpBuilder &b, Location loc, ModuleOp module, DenseElementsAttr elements) {
  return b.create<LLVM::AddressOfOp>(loc, findOrCreate(module, loc, bytesOf(elements)));
}

} // namespace sluice::cpu
