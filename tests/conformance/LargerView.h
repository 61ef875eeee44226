// A view from a later compiler: every struct has unknown members.
#pragma once

#include "sluice/backend/compile.h"
#include "tests/conformance/Larger.h"

#include <deque>
#include <vector>

namespace sluice::conformance {

class LargerView {
public:
  /// Data that `view` points to must outlive this object.
  explicit LargerView(const sluice_kernel_view &view);
  LargerView(const LargerView &) = delete;

  const sluice_kernel_view *get() const { return &kernel.known; }

private:
  void addOp(const sluice_op_view &op);

  Larger<sluice_kernel_view> kernel;
  std::vector<Larger<sluice_type_view>> values;
  std::vector<Larger<sluice_op_view>> ops;
  std::deque<std::vector<Larger<sluice_attribute_view>>> attributes; // of each op
};

} // namespace sluice::conformance
