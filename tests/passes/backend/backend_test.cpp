// Tests that results of backends are validated before use, and that errors name the backend and the request.
#include "backends/cpu/compiler/Plugin.h"
#include "ir/Layout.h"
#include "ir/text/DiagnosticText.h"
#include "passes/backend/Backend.h"
#include "passes/backend/KernelView.h"
#include "passes/backend/ProposedLayout.h"
#include "tests/ir/op_instance.h"
#include <gmock/gmock.h>

using namespace mlir;
using namespace sluice::ir;
using namespace sluice::passes;
using sluice::test::OpInstance;
using testing::HasSubstr;

namespace {

constexpr auto kWhole = SLUICE_LAYOUT_WHOLE;
constexpr auto kNumber = SLUICE_LAYOUT_TILE_NUMBER;
constexpr auto kPlace = SLUICE_LAYOUT_PLACE_IN_TILE;

class BackendTest : public testing::Test {
protected:
  std::unique_ptr<Backend> begin(const char *settings = "") {
    sluice_target_options options{sizeof(options),      "native", /*capacity=*/4,
                                  /*services=*/nullptr, settings, /*temporaries=*/nullptr, SLUICE_MATH_STRICT};
    return Backend::create(table, options, UnknownLoc::get(&sluice::test::getContext()));
  }

  DiagnosticText diagnostics{&sluice::test::getContext()};
  sluice_backend_compile table = *sluice_cpu_backend_compile();
  OpInstance product{
      "\"sluice.einsum\"(%0, %1) {equation = \"ab,bc->ac\"} : (tensor<?x8xf32>, tensor<8x3xf32>) -> tensor<?x3xf32>"};
};

std::string textOf(AffineMap map) {
  std::string text;
  llvm::raw_string_ostream(text) << map;
  return text;
}

} // namespace

TEST_F(BackendTest, AProposalThatIsNoLayoutIsRefusedByName) {
  table.propose_layout = [](sluice_session *, const sluice_kernel_view *, int, unsigned,
                            sluice_layout_proposal *proposal) {
    static constexpr sluice_layout_dim beyond[] = {{0, kWhole, 0}, {7, kWhole, 0}};
    proposal->cares = 1;
    proposal->layout = beyond;
    proposal->num_layout = 2;
    return SLUICE_OK;
  };
  EXPECT_TRUE(failed(begin()->proposeLayout(KernelView(product.op), /*isResult=*/false, 1)));
  EXPECT_THAT(diagnostics.errors(), HasSubstr("backend 'cpu' proposes no layout for operand 1 of 'sluice.einsum': it "
                                              "has dimension 7 of a value of rank 2"));
}

// Tests that fields next to "no preference" are ignored.
TEST_F(BackendTest, ABackendThatDoesNotCareProposesNothing) {
  table.propose_layout = [](sluice_session *, const sluice_kernel_view *, int, unsigned,
                            sluice_layout_proposal *proposal) {
    proposal->required = 1;
    return SLUICE_OK;
  };
  FailureOr<LayoutProposal> proposal = begin()->proposeLayout(KernelView(product.op), /*isResult=*/true, 0);
  ASSERT_TRUE(succeeded(proposal));
  EXPECT_FALSE(proposal->layout);
  EXPECT_FALSE(proposal->required);
}

TEST_F(BackendTest, AnOpThatCannotBeSaidIsNotSupported) {
  EXPECT_THAT(begin()->reasonAgainst(product.entry), HasSubstr("the attribute 'inputs' of 'sluice.entry'"));
}

TEST_F(BackendTest, StagesSayHowLargeTheyAre) {
  table.prepare = [](sluice_session *, const sluice_kernel_view *, sluice_launch_info *launch) {
    static const sluice_stage_info stage{"stage", 1, 0};
    launch->stages = &stage;
    launch->num_stages = 1;
    return SLUICE_OK;
  };
  OpBuilder builder(&sluice::test::getContext());
  OperationState state(builder.getUnknownLoc(), KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr("k"));
  Block *body = new Block;
  state.addRegion()->push_back(body);
  OwningOpRef<KernelOp> made = cast<KernelOp>(builder.create(state));
  builder.setInsertionPointToEnd(body);
  builder.create<YieldOp>(builder.getUnknownLoc(), ValueRange());
  EXPECT_TRUE(failed(begin()->prepare(*made)));
  EXPECT_THAT(diagnostics.errors(), HasSubstr("backend 'cpu' gives stages of 0 bytes each"));
}

TEST_F(BackendTest, AnUnknownSettingIsRefusedByName) {
  EXPECT_EQ(begin("nobody_has_this=1"), nullptr);
  EXPECT_THAT(diagnostics.errors(), HasSubstr("there is no setting 'nobody_has_this=1'"));
}

TEST(ProposedLayoutTest, WholeDimensionsAndTilesAreMaps) {
  MLIRContext *context = &sluice::test::getContext();
  EXPECT_EQ(textOf(layoutOf({}, 2, context)), "(d0, d1) -> (d0, d1)");
  EXPECT_EQ(textOf(layoutOf({{0, kWhole, 0}, {2, kWhole, 0}, {1, kWhole, 0}}, 3, context)),
            "(d0, d1, d2) -> (d0, d2, d1)");
  EXPECT_EQ(textOf(layoutOf({{0, kNumber, 32}, {1, kWhole, 0}, {0, kPlace, 32}}, 2, context)),
            "(d0, d1) -> (d0 floordiv 32, d1, d0 mod 32)");
}

TEST(ProposedLayoutTest, SaysWhatIsWrong) {
  EXPECT_EQ(whyNoLayout({}, 3), "");
  EXPECT_EQ(whyNoLayout({{0, kNumber, 2}, {1, kWhole, 0}, {0, kPlace, 2}}, 2), "");
  EXPECT_EQ(whyNoLayout({{1, kWhole, 0}, {2, kWhole, 0}}, 2), "it has dimension 2 of a value of rank 2");
  EXPECT_EQ(whyNoLayout({{0, kWhole, 4}}, 1), "dimension 0 is whole, with tiles of 4");
  EXPECT_EQ(whyNoLayout({{0, kNumber, 1}, {0, kPlace, 1}}, 1), "dimension 0 is in tiles of 1, not of 2 to 65536");
  EXPECT_EQ(whyNoLayout({{0, kNumber, -8}, {0, kPlace, -8}}, 1), "dimension 0 is in tiles of -8, not of 2 to 65536");
  EXPECT_EQ(whyNoLayout({{0, sluice_layout_part(3), 2}}, 1), "part 3 of dimension 0 is none that there is");
  const char *once = "dimension 0 must be there once, whole or as number and place of a tile";
  EXPECT_EQ(whyNoLayout({{1, kWhole, 0}}, 2), once);
  EXPECT_EQ(whyNoLayout({{0, kWhole, 0}, {0, kWhole, 0}, {1, kWhole, 0}}, 2), once);
  EXPECT_EQ(whyNoLayout({{0, kNumber, 2}}, 1), once);
  EXPECT_EQ(whyNoLayout({{0, kNumber, 2}, {0, kPlace, 4}}, 1), once);
  EXPECT_EQ(whyNoLayout({{0, kPlace, 2}, {0, kPlace, 2}}, 1), once);
}
