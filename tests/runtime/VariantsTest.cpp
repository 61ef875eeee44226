// Selection of an artifact's variant: the scaler's plan on a missing and on a present accelerator.
#include "runtime/instance/Variants.h"

#include "Scaler.h"
#include "runtime/base/Status.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;

namespace {

std::string planOn(int accelerator) {
  nlohmann::ordered_json plan = test::scalerPlan();
  plan["devices"][1]["compiled_for"] = accelerator;
  return plan.dump();
}

constexpr int kAbsent = 9, kThere = 1;

const sluice_artifact *onWhatIsThere() {
  static const std::string plan = planOn(kThere);
  static const sluice_artifact artifact = test::scaler(plan);
  return &artifact;
}

const sluice_artifact &eitherArtifact() {
  static const std::string plan = planOn(kAbsent);
  static const sluice_artifact artifact = [] {
    sluice_artifact made = test::scaler(plan);
    made.next = onWhatIsThere;
    return made;
  }();
  return artifact;
}

InstanceOptions optionsFor(const std::string &list = "", const std::string &device = "") {
  InstanceOptions options{1, device};
  options.devices.list = list;
  options.devices.settings["sim"] = "devices=4";
  options.devices.folder = SLUICE_BINARY_DIR "/lib/sluice/backends";
  return options;
}

const sluice_artifact &chosenFor(const InstanceOptions &options, std::optional<int> localRank = std::nullopt,
                                 std::string *why = nullptr) {
  DevicePool pool;
  return chooseVariant(eitherArtifact(), pool, options, localRank, why);
}

} // namespace

TEST(Variants, AreTriedInTheirOrder) {
  std::vector<Variant> variants = variantsOf(eitherArtifact());
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants[0].artifact, &eitherArtifact());
  EXPECT_EQ(variants[1].artifact, onWhatIsThere());
  EXPECT_EQ(&chosenFor(optionsFor()), onWhatIsThere());
  EXPECT_EQ(&chosenFor(optionsFor("sim:2")), &eitherArtifact());
  EXPECT_EQ(textOf(variants), "cpu,sim:9 or cpu,sim:1");
}

TEST(Variants, AreLeftOutUnlessTheyHaveWhatIsAskedFor) {
  EXPECT_EQ(&chosenFor(optionsFor("", "sim:9")), &eitherArtifact());
  Status status = guarded([] { chosenFor(optionsFor("", "sim:3")); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("it has variants for cpu,sim:9 or cpu,sim:1"), std::string::npos) << status.message;
}

/// Each of several processes on a machine uses the devices after those of the previous process.
TEST(Variants, AreForTheDevicesOfAProcess) {
  EXPECT_EQ(&chosenFor(optionsFor("sim:0-3"), 3), &eitherArtifact());
  EXPECT_EQ(&chosenFor(optionsFor(), 0), onWhatIsThere());
  Status status = guarded([] { chosenFor(optionsFor(), 3); });
  EXPECT_EQ(status.code, ExitCode::unsupported);
  EXPECT_NE(status.message.find("cpu,sim:1: device gpu(0) (sim:4) is not there"), std::string::npos) << status.message;
}

TEST(Variants, SayWhatKeepsTheChoiceFromThoseBeforeIt) {
  std::string why;
  chosenFor(optionsFor(), std::nullopt, &why);
  EXPECT_EQ(why.find("cpu,sim:9: device gpu(0) (sim:9) is not there"), 0u) << why;
  why.clear();
  chosenFor(optionsFor("", "sim:9"), std::nullopt, &why);
  EXPECT_EQ(why, "") << "it is the first";
  chosenFor(optionsFor("", "sim:1"), std::nullopt, &why);
  EXPECT_EQ(why, "requested by an option");
}
