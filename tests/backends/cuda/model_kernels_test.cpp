// Every kernel of every model in models/, in training and inference, as CUDA C++: compiled for a
// device, within its budget of registers. SLUICE_TEST_FULL=1 takes those with hundreds of kernels, too.
#include "backends/cuda/compiler/GridKernel.h"
#include "backends/cuda/compiler/Prelude.h"
#include "ir/Module.h"
#include "ir/text/ParseGuard.h"
#include "tests/TemporaryFolder.h"
#include "tests/backends/cuda/Budgets.h"
#include "tests/cuda_emu/PinnedNvrtc.h"
#include "tests/ir/op_instance.h"
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <set>

using namespace mlir;

namespace sluice::cuda {

namespace {

struct Model {
  const char *name, *options, *precision;
  bool isLong = false; // minutes of NVRTC

  std::string title() const { return std::string(name) + "_" + precision; }
};
constexpr Model kModels[] = {{"lenet", "--batch 16", "f32"},
                             {"lenet", "--batch 16", "bf16"},
                             {"mlp", "--batch 16", "f32"},
                             {"mlp", "--batch 16", "bf16"},
                             {"fcn_r", "--batch 16", "f32"},
                             {"fcn_s", "--batch 16", "f32"},
                             {"alexnet_r", "--batch 16", "f32"},
                             {"alexnet_s", "--batch 16", "f32"},
                             {"alexnet_s", "--batch 16", "bf16"},
                             {"resnet56", "--batch 16", "f32", true},
                             {"resnet56", "--batch 16", "bf16", true},
                             {"resnet18", "--batch 2", "f32", true},
                             {"mobilenetv2", "--batch 2", "f32", true},
                             {"unet", "--batch 2", "f32", true},
                             {"resnet50", "--batch 2", "f32", true},
                             {"resnet50", "--batch 2", "bf16", true},
                             {"vit_s", "--batch 2", "f32", true},
                             {"bert_base", "--batch 2", "bf16", true},
                             {"gpt2", "--batch 2", "bf16", true}};

class ModelKernels : public testing::TestWithParam<Model> {
protected:
  void SetUp() override {
    llvm::Expected<Nvrtc> found = sluice::test::loadPinnedNvrtc();
    if (!found)
      GTEST_SKIP() << llvm::toString(found.takeError());
    nvrtc = *found;
  }

  /// The model's kernels as the compiler fuses them for a device.
  OwningOpRef<ModuleOp> fused() {
    Model model = GetParam();
    std::string bin = SLUICE_BINARY_DIR "/bin/", graph = folder / "model.mlir", dump = folder / "fused.mlir";
    std::string command = bin + "models/" + model.name + " " + model.options + " -o " + graph + " > /dev/null && " +
                          bin + "sluice compile -q " + graph + " --precision " + model.precision +
                          " --devices cuda:0 --compile-to fused -o " + dump;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    auto parsed = ir::parseModuleText(sluice::test::contentOf(dump), dump, sluice::test::getContext());
    EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    return parsed ? std::move(*parsed) : nullptr;
  }

  sluice::test::TemporaryFolder folder;
  std::optional<Nvrtc> nvrtc; // that `sluice` finds, too
};

class FusedKernels : public ModelKernels {};

} // namespace

TEST_P(ModelKernels, FitTheirBudgets) {
  if (GetParam().isLong && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "hundreds of kernels: only with SLUICE_TEST_FULL=1";
  OwningOpRef<ModuleOp> module = fused();
  ASSERT_TRUE(bool(module));
  int64_t capacity = int64_t(ir::getModel(*module).getCapacity());
  std::set<std::string> known;
  std::string text = kPrelude;
  std::vector<GridFunction> functions;
  module->walk([&](ir::KernelOp kernel) {
    FailureOr<GridKernel> written = writeGridKernel(kernel, "k", capacity);
    ASSERT_TRUE(succeeded(written)) << kernel.getName().str();
    if (!known.insert(written->text).second)
      return;
    written = writeGridKernel(kernel, "k" + std::to_string(known.size()) + "_" + kernel.getName().str(), capacity);
    text += written->text;
    llvm::append_range(functions, written->functions);
  });
  llvm::Expected<DeviceCode> code = nvrtc->compile(text, "sm_90");
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  test::expectBudgets(*code, functions);
  int most = 0;
  for (const KernelResources &kernel : code->kernels)
    most = std::max(most, kernel.registers);
  std::printf("%s: %zu kernels, %zu functions, %zu kB of code, at most %d registers\n", GetParam().title().c_str(),
              known.size(), functions.size(), code->bytes.size() >> 10, most);
}

// Bias, activation, mask and the optimizer's step are in the kernel of the product that they follow, and casts between them.
TEST_P(FusedKernels, TakeWhatFollowsAProduct) {
  OwningOpRef<ModuleOp> module = fused();
  ASSERT_TRUE(bool(module));
  std::multiset<std::string> products;
  module->walk([&](ir::KernelOp kernel) {
    bool isOfStep = kernel->getParentOfType<ir::EntryOp>().getName() == "train_step";
    if (!isOfStep || kernel.getBody().front().getOps<ir::ContractionOp>().empty())
      return;
    std::string ops;
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (isa<ir::ContractionOp, ir::ElementwiseOp>(op))
        ops += (ops.empty() ? "" : " ") + op.getName().stripDialect().str();
    products.insert(ops);
  });
  std::string cast = std::string(GetParam().precision) == "f32" ? "" : " cast";
  EXPECT_EQ(products, (std::multiset<std::string>{
                          "conv2d add relu compare", "conv2d add relu compare", "einsum add relu compare",
                          "einsum add" + cast, "einsum where", "einsum", "conv2d_input_grad",
                          "einsum" + cast + " mul sub", "einsum" + cast + " mul sub",
                          "conv2d_weight_grad" + cast + " mul sub", "conv2d_weight_grad" + cast + " mul sub"}));
}

INSTANTIATE_TEST_SUITE_P(Models, ModelKernels, testing::ValuesIn(kModels),
                         [](const auto &info) { return info.param.title(); });
INSTANTIATE_TEST_SUITE_P(Models, FusedKernels, testing::Values(kModels[0], kModels[1]),
                         [](const auto &info) { return info.param.title(); });

} // namespace sluice::cuda
