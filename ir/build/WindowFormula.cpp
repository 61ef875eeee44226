#include "ir/build/WindowFormula.h"

using namespace mlir;

namespace sluice::ir {

AffineExpr placeTap(const Window &window, int64_t count, AffineExpr position, AffineExpr tap, Guard &guard) {
  AffineExpr element = position * window.stride + tap * window.dilation - window.before;
  guard.require(element, -window.before);
  guard.require(window.size - 1 - element, window.size - 1 - window.element(count - 1, window.kernel - 1));
  return element;
}

int64_t countCandidates(const Window &window) {
  return window.dilation > 1 ? window.kernel : (window.kernel + window.stride - 1) / window.stride;
}

// With p = element + before: if undilated, candidate c is window p / stride - c, with the element at tap
// p mod stride + c * stride. If dilated, candidate c is the window with the element at tap c, which exists if
// p - c * dilation is a multiple of the stride.
Candidate placeCandidate(const Window &window, int64_t count, AffineExpr element, AffineExpr candidate, Guard &guard) {
  AffineExpr padded = element + window.before;
  int64_t last = window.size - 1 + window.before;
  Candidate result;
  if (window.dilation > 1) {
    AffineExpr start = padded - candidate * window.dilation;
    result = {start.floorDiv(window.stride), candidate};
    guard.require(start, -(window.kernel - 1) * window.dilation);
    guard.require(-(start % window.stride), 1 - window.stride);
  } else {
    int64_t others = countCandidates(window) - 1;
    result = {padded.floorDiv(window.stride) - candidate, padded % window.stride + candidate * window.stride};
    guard.require(result.position, window.before / window.stride - others);
    guard.require(window.kernel - 1 - result.tap,
                  window.kernel - 1 - std::min(last, window.stride - 1) - others * window.stride);
  }
  guard.require(count - 1 - result.position, count - 1 - last / window.stride);
  return result;
}

} // namespace sluice::ir
