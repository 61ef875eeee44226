#include "backends/cuda/runtime/ModuleImage.h"

#include "backends/cuda/runtime/Error.h"

#include <limits>
#include <set>
#include <sstream>

namespace sluice::cuda {

static constexpr std::string_view kFirstLine = "sluice cuda 8";

namespace {

class Reader {
public:
  explicit Reader(std::string_view image) : rest(image) {}

  ModuleImage read() {
    if (nextLine() != kFirstLine)
      fail("is not '" + std::string(kFirstLine) + "'");
    for (std::string line = nextLine(); line != "end"; line = nextLine())
      take(line);
    for (size_t i = 0; i < image.codes.size(); ++i)
      image.codes[i].bytes = bytes(sizes[i]);
    return std::move(image);
  }

private:
  [[noreturn]] void fail(const std::string &why) const {
    throw Error(SLUICE_INVALID, "cuda: line " + std::to_string(lines) + " of a module " + why);
  }

  std::string nextLine() {
    ++lines;
    size_t end = rest.find('\n');
    if (end == std::string_view::npos)
      fail("does not end");
    std::string line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    return line;
  }

  void take(const std::string &text) {
    std::istringstream line(text);
    std::string what, name;
    int64_t size = -1;
    ImageFunction function;
    line >> what >> name;
    ImageProduct product;
    if (what == "function")
      line >> function.tasks >> function.rowsPerTask >> function.threads >> function.sharedBytes >>
          function.followsLibrary;
    else if (what == "product")
      product.type = name, read(line, product);
    else
      line >> size;
    bool isWhole = line && (line >> std::ws).eof();
    if (isWhole && what == "kernel" && size >= 0)
      image.kernels.push_back({name, size_t(size), {}, {}});
    else if (isWhole && what == "product" && isProductType(name) && !image.kernels.empty() &&
             isSound(product, image.kernels.back()))
      image.kernels.back().product = product;
    else if (isWhole && what == "code" && size >= 0)
      image.codes.push_back({name, {}}), sizes.push_back(size_t(size));
    else if (isWhole && what == "function" && !image.kernels.empty() && isSound(function))
      function.name = name, image.kernels.back().functions.push_back(function);
    else
      fail("is '" + text + "'");
  }

  static bool isSound(const ImageFunction &function) {
    constexpr int64_t kMostThreads = 1024;
    auto isCount = [](int64_t number) { return number >= 0 && number <= std::numeric_limits<int32_t>::max(); };
    return isCount(function.tasks) && isCount(function.rowsPerTask) && isCount(function.sharedBytes) &&
           function.threads > 0 && function.threads <= kMostThreads && function.followsLibrary >= 0 &&
           function.followsLibrary <= ImageFunction::kForSum;
  }

  static void read(std::istream &line, ImageProduct &product) {
    for (ImageProduct::Extent *extent : {&product.p, &product.q, &product.k, &product.batch})
      line >> extent->size >> extent->perRow;
    for (ImageProduct::Matrix *matrix : {&product.first, &product.second, &product.result})
      line >> matrix->buffer >> matrix->leading >> matrix->batchStride >> matrix->isTransposed;
    line >> product.bias >> product.activation >> product.input >> product.sums >> product.sumsSecond >>
        product.isTimed >> product.capacity >> product.workspaceBytes;
  }

  static bool isProductType(const std::string &name) {
    static const std::set<std::string> known = {"f32", "f64", "f16", "bf16", "tf32"};
    return known.count(name) > 0;
  }

  static bool isActivation(const std::string &name) {
    static const std::set<std::string> known = {"none", "relu", "gelu", "gelu_gradient"};
    return known.count(name) > 0;
  }

  /// An activation's input, if any, has the alignment that the library requires, and there is no bias.
  static bool hasSoundInput(const ImageProduct &product, const ImageKernel &kernel) {
    if (product.activation != "gelu_gradient")
      return product.input == -1;
    return product.input >= 0 && product.input + 1 < int64_t(kernel.buffers) && product.bias == -1 &&
           product.type != "f64" && product.result.leading % kInputMultiple == 0 &&
           product.result.batchStride % kInputMultiple == 0;
  }

  /// Operand sums, if any, are along a side of a single matrix that does not depend on the call's rows, without another
  /// epilogue.
  static bool hasSoundSums(const ImageProduct &product, const ImageKernel &kernel) {
    if (product.sums == -1)
      return product.sumsSecond == 0;
    return product.sums >= 0 && product.sums + 1 < int64_t(kernel.buffers) && product.bias == -1 &&
           product.activation == "none" && product.type != "f64" && product.batch.size == 1 &&
           product.batch.perRow == 0 && (product.sumsSecond == 0 || product.sumsSecond == 1) &&
           product.sideOfSums().perRow == 0;
  }

  static bool isSound(const ImageProduct &product, const ImageKernel &kernel) {
    constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max(), kMostSize = int64_t(1)
                                                                                   << 32; // times rows, 63 bits
    bool isSound = product.capacity >= 0 && product.capacity <= kMostRows && product.workspaceBytes >= 0 &&
                   product.workspaceBytes <= kMostWorkspaceBytes && product.bias >= -1 &&
                   product.bias + 1 < int64_t(kernel.buffers) && isActivation(product.activation) &&
                   hasSoundInput(product, kernel) && hasSoundSums(product, kernel) &&
                   (product.isTimed == 0 || product.isTimed == 1);
    for (const ImageProduct::Extent &extent : {product.p, product.q, product.k, product.batch})
      isSound &= extent.size > 0 && extent.size <= kMostSize && (extent.perRow == 0 || extent.perRow == 1);
    for (const ImageProduct::Matrix &matrix : {product.first, product.second, product.result})
      isSound &= matrix.buffer >= 0 && size_t(matrix.buffer) + 1 < kernel.buffers && matrix.leading > 0 &&
                 matrix.batchStride >= 0 && (matrix.isTransposed == 0 || matrix.isTransposed == 1);
    auto isWide = [&](const ImageProduct::Matrix &matrix, const ImageProduct::Extent &height,
                      const ImageProduct::Extent &width) {
      return matrix.leading >= (matrix.isTransposed ? width : height).with(product.capacity);
    };
    return isSound && product.result.isTransposed == 0 && isWide(product.first, product.p, product.k) &&
           isWide(product.second, product.k, product.q) && isWide(product.result, product.p, product.q) &&
           product.batch.with(product.capacity) <= std::numeric_limits<int32_t>::max(); // as the library counts
  }

  std::string_view bytes(size_t count) {
    if (count > rest.size())
      fail("is followed by too few bytes of code");
    std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }

  std::string_view rest;
  ModuleImage image;
  std::vector<size_t> sizes; // of the codes
  size_t lines = 0;
};

} // namespace

ModuleImage readModuleImage(std::string_view image) { return Reader(image).read(); }

} // namespace sluice::cuda
