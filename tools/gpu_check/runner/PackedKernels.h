// The kernels of a pack on a device: run with every number of rows that the pack has, between guards, and compared with
// what the interpreter made of the same operands; or bare, for a tool that watches what they read and write.
#pragma once

#include "backends/cuda/runtime/Driver.h"
#include "backends/cuda/runtime/ModuleImage.h"
#include "tests/conformance/RunHalf.h"
#include "tools/gpu_check/Pack.h"

namespace sluice::gpu_check {

struct KernelResult {
  double largestShare = 0; ///< of the error that is allowed
  int64_t compared = 0;    ///< elements
};

class PackedKernels {
public:
  /// Loads the code of the pack `<folder>/<model>` on the first device. Kernels that are bare find results and workspace as the
  /// driver gives them, where the run half would have written zeros, and nothing is compared.
  PackedKernels(conformance::RunHalf &half, const std::string &folder, const std::string &model, bool bare);
  ~PackedKernels();
  PackedKernels(const PackedKernels &) = delete;

  const Pack &pack() const { return pack_; }
  /// Whether a library may do its product.
  bool isProduct(size_t number) const;

  /// Throws conformance::Failed where a kernel does something else than it must, and what the run half says.
  KernelResult check(size_t number);

private:
  /// A buffer on the device.
  struct Placed {
    unsigned char *block, *address;
    size_t bytes;
    conformance::Bytes contents; ///< that an operand has
  };

  conformance::Bytes drawOperand(size_t kernel, size_t operand, int64_t rows) const;
  Placed place(size_t bytes);
  std::vector<Placed> placeOperands(size_t number, int64_t rows);
  void poison(const Placed &placed);
  void runBare(size_t number, const PackedCall &call);
  std::vector<conformance::Bytes> runCall(size_t number, const PackedCall &call);
  void launch(const PackedKernel &kernel, int64_t rows, const std::vector<Placed> &placed);
  conformance::Bytes read(const unsigned char *from, size_t bytes);
  void checkGuards(const Placed &placed, const std::string &what);
  void compare(const PackedBuffer &buffer, const Expected &expected, int64_t rows, const conformance::Bytes &found,
               const std::string &what, KernelResult &result) const;

  conformance::RunHalf &half;
  Pack pack_;
  std::string figures;     // the pack's binary file
  cuda::ModuleImage image; // of these
  bool bare;
  size_t guardBytes;
  sluice_module *module = nullptr;
  sluice_queue *queue = nullptr;
  const cuda::Driver &driver = cuda::Driver::get();
  cuda::DriverStream stream = nullptr; // for what the run half does not do
};

} // namespace sluice::gpu_check
