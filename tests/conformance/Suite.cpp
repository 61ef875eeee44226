#include "tests/conformance/Suite.h"

#include "runtime/base/Child.h"

#include <fstream>

namespace sluice::conformance {

static constexpr std::chrono::seconds kLimit{60}; // for one test

void expect(bool holds, const std::string &what) {
  if (!holds)
    throw Failed(what);
}

Exclusions readExclusions(const std::string &path) {
  Exclusions exclusions;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with("#"))
      continue;
    size_t colon = line.find(": ");
    if (colon == std::string::npos || colon + 2 == line.size())
      throw std::runtime_error(path + ": '" + line + "' is not a test, a colon and a reason");
    exclusions.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return exclusions;
}

/// The reason if the test is excluded, or null.
static const std::string *findExclusion(const Exclusions &exclusions, const std::string &test) {
  for (const auto &[pattern, reason] : exclusions) {
    bool prefix = pattern.ends_with("*");
    if (prefix ? test.starts_with(pattern.substr(0, pattern.size() - 1)) : test == pattern)
      return &reason;
  }
  return nullptr;
}

static Outcome runTest(const Test &test, const Subject &subject) {
  auto body = [&](runtime::ChildReport &report) {
    report.step("the test");
    try {
      std::string note = test.run(subject);
      if (!note.empty())
        report.say("passed", note);
    } catch (const Skipped &why) {
      report.say("skipped", why.what());
    } catch (const std::exception &why) {
      report.say("failed", why.what());
    }
  };
  runtime::ChildResult result = runtime::runInChild(body, kLimit);
  if (!result.failure.empty())
    return {test.name, Result::Failed, result.failure};
  if (result.said.empty())
    return {test.name, Result::Passed, ""};
  const auto &[verdict, why] = result.said.front();
  return {test.name,
          verdict == "passed"    ? Result::Passed
          : verdict == "skipped" ? Result::Skipped
                                 : Result::Failed,
          why};
}

std::vector<Test> runHalfTests() {
  std::vector<Test> tests;
  for (const auto &part :
       {memoryTests, copyTests, queueTests, waitTests, sequenceTests, groupTests, collectiveTests, errorTests})
    for (Test &test : part())
      tests.push_back(std::move(test));
  return tests;
}

void runSuite(const Subject &subject, const std::vector<Test> &tests, const Exclusions &exclusions,
              const std::string &filter, const std::function<void(const Outcome &)> &report) {
  for (const Test &test : tests) {
    if (!test.name.starts_with(filter))
      continue;
    const std::string *reason = findExclusion(exclusions, test.name);
    report(reason ? Outcome{test.name, Result::Excluded, *reason} : runTest(test, subject));
  }
}

} // namespace sluice::conformance
