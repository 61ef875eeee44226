// Runs the kernels of a pack on a device with every packed number of rows, between guards, and compares the results
// with the interpreter's. Or runs them bare, for a tool that tracks their accesses.
#pragma once

#include "backends/cuda/runtime/Driver.h"
#include "backends/cuda/runtime/ModuleImage.h"
#include "tests/conformance/RunHalf.h"
#include "tools/gpu_check/Pack.h"

namespace sluice::gpu_check {

struct KernelResult {
  double largestShare = 0; ///< of the allowed error
  int64_t compared = 0;    ///< elements
};

class PackedKernels {
public:
  /// Loads the code of the pack `<folder>/<model>` on the first device. The results and workspaces of bare kernels are
  /// as the driver returns them, without the zeros that the run half would write, and nothing is compared.
  PackedKernels(conformance::RunHalf &half, const std::string &folder, const std::string &model, bool bare);
  ~PackedKernels();
  PackedKernels(const PackedKernels &) = delete;

  const Pack &pack() const { return pack_; }
  /// Whether a library may compute the kernel's product.
  bool isProduct(size_t number) const;

  /// Throws conformance::Failed with the error of the run half, or if a kernel's results are wrong.
  KernelResult check(size_t number);

private:
  /// A buffer on the device.
  struct Placed {
    unsigned char *block, *address;
    size_t bytes;
    conformance::Bytes contents; ///< of an operand
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
  std::string figures;     // contents of the pack's binary file
  cuda::ModuleImage image; // from the binary file
  bool bare;
  size_t guardBytes;
  sluice_module *module = nullptr;
  sluice_queue *queue = nullptr;
  const cuda::Driver &driver = cuda::Driver::get();
  cuda::DriverStream stream = nullptr; // for work outside the run half
};

} // namespace sluice::gpu_check
