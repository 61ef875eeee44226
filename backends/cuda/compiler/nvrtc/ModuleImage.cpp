#include "backends/cuda/compiler/nvrtc/ModuleImage.h"

#include <fmt/format.h>

namespace sluice::cuda {

void ModuleImage::addKernel(llvm::StringRef name, int64_t buffers, llvm::ArrayRef<GridFunction> functions) {
  kernels += fmt::format("kernel {} {}\n", name.str(), buffers);
  for (const GridFunction &function : functions)
    kernels += fmt::format("function {} {} {} {} {} {}\n", function.name, function.tasks, function.rowsPerTask,
                           function.threads, function.sharedBytes, int(function.followsLibrary));
}

/// Before or after the kernel's functions: they belong to the kernel.
void ModuleImage::addProduct(const LibraryProduct &product) {
  kernels += "product " + product.type;
  for (const LibraryProduct::Extent &extent : {product.p, product.q, product.k, product.batch})
    kernels += fmt::format(" {} {}", extent.size, int(extent.perRow));
  for (const LibraryProduct::Matrix &matrix : {product.first, product.second, product.result})
    kernels += fmt::format(" {} {} {} {}", matrix.buffer, matrix.leading, matrix.batchStride, int(matrix.isTransposed));
  kernels += fmt::format(" {} {} {} {} {} {} {} {}\n", product.bias.value_or(-1), product.activation,
                         product.input.value_or(-1), product.sums.value_or(-1), int(product.sumsSecond),
                         int(product.isTimed), product.capacity, kLibraryWorkspaceBytes);
}

void ModuleImage::addCode(const std::string &architecture, std::string code) {
  codes.emplace_back(architecture, std::move(code));
}

std::string ModuleImage::write() const {
  std::string image = "sluice cuda 8\n" + kernels;
  for (const auto &[architecture, code] : codes)
    image += fmt::format("code {} {}\n", architecture, code.size());
  image += "end\n";
  for (const auto &[architecture, code] : codes)
    image += code;
  return image;
}

} // namespace sluice::cuda
