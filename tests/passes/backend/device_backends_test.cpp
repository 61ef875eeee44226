// All devices with the host's instructions use the same choice for a composite op, its kernel or its formula, because
// the two differ in the order of sums.
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include <gmock/gmock.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// A compile half for host code with these instructions and a kernel for every op.
template <const char *instructions> sluice_backend_compile willing(const char *name) {
  sluice_backend_compile half{};
  half.struct_size = sizeof(half);
  half.name = name;
  half.begin = [](const sluice_target_options *, sluice_session **) { return SLUICE_OK; };
  half.end = [](sluice_session *) {};
  half.last_error = [](sluice_session *) { return "it has no groups"; };
  half.describe = [](sluice_session *, sluice_target_info *info) {
    info->instructions = instructions;
    return SLUICE_OK;
  };
  half.supports = [](sluice_session *, const sluice_kernel_view *) { return SLUICE_OK; };
  return half;
}

sluice_status supportsOneGroup(sluice_session *, const sluice_kernel_view *view) {
  auto product = dyn_cast<ContractionOp>(static_cast<Operation *>(view->operation));
  return product && product.getGroups() > 1 ? SLUICE_UNSUPPORTED : SLUICE_OK;
}

sluice_status supportsNothing(sluice_session *, const sluice_kernel_view *) { return SLUICE_UNSUPPORTED; }

constexpr char kWide[] = "wide,fma", kNarrow[] = "narrow";

class DeviceBackendsTest : public testing::Test {
protected:
  /// The convolution, with this number of groups, on the accelerator.
  Conv2dOp convolution(int groups) {
    std::string text = R"(#acc0 = #sluice.at<device = "acc0">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "fake" 0
  sluice.entry @predict ["x", "w"] -> ["y"] (%x: tensor<?x4x5x5xf32, #acc0>, %w: tensor<8xCx3x3xf32, #acc0>) {
    %y = sluice.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = G : i64} : (tensor<?x4x5x5xf32, #acc0>, tensor<8xCx3x3xf32, #acc0>) -> tensor<?x8x5x5xf32, #acc0>
    sluice.return %y : tensor<?x8x5x5xf32, #acc0>
  }
})";
    for (size_t at; (at = text.find("xCx")) != std::string::npos;)
      text[at + 1] = char('0' + 4 / groups);
    text[text.find("= G") + 2] = char('0' + groups);
    module = llvm::cantFail(parseModuleText(text, "model.mlir", context));
    backends = DeviceBackends::create(*module, {&host, &accelerator}, {});
    Conv2dOp found;
    module->walk([&](Conv2dOp op) { found = op; });
    return found;
  }

  std::string whyNot(Operation *op) { return backends->reasonAgainst(op, "acc0"); }
  std::string whyNoKernel(Operation *op) { return backends->reasonAgainstKernel(op, "acc0"); }

  MLIRContext context;
  DiagnosticText diagnostics{&context};
  OwningOpRef<ModuleOp> module;
  sluice_backend_compile host = willing<kWide>("cpu"), accelerator = willing<kWide>("fake");
  std::unique_ptr<DeviceBackends> backends;
};

} // namespace

TEST_F(DeviceBackendsTest, WhereTheHostHasAKernelADeviceWithoutCannotRunTheOp) {
  accelerator.supports = supportsOneGroup;
  Conv2dOp op = convolution(/*groups=*/2);
  EXPECT_THAT(whyNot(op), HasSubstr("it has no groups; the formula in its place would give other bits than on the "
                                    "host, which has a kernel for it"));
  EXPECT_FALSE(expandMissing(*module, *backends));
  EXPECT_TRUE(failed(checkSupport(*module, *backends)));
  EXPECT_THAT(diagnostics.errors(),
              HasSubstr("'sluice.conv2d' cannot run on gpu(0) (backend 'fake'): it has no groups; "
                        "the formula in its place would give other bits"));
}

TEST_F(DeviceBackendsTest, WhereTheHostHasTheFormulaAllDevicesHave) {
  host.supports = supportsOneGroup;
  Conv2dOp op = convolution(/*groups=*/2);
  EXPECT_THAT(whyNoKernel(op), HasSubstr("its kernel would give other bits than on the host"));
  EXPECT_THAT(whyNot(op), IsEmpty());
  EXPECT_TRUE(expandMissing(*module, *backends));
  EXPECT_TRUE(succeeded(checkSupport(*module, *backends)));
}

TEST_F(DeviceBackendsTest, OtherInstructionsGiveOtherBitsAnyway) {
  accelerator = willing<kNarrow>("fake");
  host.supports = supportsOneGroup;
  EXPECT_THAT(whyNoKernel(convolution(/*groups=*/2)), IsEmpty());
  std::swap(host.supports, accelerator.supports);
  EXPECT_THAT(whyNot(convolution(/*groups=*/2)), IsEmpty());
  EXPECT_TRUE(expandMissing(*module, *backends));
}

TEST_F(DeviceBackendsTest, AnOpThatIsNoFormulaRunsWhereverThereIsAKernel) {
  host.supports = supportsNothing;
  EXPECT_THAT(whyNoKernel(convolution(/*groups=*/1)), IsEmpty());
  std::swap(host.supports, accelerator.supports);
  EXPECT_EQ(whyNot(convolution(/*groups=*/1)), "it has no groups");
}

static size_t alignment;

static sluice_status wantAlignment(sluice_session *, sluice_target_info *info) {
  info->alignment = alignment;
  return SLUICE_OK;
}

TEST_F(DeviceBackendsTest, BuffersBeginWhereTheirBackendWantsThem) {
  accelerator.describe = wantAlignment;
  for (size_t wanted : {0, 64, 256, 4096}) {
    alignment = wanted;
    convolution(/*groups=*/1);
    EXPECT_EQ(backends->target().devices()[0].alignment, 64);
    EXPECT_EQ(backends->target().devices()[1].alignment, wanted ? int64_t(wanted) : 64);
  }
}

TEST_F(DeviceBackendsTest, AlignmentsArePowersOfTwo) {
  accelerator.describe = wantAlignment;
  for (size_t wanted : {1, 32, 96, 8192}) {
    alignment = wanted;
    convolution(/*groups=*/1);
    EXPECT_EQ(backends, nullptr);
    EXPECT_THAT(diagnostics.errors(),
                HasSubstr("the backend 'fake' wants buffers at multiples of " + std::to_string(wanted) +
                          " bytes, which is no power of two from 64 to 4096"));
  }
}
