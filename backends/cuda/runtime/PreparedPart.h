// A call of cublasLt, on one device: its algorithm is chosen when the code is loaded, for the capacity's rows, and is the
// same in every call, so that the order of each sum hangs on shape, device and library alone, unless algorithms are timed:
// what is added in parts lies in the workspace, and nothing is added where two blocks meet.
//
// An algorithm is chosen if the library says that it does all numbers of rows that a call may have: each up to 64, above
// that the powers of two, the capacity, and those beside these. To ask for each of some thousands would take as long as all
// else of loading. Should it refuse another number, calls with so many rows are left to the kernel's functions, as are those that
// it refuses of sums over the rows.
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
  /// Null if the library has no algorithm for it. The device's context must be current. `name` is what errors begin with;
  /// algorithms are timed at the place, if they are.
  static std::unique_ptr<PreparedPart> prepare(const BlasLt &blas, BlasHandle handle, const ProductPart &part,
                                               const std::string &name, const TimingPlace &timing);
  ~PreparedPart();
  PreparedPart(const PreparedPart &) = delete;
  PreparedPart &operator=(const PreparedPart &) = delete;

  /// Whether there is anything to multiply in a call of so many rows, and the algorithm does it. The library is asked once.
  bool does(int64_t rows);
  /// Puts it into the stream; `addresses` are the kernel's buffers. Throws if they are not aligned as was promised when the
  /// algorithm was chosen, or if the library refuses the call.
  void launch(int64_t rows, void *const *addresses, void *workspace, DriverStream stream);

private:
  /// Of the matrices, the bias or the sums of an operand, and what the activation reads.
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
  /// Gives the library's status.
  int multiply(const Places &places, void *workspace, DriverStream stream);
  template <typename Value> void setDescription(DescriptionAttribute attribute, Value value);
  template <typename Value> void setLayout(BlasLayout layout, LayoutAttribute attribute, Value value);
  /// Of what the epilogue has beside the matrices; null where it has none.
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
  std::unordered_map<int64_t, bool> checked; // numbers of rows, and whether the algorithm does them
};

} // namespace sluice::cuda
