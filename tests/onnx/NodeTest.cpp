// ONNX's own tests of operators, one process for all. SLUICE_ONNX_TESTS is the folder that holds them; SLUICE_ONNX_CASES
// selects cases by a part of their name, and prints the outcome of each.
#include "tests/onnx/Case.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

namespace {

using sluice::onnx_test::nameOf;
using sluice::onnx_test::Outcome;
using sluice::onnx_test::runCase;

std::vector<std::string> casesIn(const std::string &folder, const std::string &part) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find(part) != std::string::npos)
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(OnnxNodes, AgreeWithTheReference) {
  const char *folder = std::getenv("SLUICE_ONNX_TESTS"), *part = std::getenv("SLUICE_ONNX_CASES");
  if (!folder)
    GTEST_SKIP() << "SLUICE_ONNX_TESTS is not set";
  std::map<std::string, int> counts;
  for (const std::string &name : casesIn(folder, part ? part : "")) {
    Outcome outcome = runCase(std::string(folder) + "/" + name);
    ++counts[nameOf(outcome.kind)];
    if (part || std::getenv("SLUICE_ONNX_VERBOSE"))
      std::cout << nameOf(outcome.kind) << ' ' << name << ' ' << outcome.reason << '\n' << std::flush;
    EXPECT_NE(outcome.kind, Outcome::Kind::wrong) << name << ": " << outcome.reason;
    EXPECT_NE(outcome.kind, Outcome::Kind::failed) << name << ": " << outcome.reason;
  }
  for (const auto &[kind, count] : counts)
    std::cout << kind << ": " << count << '\n';
}

} // namespace
