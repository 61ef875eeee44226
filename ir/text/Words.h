// Keywords of enums, in the text of ops (`custom<Word>($kind)`) and for backends.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Parses the keyword of an enum value. `find` returns the value of a keyword.
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

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, PrecisionAttr &precision) {
  return parseWordAs(parser, precision, &symbolizePrecision);
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, CollectiveKindAttr &kind) {
  return parseWordAs(parser, kind, &symbolizeCollectiveKind);
}

inline mlir::ParseResult parseWord(mlir::OpAsmParser &parser, CollectiveReductionAttr &reduction) {
  return parseWordAs(parser, reduction, &symbolizeCollectiveReduction);
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

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, PrecisionAttr precision) {
  printer << stringifyPrecision(precision.getValue());
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, CollectiveKindAttr kind) {
  printer << stringifyCollectiveKind(kind.getValue());
}

inline void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, CollectiveReductionAttr reduction) {
  printer << stringifyCollectiveReduction(reduction.getValue());
}

/// The keyword of an enum attribute, or the text of a string attribute; none for other attributes.
inline std::optional<llvm::StringRef> wordOf(mlir::Attribute attribute) {
  if (auto name = llvm::dyn_cast<mlir::StringAttr>(attribute))
    return name.getValue();
  if (auto predicate = llvm::dyn_cast<PredicateAttr>(attribute))
    return stringifyPredicate(predicate.getValue());
  if (auto reason = llvm::dyn_cast<CopyReasonAttr>(attribute))
    return stringifyCopyReason(reason.getValue());
  if (auto time = llvm::dyn_cast<CopyTimeAttr>(attribute))
    return stringifyCopyTime(time.getValue());
  return std::nullopt;
}

} // namespace sluice::ir
