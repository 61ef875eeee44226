// Registers the dialect: its ops, attributes and how encodings print.
#include "ir/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/AttrInterfaces.cpp.inc"
#include "ir/Dialect.cpp.inc"
#include "ir/Enums.cpp.inc"
#include "ir/Interfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Types.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.cpp.inc"

namespace {

/// Prints encodings through an alias of the device and the layout: `tensor<64x10xf32, #cpu>`. Layouts are spelled like
/// oneDNN memory formats: one letter per dimension of the value, in memory order. A tiled dimension is a capital
/// letter; the offset in the tile is the tile size and a small letter. So NHWC is acdb.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const final {
    auto at = dyn_cast<sluice::ir::AtAttr>(attribute);
    if (!at || !(at.getDevice() || at.getLayout()))
      return AliasResult::NoAlias;
    if (at.getDevice())
      os << at.getDevice().getValue();
    if (at.getDevice() && at.getLayout())
      os << "_";
    if (at.getLayout())
      for (AffineExpr dim : at.getLayout().getValue().getResults())
        printDim(dim, os);
    return AliasResult::FinalAlias;
  }

  static void printDim(AffineExpr dim, raw_ostream &os) {
    if (auto whole = dyn_cast<AffineDimExpr>(dim)) {
      os << char('a' + whole.getPosition());
      return;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(dim);
    if (!binary || !isa<AffineDimExpr>(binary.getLHS())) // not a layout; reported by verifiers
      return;
    unsigned position = cast<AffineDimExpr>(binary.getLHS()).getPosition();
    if (binary.getKind() == AffineExprKind::FloorDiv)
      os << char('A' + position);
    else if (auto tile = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      os << tile.getValue() << char('a' + position);
  }
};

} // namespace

void sluice::ir::SluiceDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Ops.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Types.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attributes.cpp.inc"
      >();
  addInterfaces<Aliases>();
}
