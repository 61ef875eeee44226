// The kernels of a pack on a device: run with every number of rows that the pack has, between guards, and compared with
// what the interpreter made of the same operands.
#pragma once

#include "tests/conformance/RunHalf.h"
#include "tools/gpu_check/Pack.h"

namespace sluice::gpu_check {

struct KernelResult {
  double largestShare = 0; ///< of the error that is allowed
  int64_t compared = 0;    ///< elements
};

class PackedKernels {
public:
  /// Loads the code of the pack `<folder>/<model>` on the first device.
  PackedKernels(conformance::RunHalf &half, const std::string &folder, const std::string &model, bool guarded);
  ~PackedKernels();
  PackedKernels(const PackedKernels &) = delete;

  const Pack &pack() const { return pack_; }

  /// Throws conformance::Failed where a kernel does something else than it must, and what the run half says.
  KernelResult check(size_t number);

private:
  /// A buffer on the device, and what was put into it.
  struct Placed {
    unsigned char *block, *address;
    conformance::Bytes contents;
  };

  conformance::Bytes drawOperand(size_t kernel, size_t operand, int64_t rows) const;
  Placed place(conformance::Bytes contents);
  std::vector<conformance::Bytes> runCall(size_t number, const PackedCall &call);
  void launch(const PackedKernel &kernel, int64_t rows, const std::vector<Placed> &placed);
  conformance::Bytes take(const Placed &placed, const std::string &what);
  void compare(const PackedBuffer &buffer, const Expected &expected, int64_t rows, const conformance::Bytes &found,
               const std::string &what, KernelResult &result) const;

  conformance::RunHalf &half;
  Pack pack_;
  std::string figures; // the pack's binary file
  size_t guardBytes;
  sluice_module *module = nullptr;
  sluice_queue *queue = nullptr;
};

} // namespace sluice::gpu_check
