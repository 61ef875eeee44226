// The template of a compile half; `tools/new backend NAME` copies it.
//
// It supports no op. To do:
//   1. supports   Check the name and the attributes of sluice_kernel_op_at(&op, 0), and the dtypes and shapes of the
//                 values. Throw unless there is a kernel. The user must then place the op on another device, so the
//                 text gives the reason.
//   2. prepare    Describe the launch of the kernel. `function` names a function of the run half, and `parameters` are
//                 the bytes that it receives with every launch, such as sizes and strides.
//   3. lower      Only for generated code: a blob of device code, which the run half loads as a module.
// adapter/compile.h lists the optional methods. Without proposeLayout every tensor is row-major, and without canFuse
// every op is a launch of its own.
#include "sluice/backend/adapter.h"

#include <string>

using sluice::backend::Error;

namespace {

class Null {
public:
  static constexpr const char *name = "null";

  explicit Null(const sluice_target_options &options) {
    if (*options.settings)
      throw Error(SLUICE_USAGE, std::string("there is no setting '") + options.settings + "'");
  }

  void describe(sluice_target_info &info) const {
    info.device_type = "null";
    info.cpu = "none";
    info.vector_bits = 0;
  }

  void supports(const sluice_kernel_view &op) const {
    throw Error(SLUICE_UNSUPPORTED, std::string("null has memory but no kernels, so it cannot run ") +
                                        (op.num_ops > 0 ? sluice_kernel_op_at(&op, 0)->name : "this op"));
  }

  void prepare(const sluice_kernel_view &kernel, sluice_launch_info &) const { supports(kernel); }
};

} // namespace

extern "C" const sluice_backend *sluice_backend_query(void) {
  static constexpr sluice_backend backend = sluice::backend::backendTable(
      "null", "the template: memory and copies, no kernels", &sluice::backend::compileTable<Null>, nullptr);
  return &backend;
}
