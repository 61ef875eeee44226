// The compile half: records a kernel's ops from the C view.
#include "tests/backends/scroll/Scroll.h"

#include <cstring>
#include <deque>
#include <sstream>
#include <string>

namespace sluice::scroll {

using backend::Error;

static bool isKnown(const std::string &op) { return op == "sluice.add" || op == "sluice.mul" || op == "sluice.relu"; }

/// Why a kernel is not supported; empty if it is.
static std::string reasonAgainst(const sluice_kernel_view &view) {
  for (size_t i = 0; i < view.num_ops; ++i)
    if (const char *name = sluice_kernel_op_at(&view, i)->name; !isKnown(name))
      return std::string("scroll adds, multiplies and rectifies, but has no ") + name;
  for (size_t i = 0; i < view.num_values; ++i) {
    const sluice_type_view &type = *sluice_kernel_value_at(&view, i);
    for (size_t dim = 1; dim < type.rank; ++dim)
      if (type.shape[dim] < 0)
        return "scroll has the rows outermost";
    if (type.dtype != SLUICE_DTYPE_f32 || type.num_layout > 0)
      return "scroll has row-major f32 only";
  }
  return "";
}

/// Elements that a value always has, and those of each row; all values of a kernel are alike.
static std::string countElements(const sluice_type_view &type) {
  bool hasRows = type.rank > 0 && type.shape[0] < 0;
  int64_t elements = 1;
  for (size_t dim = hasRows; dim < type.rank; ++dim)
    elements *= type.shape[dim];
  return (hasRows ? "0 " : "") + std::to_string(elements) + (hasRows ? "" : " 0");
}

namespace {

class Session {
public:
  static constexpr const char *name = "scroll";
  static constexpr bool wantsBytecode = true;

  explicit Session(const sluice_target_options &options) {
    if (*options.settings)
      throw Error(SLUICE_USAGE, std::string("scroll has no setting '").append(options.settings).append("'"));
  }

  void describe(sluice_target_info &info) const { info.device_type = info.cpu = "scroll"; }

  void supports(const sluice_kernel_view &view) const {
    if (std::string reason = reasonAgainst(view); !reason.empty())
      throw Error(SLUICE_UNSUPPORTED, reason);
  }

  bool canFuse(const sluice_kernel_view &view) const { return reasonAgainst(view).empty(); }

  void prepare(const sluice_kernel_view &view, sluice_launch_info &launch) {
    supports(view);
    if (!view.bytecode || view.bytecode_size == 0)
      throw Error(SLUICE_INTERNAL, "scroll asked for bytecode and got none");
    std::ostringstream text;
    text << "kernel " << view.name << " " << view.num_operands << " elements "
         << countElements(*sluice_kernel_value_at(&view, view.num_operands)) << " results";
    for (size_t i = 0; i < view.num_results; ++i)
      text << " " << view.results[i];
    text << " bytecode " << view.bytecode_size << "\n";
    for (size_t i = 0; i < view.num_ops; ++i) {
      const sluice_op_view &op = *sluice_kernel_op_at(&view, i);
      text << op.name + std::strlen("sluice.");
      for (size_t operand = 0; operand < op.num_operands; ++operand)
        text << " " << op.operands[operand];
      text << "\n";
    }
    text << "end\n";
    blob_ += text.str() + std::string(view.bytecode, view.bytecode_size) + "\n";
    launch.function = names_.emplace_back(view.name).c_str();
    launch.cost.lanes = 1;
  }

  void lower(sluice_blob &blob) const {
    if (names_.empty())
      return;
    blob.kind = SLUICE_BLOB_DEVICE;
    blob.data = blob_.data();
    blob.bytes = blob_.size();
  }

private:
  std::deque<std::string> names_; // of the kernels prepared so far
  std::string blob_ = "scroll\n";
};

} // namespace

const sluice_backend_compile &compileHalf() { return backend::compileTable<Session>; }

} // namespace sluice::scroll
