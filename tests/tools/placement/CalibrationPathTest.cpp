// Where what was measured is kept: never in the current folder by accident.
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/Calibration.h"
#include "gtest/gtest.h"
#include <cstdlib>

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
