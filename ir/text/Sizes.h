// Attributes of ops with sizes (`custom<Sizes>(attr-dict)`): a dynamic size is `?`, as in {shape = array<i64: ?, 10>}.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"

namespace sluice::ir {

/// `<i64: ?, 10>`, after `array`.
mlir::ParseResult parseSizeList(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &sizes);

mlir::ParseResult parseSizes(mlir::OpAsmParser &parser, mlir::NamedAttrList &attributes);
void printSizes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DictionaryAttr attributes);

} // namespace sluice::ir
