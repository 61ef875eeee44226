// Words of enums in the text of ops: `custom<Word>($kind)`.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// A word of an enum, as ops say it.
template <typename EnumAttr, typename Enum>
mlir::ParseResult parseWordAs(mlir::OpAsmParser &parser, EnumAttr &attribute,
                              std::optional<Enum> (*find)(llvm::StringRef)) {
  llvm::StringRef word;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return mlir::failure();
  std::optional<Enum> value = find(word);
  if (!value)
    return parser.emitError(loc) << "there is no '" << word << "' here";
  attribute = EnumAttr::get(parser.getContext(), *value);
  return mlir::success();
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, StateKindAttr &kind) {
  return parseWordAs(parser, kind, &symbolizeStateKind);
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, CopyReasonAttr &reason) {
  return parseWordAs(parser, reason, &symbolizeCopyReason);
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, CopyPolicyAttr &policy) {
  return parseWordAs(parser, policy, &symbolizeCopyPolicy);
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, CopyTimeAttr &time) {
  return parseWordAs(parser, time, &symbolizeCopyTime);
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, StateKindAttr kind) {
  printer << stringifyStateKind(kind.getValue());
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, CopyReasonAttr reason) {
  printer << stringifyCopyReason(reason.getValue());
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, CopyPolicyAttr policy) {
  printer << stringifyCopyPolicy(policy.getValue());
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, CopyTimeAttr time) {
  printer << stringifyCopyTime(time.getValue());
}

} // namespace sluice::ir
