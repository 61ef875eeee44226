// A double of cublasLt, beside that of the driver, into whose streams it puts its work: products by plain loops, in double
// precision.
//
// What it assumes of the library, and enforces with an error, is in CONTRACTS.md. The workspace is overwritten. An alignment
// that the heuristic is not told is 256 bytes; that of a bias is its pointer's when the algorithm is made. Where the mask of
// reduction schemes lets sums lie in the type of the result, the heuristic's first does so, which rounds them several times.
//
// CUDA_EMU_BLAS=none makes heuristics that find nothing, CUDA_EMU_BLAS=wrong products that are wrong, so that tests see who
// makes them, and CUDA_EMU_BLAS=uneven those that are for slow kernels; CUDA_EMU_BLAS=no-input and CUDA_EMU_BLAS=wrong-input do
// so where the epilogue reads a matrix, CUDA_EMU_BLAS=no-sums and CUDA_EMU_BLAS=wrong-sums where it leaves an operand's sums,
// which alone are wrong then. CUDA_EMU_BLAS=slow-first and CUDA_EMU_BLAS=slow-last make the first or the last of the
// heuristic's algorithms take longer. With CUDA_EMU_BLAS=unfit it does not begin, as a library for another driver.
#include "tests/cuda_emu/BlasArithmetic.h"
#include "tests/cuda_emu/DriverState.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace sluice;
using namespace sluice::blas_emu;
using namespace sluice::cuda_driver;

namespace {

enum BlasStatus { Done = 0, WithoutContext = 1, InvalidArgument = 7, NotSupported = 15 };

int products = 0; // that were put into streams

bool behaves(const char *how) {
  const char *wanted = std::getenv("CUDA_EMU_BLAS");
  return wanted && std::strcmp(wanted, how) == 0;
}

struct Description {
  int compute, scale;
  int transposed[2] = {}; // of A and B
  uint32_t epilogue = 1;
  std::byte *vector = nullptr; // the bias, or the sums of an operand
  const std::byte *input = nullptr;
  int64_t leadingOfInput = 0, batchStrideOfInput = 0;

  bool hasRelu() const { return epilogue & 2; }
  bool hasBias() const { return epilogue & 4; }
  bool hasGelu() const { return epilogue & 32; }
  bool hasGeluGradient() const { return epilogue == kGeluGradient; }
  bool hasSums() const { return epilogue == kSumsOfA || epilogue == kSumsOfB; }
  bool hasVector() const { return hasBias() || hasSums(); }

