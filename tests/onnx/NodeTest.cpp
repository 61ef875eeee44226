// ONNX's own tests: operators, and whole models. All cases run in one process. SLUICE_ONNX_TESTS is the folder that
// holds them; SLUICE_ONNX_CASES selects cases by a part of their name, and prints the outcome of each.
#include "tests/onnx/Case.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

namespace {

namespace fs = std::filesystem;
using sluice::onnx_test::nameOf;
using sluice::onnx_test::Outcome;
using sluice::onnx_test::runCase;

std::string textOf(const char *variable, const char *otherwise) {
  const char *text = std::getenv(variable);
  return text ? text : otherwise;
}

/// The cases of a folder: folders with a model and data, or models beside their output.
std::vector<std::string> casesIn(const fs::path &folder) {
  std::string part = textOf("SLUICE_ONNX_CASES", "");
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename();
    if (name.find(part) != std::string::npos && (entry.is_directory() || entry.path().extension() == ".onnx"))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool isRight(const Outcome &outcome) {
  return outcome.kind == Outcome::Kind::computed || outcome.kind == Outcome::Kind::parameters ||
         outcome.kind == Outcome::Kind::folded;
}

/// The outcomes of all cases of one kind.
class Cases {
public:
  explicit Cases(const std::string &kind) {
    bool isSelected = std::getenv("SLUICE_ONNX_CASES");
    for (const std::string &name : casesIn(root() / kind)) {
      Outcome outcome = runCase(root() / kind / name);
      if (isSelected)
        std::cout << nameOf(outcome.kind) << ' ' << name << ' ' << outcome.reason << std::endl;
      ++counts[nameOf(outcome.kind)];
      outcomes[name] = outcome;
    }
    for (const auto &[name, count] : counts)
      std::cout << kind << ", " << name << ": " << count << '\n';
  }

  static fs::path root() { return textOf("SLUICE_ONNX_TESTS", SLUICE_ONNX_TESTS); }
  static bool areThere() { return fs::exists(root()); }
  long right() const {
    return std::count_if(outcomes.begin(), outcomes.end(), [](const auto &entry) { return isRight(entry.second); });
  }
  void expectNoneWrong() const {
    for (const auto &[name, outcome] : outcomes)
      EXPECT_TRUE(isRight(outcome) || outcome.kind == Outcome::Kind::unsupported)
          << name << " is " << nameOf(outcome.kind) << ": " << outcome.reason;
  }

  std::map<std::string, Outcome> outcomes;

private:
  std::map<std::string, int> counts;
};

class Onnx : public testing::Test {
protected:
  void SetUp() override {
    if (!Cases::areThere())
      GTEST_SKIP() << "there is no " << Cases::root() << "; tools/scripts/onnx-tests makes it";
  }
};

/// Lines "case: reason", in the order of the cases.
std::string unsupportedIn(const Cases &cases) {
  std::string text;
  for (const auto &[name, outcome] : cases.outcomes)
    if (outcome.kind == Outcome::Kind::unsupported)
      text += name + ": " + outcome.reason + "\n";
  return text;
}

std::string contentsOf(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// SLUICE_ONNX_WRITE=1 writes the list anew.
TEST_F(Onnx, OperatorsAgreeWithTheReference) {
  Cases cases("node");
  cases.expectNoneWrong();
  if (std::getenv("SLUICE_ONNX_CASES"))
    return;
  EXPECT_GE(cases.right(), 1100);
  std::string list = SLUICE_SOURCE_DIR "/tests/onnx/unsupported.txt", found = unsupportedIn(cases);
  if (std::getenv("SLUICE_ONNX_WRITE"))
    std::ofstream(list) << found;
  EXPECT_EQ(contentsOf(list), found) << "the list of unsupported cases is out of date; SLUICE_ONNX_WRITE=1 writes it";
}

TEST_F(Onnx, ConvertedModelsAgree) {
  for (const auto &[kind, all] : {std::pair("pytorch-converted", 82), std::pair("pytorch-operator", 35)}) {
    Cases cases(kind);
    cases.expectNoneWrong();
    if (!std::getenv("SLUICE_ONNX_CASES"))
      EXPECT_EQ(cases.right(), all);
  }
}

TEST_F(Onnx, SimpleModelsAgree) { Cases("simple").expectNoneWrong(); }

/// Nine convolutional networks, of which VGG-19 has 575 MB of equal weights.
TEST_F(Onnx, NetworksAgree) {
  if (!std::getenv("SLUICE_TEST_FULL") && !std::getenv("SLUICE_ONNX_CASES"))
    GTEST_SKIP() << "runs with SLUICE_TEST_FULL";
  Cases cases("light");
  cases.expectNoneWrong();
  if (!std::getenv("SLUICE_ONNX_CASES"))
    EXPECT_EQ(cases.right(), 9);
}

} // namespace
