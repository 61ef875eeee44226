#include "tools/gpu_check/pack/OwnKernels.h"

#include "backends/cuda/compiler/Session.h"
#include "backends/cuda/compiler/emit/Prelude.h"
#include "backends/cuda/compiler/nvrtc/ModuleImage.h"
#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include "tools/compiler/Files.h"
#include "tools/gpu_check/contracts/Kernels.h"

namespace sluice::gpu_check {

llvm::Error packOwnKernels(const std::string &folder, const std::string &settings) {
  auto read = cuda::readSettings(settings);
  if (!read)
    return read.takeError();
  auto session = cuda::Session::begin(std::move(*read), /*capacity=*/1);
  if (!session)
    return session.takeError();
  auto nvrtc = cuda::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.takeError();
  cuda::ModuleImage image;
  for (const std::string &architecture : session->architectures()) {
    auto code = nvrtc->compile(std::string(cuda::kPrelude) + kOwnKernels, architecture);
    if (!code)
      return code.takeError();
    image.addCode(architecture, std::move(code->bytes));
  }
  return compiler::writeWhole(image.write(), folder + "/own.image");
}

} // namespace sluice::gpu_check