  static constexpr uint32_t kGeluGradient = 64 | 128, kSumsOfA = 256, kSumsOfB = 512;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t batchStride = 0;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = 7, alignment[4] = {256, 256, 256, 256};
};

struct Algorithm {
  uint64_t mark;
  uint32_t type, epilogue, transposed[2], alignment[3], alignmentBeside; // of the bias, or of what the epilogue reads
  uint64_t workspace;
  uint64_t parts; // in which terms are added to the result in its memory, and rounded each time
  uint64_t rest;
};

struct Choice {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

constexpr uint64_t kMark = 0x5115ce;
constexpr uint64_t kWorkspace = 1 << 16;
constexpr uint32_t kReductionsInTypeOfResult = 1 | 4; // in its memory or in the workspace (cublasLtReductionScheme_t)

double at(const std::byte *matrix, const Layout &layout, uint64_t row, uint64_t column) {
  return numberAt(matrix + (row + column * uint64_t(layout.leading)) * bytesOf(layout.type), layout.type);
}

/// Sizes once operands are transposed.
struct Sizes {
  uint64_t m, n, k;
};

/// Whether the matrix that the epilogue reads lies as it has to.
bool fitsBeside(const Description &description, const Layout &d) {
  constexpr int64_t kMultiple = 8;
  return description.leadingOfInput % kMultiple == 0 && description.leadingOfInput >= int64_t(d.rows) &&
         description.batchStrideOfInput % kMultiple == 0;
}

bool fit(const Description &description, const Layout &a, const Layout &b, const Layout &d, Sizes &sizes) {
  for (const Layout *layout : {&a, &b, &d})
    if (layout->rows == 0 || layout->columns == 0 || layout->leading < int64_t(layout->rows) || layout->batch < 1 ||
        layout->batch != d.batch || layout->type != d.type)
      return false;
  sizes = {d.rows, d.columns, description.transposed[0] ? a.rows : a.columns};
  uint64_t m = description.transposed[0] ? a.columns : a.rows, k = description.transposed[1] ? b.columns : b.rows,
           n = description.transposed[1] ? b.rows : b.columns;
  bool computes = d.type == F64   ? description.compute == 70
                  : d.type == F32 ? description.compute == 68 || description.compute == 77
                                  : (d.type == F16 || d.type == BF16) && description.compute == 68;
  bool follows = description.epilogue == 1 || (d.type != F64 && d.batch == 1 && description.hasSums()) ||
                 (d.type != F64 && description.hasGeluGradient() && fitsBeside(description, d)) ||
                 (d.type != F64 && !(description.epilogue & ~38u) && !(description.hasRelu() && description.hasGelu()));
  return m == sizes.m && n == sizes.n && k == sizes.k && computes && follows &&
         description.scale == (d.type == F64 ? F64 : F32);
}

/// The alignment of a pointer, up to the largest that matters.
uint32_t alignmentOf(const void *pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  return uint32_t(std::min<uint64_t>(256, address & -address));
}

uint32_t alignmentBeside(const Description &description) {
  return description.hasVector()         ? alignmentOf(description.vector)
         : description.hasGeluGradient() ? alignmentOf(description.input)
                                         : 1;
}

Algorithm algorithmFor(const Description &description, const Layout &d) {
  return {kMark,
          uint32_t(d.type),
          description.epilogue,
          {uint32_t(description.transposed[0]), uint32_t(description.transposed[1])},
          {},
          alignmentBeside(description),
          0,
          1,
          0};
}

bool suits(const Algorithm &algorithm, const Description &description, const Layout &d) {
  Algorithm wanted = algorithmFor(description, d);
  return algorithm.mark == kMark && algorithm.type == wanted.type && algorithm.epilogue == wanted.epilogue &&
         algorithm.alignmentBeside <= wanted.alignmentBeside &&
         std::memcmp(algorithm.transposed, wanted.transposed, sizeof wanted.transposed) == 0;
}

/// Bytes from the first element of all matrices to behind the last.
size_t extent(const Layout &layout) {
  uint64_t last = layout.rows - 1 + (layout.columns - 1) * uint64_t(layout.leading) +
                  uint64_t(layout.batch - 1) * uint64_t(layout.batchStride);
  return (last + 1) * bytesOf(layout.type);
}

/// Of the bias, or of an operand's sums.
size_t bytesOfVector(const Description &description, const Sizes &sizes, const Layout &d) {
  return (description.epilogue == Description::kSumsOfB ? sizes.n : sizes.m) * bytesOf(d.type);
}

/// Whether many neighbours are no multiple of the 16 bytes that fast kernels take at once.
bool isUneven(const Layout &layout) { return layout.rows > 8 && layout.rows * bytesOf(layout.type) % 16 != 0; }

void multiply(const Description &description, const Sizes &sizes, uint64_t parts, double beta, const std::byte *a,
              const Layout &layoutA, const std::byte *b, const Layout &layoutB, std::byte *d, const Layout &layoutD,
              const std::byte *input) {
  uint64_t termsOfPart = (sizes.k + parts - 1) / parts;
  bool isWrong = behaves("wrong") || (behaves("wrong-input") && description.hasGeluGradient()) ||
                 (behaves("uneven") && (isUneven(layoutA) || isUneven(layoutB) || isUneven(layoutD)));
  for (uint64_t column = 0; column < sizes.n; ++column)
    for (uint64_t row = 0; row < sizes.m; ++row) {
      std::byte *place = d + (row + column * uint64_t(layoutD.leading)) * bytesOf(layoutD.type);
      double sum = isWrong + (beta == 0 ? 0 : numberAt(place, layoutD.type));
      for (uint64_t k = 0; k < sizes.k; ++k) {
        sum += (description.transposed[0] ? at(a, layoutA, k, row) : at(a, layoutA, row, k)) *
               (description.transposed[1] ? at(b, layoutB, column, k) : at(b, layoutB, k, column));
        if (parts > 1 && (k + 1) % termsOfPart == 0)
          sum = rounded(sum, layoutD.type);
      }
      if (description.hasBias())
        sum = float(sum) + numberAt(description.vector + row * bytesOf(layoutD.type), layoutD.type);
      if (description.hasRelu() && sum < 0)
        sum = 0;
      if (description.hasGelu())
        sum = gelu(float(sum));
      if (description.hasGeluGradient())
        sum = float(sum) *
              geluGradient(numberAt(
                  input + (row + column * uint64_t(description.leadingOfInput)) * bytesOf(layoutD.type), layoutD.type));
      putNumber(place, layoutD.type, sum);
    }
}

/// Leaves the sums of an operand over k, of each row of A or each column of B.
void sumOperand(const Description &description, const Sizes &sizes, const std::byte *a, const Layout &layoutA,
                const std::byte *b, const Layout &layoutB) {
  bool ofB = description.epilogue == Description::kSumsOfB;
  const std::byte *x = ofB ? b : a;
  const Layout &layout = ofB ? layoutB : layoutA;
  bool isColumn = ofB != (description.transposed[ofB] != 0); // what is summed lies in one
  for (uint64_t i = 0; i < (ofB ? sizes.n : sizes.m); ++i) {
    double sum = behaves("wrong-sums");
    for (uint64_t k = 0; k < sizes.k; ++k)
      sum += isColumn ? at(x, layout, k, i) : at(x, layout, i, k);
    putNumber(description.vector + i * bytesOf(layout.type), layout.type, sum);
  }
}

template <typename T> int put(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof to)
    return InvalidArgument;
  std::memcpy(&to, value, bytes);
  return Done;
}

} // namespace

