// Registers the dialect: its ops, attributes and how encodings print.
#include "ir/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/AttrInterfaces.cpp.inc"
#include "ir/Dialect.cpp.inc"
#include "ir/Enums.cpp.inc"
#include "ir/Interfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.cpp.inc"

namespace {

/// Prints encodings through an alias named after the device: `tensor<64x10xf32, #cpu>`.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const final {
    auto at = dyn_cast<sluice::ir::AtAttr>(attribute);
    if (!at)
      return AliasResult::NoAlias;
    os << (at.getDevice() ? at.getDevice().getValue() : "at");
    if (at.getLayout())
      os << "_layout";
    return AliasResult::FinalAlias;
  }
};

} // namespace

void sluice::ir::SluiceDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Ops.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attributes.cpp.inc"
      >();
  addInterfaces<Aliases>();
}
