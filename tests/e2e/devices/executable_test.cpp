// Executables on virtual accelerators: slow links, full devices, and weights that are saved on one device and loaded on
// another.
#include "runtime/data/OpenData.h"
#include "runtime/io/Npy.h"
#include "tests/TemporaryFolder.h"
#include "tests/runtime/Process.h"
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace sluice::test;
using nlohmann::json;

namespace {

const std::string kBin = SLUICE_BINARY_DIR "/bin/";

std::string succeed(const std::string &program, const std::vector<std::string> &arguments) {
  ProcessResult result = run(program, arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.out;
}

/// Writes images of a part of the bundled data as floats from 0 to 1, and their labels.
void writeFloats(const std::string &folder, sluice::runtime::DataPart part) {
  using namespace sluice::runtime;
  std::filesystem::create_directories(folder);
  Table table = *DataPath(SLUICE_MNIST).part(part);
  auto image = table.open("image"), label = table.open("label");
  image->load();
  label->load();
  constexpr int64_t rows = 2000;
  HostTensor images{DType::f32, {rows, 28, 28}, Bytes(rows * 784 * sizeof(float))},
      labels{DType::u8, {rows}, Bytes(rows)};
  for (int64_t row = 0; row < rows; ++row) {
    Bytes pixels(784);
    image->read(row, pixels);
    label->read(row, std::span(labels.data).subspan(size_t(row), 1));
    for (int64_t i = 0; i < 784; ++i) {
      float value = std::to_integer<uint8_t>(pixels[size_t(i)]) / 255.0f;
      std::memcpy(images.data.data() + (row * 784 + i) * 4, &value, sizeof value);
    }
  }
  writeNpy(folder + "/image.npy", images);
  writeNpy(folder + "/label.npy", labels);
}

class Executables : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("SLUICE_BACKEND_PATH", SLUICE_BINARY_DIR "/lib/sluice/backends", 1);
    folder = new TemporaryFolder;
    writeFloats(*folder / "data/train", sluice::runtime::DataPart::train);
    writeFloats(*folder / "data/test", sluice::runtime::DataPart::test);
    setenv("SLUICE_DATA", (*folder / "data").c_str(), 1);
    make("host", {});
    make("one", {"--devices", "sim:0"});
    make("split", {"--devices", "cpu,sim:0", "--pin", "conv=gpu:0", "--copies", "insert"});
  }
  static void TearDownTestSuite() { delete folder; }

  static void make(const std::string &name, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--input", "f32", "-o", *folder / (name + ".mlir")});
    succeed(kBin + "models/lenet", arguments);
    succeed(kBin + "sluice", {"compile", *folder / (name + ".mlir"), "-q", "-o", *folder / name});
  }

  static inline TemporaryFolder *folder = nullptr;
};

using checklist_42_save_and_load = Executables;

/// The schedule that `bench` reports for this link speed, in bytes per second.
json schedule(const std::string &program, double link) {
  std::ostringstream settings;
  settings << "link=" << link / 1e6 << "MB/s,latency=5us";
  return json::parse(succeed(program, {"bench", "--json", "--seconds", "0.05", "--sim", settings.str()}))["schedule"];
}

/// The schedule at a link speed where copies, `bytes` in `copies` per step, take as long as kernels.
json balancedSchedule(const std::string &program, double bytes, double copies) {
  constexpr double kFast = 12e9, kLatency = 5e-6;
  double serial = schedule(program, kFast)["serial_ms"].get<double>() / 1e3;
  double kernels = serial - copies * kLatency - bytes / kFast;
  return schedule(program, bytes / (kernels - copies * kLatency));
}

void expectOverlap(const json &schedule, double share) {
  double measured = schedule["measured_ms"], predicted = schedule["predicted_ms"], serial = schedule["serial_ms"];
  std::printf("step %.4f ms, predicted %.4f ms, one after the other %.4f ms: %.3f of it\n", measured, predicted, serial,
              measured / serial);
  EXPECT_NEAR(measured, predicted, 0.05 * predicted);
  EXPECT_LE(measured, share * serial);
}

} // namespace

TEST_F(Executables, TheNextBatchTravelsDuringTheStep) {
  expectOverlap(balancedSchedule(*folder / "one", 256 * (784 * 4 + 4), 2), 0.6);
}

TEST_F(Executables, ASplitStepHidesTheSlowLink) {
  expectOverlap(balancedSchedule(*folder / "split", 256 * (784 + 800 + 800) * 4, 3), 0.85);
}

TEST_F(Executables, StepsAreReplayedUnlessThatIsNotWanted) {
  auto replays = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"bench", "--seconds", "0", "--json"});
    return nlohmann::json::parse(succeed(*folder / "split", flags)).at("sequences").at("replays").get<int64_t>();
  };
  EXPECT_GT(replays({}), 0);
  EXPECT_EQ(replays({"--no-graphs"}), 0);
}

TEST_F(Executables, VerifyLooksAtTheKernelsOfEveryDevice) {
  std::string result = succeed(kBin + "sluice", {"verify", *folder / "split.mlir"});
  EXPECT_NE(result.find("agree with the reference"), std::string::npos) << result;
}

TEST_F(Executables, AFullDeviceIsAnErrorThatLeavesTheCheckpoint) {
  std::vector<std::string> arguments{"train",    "--epochs",           "1", "--checkpoint", *folder / "checkpoints",
                                     "--resume", "--checkpoint-every", "5"};
  succeed(*folder / "one", arguments);
  auto newest = [&] {
    std::string name, content;
    for (const auto &file : std::filesystem::directory_iterator(*folder / "checkpoints"))
      name = std::max(name, file.path().string());
    return std::pair(name, contentOf(name));
  };
  auto before = newest();
  arguments[2] = "2";
  arguments.insert(arguments.end(), {"--sim", "memory=1MB"});
  ProcessResult result = run(*folder / "one", arguments);
  EXPECT_EQ(result.code, 5);
  for (const char *part : {"gpu(0)", "sim:0", "free"})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is not in: " << result.err;
  EXPECT_EQ(newest(), before);
}

TEST_F(Executables, AnAbsentDeviceIsAnErrorAndNeverAFallback) {
  ProcessResult result = run(*folder / "one", {"train", "--epochs", "1", "--sim", "devices=0"});
  EXPECT_NE(result.code, 0);
  make("ninth", {"--devices", "sim:9"}); // sim has four devices by default
  ProcessResult absent = run(*folder / "ninth", {"train", "--epochs", "1"});
  EXPECT_EQ(absent.code, 4);
  EXPECT_NE(absent.err.find("gpu(0) (sim:9)"), std::string::npos) << absent.err;
}

// Weights saved on an accelerator equal the host's bit for bit, and vice versa.
TEST_F(checklist_42_save_and_load, OnAnotherDeviceGivesTheSameBits) {
  std::string weights = *folder / "weights.safetensors";
  succeed(*folder / "one", {"train", "--epochs", "1", "--batch", "256", "--save", weights});
  std::string expected = succeed(*folder / "host", {"eval", "--weights", weights, "--json"});
  for (const char *program : {"one", "split"}) {
    EXPECT_EQ(succeed(*folder / program, {"eval", "--weights", weights, "--json"}), expected) << program;
    succeed(*folder / program,
            {"train", "--epochs", "1", "--set", "lr=0", "--weights", weights, "--save", *folder / "again.safetensors"});
    EXPECT_EQ(contentOf(*folder / "again.safetensors"), contentOf(weights)) << program;
  }
}