/// The products of the process so far, for tests.
EXPORTED int cuda_emu_products() { return products; }

EXPORTED int cublasLtCreate(Device ***handle) {
  if (!current || behaves("unfit"))
    return WithoutContext;
  *handle = new Device *(current);
  return Done;
}

EXPORTED int cublasLtDestroy(Device **handle) {
  delete handle;
  return Done;
}

EXPORTED const char *cublasLtGetStatusName(int status) {
  switch (status) {
  case WithoutContext:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case InvalidArgument:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case NotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return status == Done ? "CUBLAS_STATUS_SUCCESS" : "unrecognized status";
  }
}

EXPORTED size_t cublasLtGetVersion() { return 130100; }

EXPORTED int cublasLtMatmulDescCreate(Description **description, int compute, int scale) {
  *description = new Description{compute, scale};
  return Done;
}

EXPORTED int cublasLtMatmulDescDestroy(Description *description) {
  delete description;
  return Done;
}

EXPORTED int cublasLtMatmulDescSetAttribute(Description *description, int attribute, const void *value, size_t bytes) {
  switch (attribute) {
  case 3:
  case 4:
    return put(description->transposed[attribute - 3], value, bytes);
  case 7:
    return put(description->epilogue, value, bytes);
  case 8:
    return put(description->vector, value, bytes);
  case 11:
    return put(description->input, value, bytes);
  case 12:
    return put(description->leadingOfInput, value, bytes);
  case 13:
    return put(description->batchStrideOfInput, value, bytes);
  default:
    return InvalidArgument;
  }
}

EXPORTED int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new Layout{type, rows, columns, leading};
  return Done;
}

EXPORTED int cublasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return Done;
}

EXPORTED int cublasLtMatrixLayoutSetAttribute(Layout *layout, int attribute, const void *value, size_t bytes) {
  switch (attribute) {
  case 2:
    return put(layout->rows, value, bytes);
  case 3:
    return put(layout->columns, value, bytes);
  case 5:
    return put(layout->batch, value, bytes);
  case 6:
    return put(layout->batchStride, value, bytes);
  default:
    return InvalidArgument;
  }
}

EXPORTED int cublasLtMatmulPreferenceCreate(Preference **preference) {
  *preference = new Preference;
  return Done;
}

