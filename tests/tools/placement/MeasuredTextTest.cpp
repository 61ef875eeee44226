// `sluice devices --measure` distinguishes measured kinds from those with published peaks.
#include "tools/sluice/MeasuredText.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::compiler;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

namespace {

/// One kernel of each kind, at a tenth of the f32 peak and a quarter of the bf16 peak.
struct Measured {
  ClockCalibration clock{"cpu", "a machine", {}, {}, {}};
  std::vector<passes::DeviceCosts> costs;

  Measured() {
    clock.devices.push_back({"cuda:0", {{"einsum", {{1e9, 1e3, 1e-3}}}, {"einsum_bf16", {{40e9, 1e3, 1e-3}}}}});
    passes::DeviceCosts published;
    published.any.flopsPerSecond = 10e12;
    for (auto [ending, peak] : {std::pair("_tf32", 80e12), {"_bf16", 160e12}})
      published.endings[ending].flopsPerSecond = peak;
    published.architecture = "sm_1";
    costs.push_back(clock.devices[0].costs());
    costs[0].estimateUnmeasured(published);
  }
};

} // namespace

TEST(MeasuredText, TellsMeasuredKindsFromOthers) {
  Measured measured;
  std::string text;
  llvm::raw_string_ostream out(text);
  tool::printMeasured(out, measured.clock, measured.costs);
  EXPECT_THAT(text, ContainsRegex("\n  einsum_bf16  +1 +4[0-9]{4}\\.[0-9] .*x\n"));
  EXPECT_THAT(
      text,
      ContainsRegex("\n  einsum_tf32  +none +2[0-9]{4}\\.[0-9] .*  as einsum_bf16, by the published peaks of sm_1\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\n  other kinds that end in _bf16, _tf32 were not measured: they go by the published peaks of sm_1\n"));
}

TEST(MeasuredText, ScriptsAreToldToo) {
  Measured measured;
  llvm::json::Value json = tool::toJson(measured.clock, measured.costs);
  const llvm::json::Object &device = *(*json.getAsObject()->getArray("devices"))[0].getAsObject();
  EXPECT_EQ(device.getObject("kinds")->size(), 2u);
  const llvm::json::Object &estimated = *device.getObject("estimated");
  ASSERT_EQ(estimated.size(), 1u);
  EXPECT_EQ(estimated.getObject("einsum_tf32")->getString("like"), "einsum_bf16");
  EXPECT_NEAR(*estimated.getObject("einsum_tf32")->getNumber("flops_per_second"), 20e12, 2e12);
}

TEST(MeasuredText, WithoutPublishedPeaksNothingIsEstimated) {
  Measured measured;
  measured.costs[0] = measured.clock.devices[0].costs();
  std::string text;
  llvm::raw_string_ostream out(text);
  tool::printMeasured(out, measured.clock, measured.costs);
  EXPECT_THAT(text, Not(HasSubstr("published")));
}
