// Checks shared by shape inference. Attributes may come from untrusted files: any content must produce a message, never
// a crash or an overflow.
#pragma once

#include "ir/Types.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::ir {

using MaybeLocation = std::optional<mlir::Location>;

/// No value has more elements than this (`?` counts as one).
inline constexpr int64_t kMostElements = int64_t(1) << 40;

inline mlir::RankedTensorType withoutEncoding(mlir::Type type) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  return mlir::RankedTensorType::get(tensor.getShape(), tensor.getElementType());
}
inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return tensorOf(value).getShape(); }
inline mlir::Type elementOf(mlir::Value value) { return tensorOf(value).getElementType(); }

/// A dimension as it is printed: "?" or its size.
std::string printDim(int64_t size);

/// Fails with the concatenated parts as message.
template <typename... Parts> mlir::LogicalResult inferenceFailure(MaybeLocation loc, const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return inferenceError(loc, text);
}

/// Whether the static sizes, which are positive, have a product of at most `kMostElements`.
bool isSmallEnough(llvm::ArrayRef<int64_t> shape);

/// Appends a result type without encoding. Fails if the dialect has no such type: a size below 1, two `?`, or too many
/// elements.
mlir::LogicalResult addResult(MaybeLocation loc, llvm::ArrayRef<int64_t> shape, mlir::Type element,
                              llvm::SmallVectorImpl<mlir::Type> &types);

/// Axes are distinct dimensions of `shape`.
mlir::LogicalResult checkAxes(MaybeLocation loc, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<int64_t> shape);

/// An attribute has `count` numbers, each from `least` to 2^31 - 1.
mlir::LogicalResult checkNumbers(MaybeLocation loc, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers, size_t count,
                                 int64_t least);

mlir::LogicalResult checkRank(MaybeLocation loc, llvm::StringRef name, mlir::Value value, int64_t rank);

/// Operands are floats of one element type.
mlir::LogicalResult checkFloats(MaybeLocation loc, mlir::ValueRange operands);

/// The key of random numbers: [2] i32.
mlir::LogicalResult checkKey(MaybeLocation loc, mlir::Value key);

/// A number within [0, 1].
mlir::LogicalResult checkProbability(MaybeLocation loc, const llvm::APFloat &p);

/// `element` is one of the dialect's element types.
mlir::LogicalResult checkElement(MaybeLocation loc, mlir::Type element);

/// Elements along `axes`, with `?` counted as one, and whether `?` is among them.
struct ElementCount {
  int64_t known = 1;
  bool rows = false;
};
ElementCount countElements(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> axes);
ElementCount countElements(llvm::ArrayRef<int64_t> shape);

/// Two operations per element of each list of sizes: constant, or per row if one of the sizes is `?`.
std::pair<int64_t, int64_t> countFlops(std::initializer_list<llvm::ArrayRef<int64_t>> shapes);

} // namespace sluice::ir
