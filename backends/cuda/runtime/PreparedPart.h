// A call of cublasLt on one device.
//
// The algorithm is chosen when the code is loaded, for the capacity's rows, and is the same in every call. Unless
// algorithms are timed, the order of each sum depends on shape, device and library alone: partial sums are in the
// workspace, and no two blocks add to one element.
//
// An algorithm is chosen if the library supports it for all row counts that are checked: each count up to 64, powers of
// two above, the capacity, and their neighbors. Checking thousands of counts would double the load time. Calls with an
// unsupported row count run the kernel's functions instead. For sums over the rows only the capacity is checked in
// advance.
#pragma once

#include "backends/cuda/runtime/AlgorithmTiming.h"
#include "backends/cuda/runtime/BlasLt.h"
#include "backends/cuda/runtime/ProductParts.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sluice::cuda {

class PreparedPart {
public:
  /// Null if the library has no algorithm for the product. The device's context must be current. `name` is the prefix
  /// of errors; algorithms are timed in `timing`, if at all.
  static std::unique_ptr<PreparedPart> prepare(const BlasLt &blas, BlasHandle handle, const ProductPart &part,
                                               const std::string &name, const TimingPlace &timing);
  ~PreparedPart();
  PreparedPart(const PreparedPart &) = delete;
  PreparedPart &operator=(const PreparedPart &) = delete;

  /// Whether the library runs calls with this many rows: the product is not empty, and the algorithm supports it.
  /// Cached.
  bool does(int64_t rows);
  /// Enqueues the product into the stream; `addresses` are the kernel's buffers. Throws if they lack the alignment that
  /// the algorithm was chosen for, or if the library rejects the call.
  void launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream);

private:
  /// Buffers of the matrices, of the bias or an operand's sums, and of the activation's input.
  struct Places {
    std::byte *first, *second, *result, *vector, *input;
  };

  PreparedPart(const BlasLt &blas, BlasHandle handle, const ProductPart &part, const std::string &name);

  void describe();
  bool isEmpty(int64_t rows) const;
  bool choose(const TimingPlace &timing);
  std::vector<BlasAlgorithm> candidates(size_t most);
  BlasAlgorithm fastestOf(const std::vector<BlasAlgorithm> &candidates, const TimingPlace &timing);
  bool take(const BlasAlgorithm &wanted);
  bool check(int64_t rows);
  void checkAligned(void *const *addresses, const void *workspace) const;
  /// Returns the library's status.
  int multiply(const Places &places, void *workspace, DriverStream stream);
  template <typename Value> void setDescription(DescriptionAttribute attribute, Value value);
  template <typename Value> void setLayout(BlasLayout layout, LayoutAttribute attribute, Value value);
  /// Sets the addresses that the epilogue uses: of the bias or an operand's sums, and of the GELU's input. Ignores an
  /// address if the product does not use it.
  void setBeside(const void *vector, const void *input);
  void setRows(int64_t rows);

  const BlasLt &blas;
  BlasHandle handle;
  ProductPart part;
  const ImageProduct &product; // the part's
  std::string name;
  BlasDescription description = nullptr;
  BlasLayout first = nullptr, second = nullptr, result = nullptr;
  BlasAlgorithm algorithm{};
  int64_t rowsSet = -1;
  std::unordered_map<int64_t, bool> checked; // row counts, and whether the algorithm supports them
};

} // namespace sluice::cuda
