// The path of the calibration file: never in the current folder by accident.
#include "tests/TemporaryFolder.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/costs/Calibration.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <filesystem>

using namespace sluice::compiler;

static std::string pathWith(const char *file, const char *cache, const char *home) {
  setenv("SLUICE_CALIBRATION", file, 1);
  setenv("XDG_CACHE_HOME", cache, 1);
  setenv("HOME", home, 1);
  return calibrationPath();
}

TEST(CalibrationPath, IsTheFileThatIsNamed) { EXPECT_EQ(pathWith("here.json", "/cache", "/home"), "here.json"); }

TEST(CalibrationPath, IsInTheCacheFolder) {
  EXPECT_EQ(pathWith("", "/cache", "/home"), "/cache/sluice/calibration.json");
}

TEST(CalibrationPath, OfAnEmptyCacheFolderIsAtHome) {
  EXPECT_EQ(pathWith("", "", "/home"), "/home/.cache/sluice/calibration.json");
}

TEST(CalibrationPath, OfARelativeCacheFolderIsAtHome) {
  EXPECT_EQ(pathWith("", "here", "/home"), "/home/.cache/sluice/calibration.json");
  EXPECT_EQ(pathWith("", "./here", "/home"), "/home/.cache/sluice/calibration.json");
}

TEST(CalibrationPath, IsNowhereWithoutAHome) {
  EXPECT_EQ(pathWith("", "", ""), "");
  EXPECT_EQ(pathWith("", "here", "there"), "");
  Failure failure = takeFailure(checkCalibrationPath());
  EXPECT_EQ(failure.code, ExitCode::Invalid);
  EXPECT_NE(failure.text.find("SLUICE_CALIBRATION can name a file"), std::string::npos);
  EXPECT_EQ(takeFailure(writeCalibration({})).code, ExitCode::Invalid);
}

TEST(CalibrationPath, IsSeenToBeWritableBeforeMeasuring) {
  sluice::test::TemporaryFolder folder;
  folder.write("file", "in the way");
  for (auto [path, why] : {std::pair("file/calibration.json", "Not a directory"), {"", "Is a directory"}}) {
    pathWith((folder / path).c_str(), "", "");
    Failure failure = takeFailure(checkCalibrationPath());
    EXPECT_EQ(failure.code, ExitCode::Invalid);
    EXPECT_NE(failure.text.find(folder / path), std::string::npos) << failure.text;
    EXPECT_NE(failure.text.find(why), std::string::npos) << failure.text;
  }
}

TEST(CalibrationPath, OfADamagedFileIsAnErrorBeforeMeasuring) {
  sluice::test::TemporaryFolder folder;
  folder.write("calibration.json", "{");
  pathWith((folder / "calibration.json").c_str(), "", "");
  EXPECT_NE(takeFailure(checkCalibrationPath()).text.find("calibration.json"), std::string::npos);
}

TEST(CalibrationPath, MayBeInTheCurrentFolder) {
  sluice::test::TemporaryFolder folder;
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  pathWith("here.json", "", "");
  ClockCalibration clock;
  clock.machine = machineName();
  EXPECT_FALSE(bool(writeCalibration(clock)));
  EXPECT_TRUE(std::filesystem::exists("here.json"));
  std::filesystem::current_path(before);
}