EXPORTED int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  delete preference;
  return Done;
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value,
                                                  size_t bytes) {
  if (attribute == 1)
    return put(preference->workspace, value, bytes);
  if (attribute == 3)
    return put(preference->schemes, value, bytes);
  return attribute >= 5 && attribute <= 8 ? put(preference->alignment[attribute - 5], value, bytes) : InvalidArgument;
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(Device **handle, const Description *description, const Layout *a,
                                            const Layout *b, const Layout *c, const Layout *d,
                                            const Preference *preference, int wanted, Choice *choices, int *found) {
  Sizes sizes;
  *found = 0;
  bool lacksOperand =
      (description->hasVector() && !description->vector) || (description->hasGeluGradient() && !description->input);
  if (!handle || wanted < 1 || c != d || lacksOperand || !fit(*description, *a, *b, *d, sizes))
    return InvalidArgument;
  if (behaves("none") || (behaves("no-input") && description->hasGeluGradient()) ||
      (behaves("no-sums") && description->hasSums()))
    return NotSupported;
  auto offer = [&](uint64_t workspace, uint64_t parts) {
    if (*found == wanted || workspace > preference->workspace)
      return;
    Choice &choice = choices[(*found)++];
    choice = {algorithmFor(*description, *d), workspace, Done, 1, {}};
    choice.algorithm.workspace = workspace;
    choice.algorithm.parts = parts;
    const uint32_t *promised = preference->alignment; // of A, B, C and D; C and D are one place
    for (int i = 0; i < 3; ++i)
      choice.algorithm.alignment[i] = i < 2 ? promised[i] : std::max(promised[2], promised[3]);
  };
  if (preference->schemes & kReductionsInTypeOfResult)
    offer(0, /*parts=*/4);
  offer(kWorkspace, 1);
  offer(0, 1);
  return Done;
}

EXPORTED int cublasLtMatmulAlgoCheck(Device **handle, const Description *description, const Layout *a, const Layout *b,
                                     const Layout *c, const Layout *d, const Algorithm *algorithm, Choice *result) {
  Sizes sizes;
  if (!handle || c != d || !fit(*description, *a, *b, *d, sizes) || !suits(*algorithm, *description, *d))
    return InvalidArgument;
  *result = {*algorithm, size_t(algorithm->workspace), Done, 1, {}};
  return Done;
}

EXPORTED int cublasLtMatmul(Device **handle, const Description *description, const void *alpha, const std::byte *a,
                            const Layout *layoutA, const std::byte *b, const Layout *layoutB, const void *beta,
                            const std::byte *c, const Layout *layoutC, std::byte *d, const Layout *layoutD,
                            const Algorithm *algorithm, std::byte *workspace, size_t workspaceBytes, Stream *stream) {
  Turn turn;
  Sizes sizes;
  if (!handle || *handle != current || c != d || layoutC != layoutD ||
      !fit(*description, *layoutA, *layoutB, *layoutD, sizes) || !suits(*algorithm, *description, *layoutD))
    return InvalidArgument;
  bool isWide = layoutD->type == F64;
  auto number = [&](const void *value) {
    return isWide ? *static_cast<const double *>(value) : *static_cast<const float *>(value);
  };
  if (description->hasSums() && number(beta) != 0) // their values are then undefined
    return NotSupported;
  if (number(alpha) != 1 || (number(beta) != 0 && number(beta) != 1)) // nobody asks for others
    return NotSupported;
  const std::byte *places[] = {a, b, d};
  const Layout *layouts[] = {layoutA, layoutB, layoutD};
  std::vector<sim::Buffer> touched;
  for (int i = 0; i < 3; ++i) {
    auto address = reinterpret_cast<Address>(places[i]);
    if (address % algorithm->alignment[i] != 0 || !isOf(*current, address, extent(*layouts[i])))
      return InvalidArgument;
    touched.push_back(bufferAt(address, extent(*layouts[i])));
  }
  if (description->hasVector()) {
    auto address = reinterpret_cast<Address>(description->vector);
    size_t bytes = bytesOfVector(*description, sizes, *layoutD);
    if (!isOf(*current, address, bytes))
      return InvalidArgument;
    touched.push_back(bufferAt(address, bytes));
  }
  if (description->hasGeluGradient()) {
    Layout layout = *layoutD;
    layout.leading = description->leadingOfInput, layout.batchStride = description->batchStrideOfInput;
    auto address = reinterpret_cast<Address>(description->input);
    if (!isOf(*current, address, extent(layout)))
      return InvalidArgument;
    touched.push_back(bufferAt(address, extent(layout)));
    auto result = reinterpret_cast<Address>(d);
    if (address < result + extent(*layoutD) && result < address + extent(layout)) // nobody says that it may
      return InvalidArgument;
  }
  size_t needed = algorithm->workspace;
  auto own = reinterpret_cast<Address>(workspace);
  if (workspaceBytes < needed || (needed > 0 && (own % 16 != 0 || !isOf(*current, own, needed))))
    return InvalidArgument;
  if (needed > 0)
    touched.push_back(bufferAt(own, needed));
  ++products;
  constexpr std::chrono::milliseconds kLonger{10};
  bool isSlow = needed > 0 ? behaves("slow-first") : behaves("slow-last");
  auto work = [=, parts = algorithm->parts, scale = number(beta), description = *description, a = *layoutA,
               b = *layoutB, d = *layoutD] {
    sim::Unlocked unlocked(touched);
    if (isSlow)
      std::this_thread::sleep_for(kLonger);
    if (needed > 0)
      std::memset(workspace, 0xff, needed);
    for (int64_t i = 0; i < d.batch; ++i)
      multiply(description, sizes, parts, scale, places[0] + i * a.batchStride * int64_t(bytesOf(a.type)), a,
               places[1] + i * b.batchStride * int64_t(bytesOf(b.type)), b,
               const_cast<std::byte *>(places[2]) + i * d.batchStride * int64_t(bytesOf(d.type)), d,
               description.input + i * description.batchStrideOfInput * int64_t(bytesOf(d.type)));
    if (description.hasSums())
      sumOperand(description, sizes, places[0], a, places[1], b);
  };
  return enqueue(stream, work) == Success ? Done : InvalidArgument;
}
