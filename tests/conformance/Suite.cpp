#include "tests/conformance/Suite.h"

#include "runtime/base/Child.h"

#include <algorithm>
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

static bool matches(const std::string &pattern, const std::string &test) {
  bool prefix = pattern.ends_with("*");
  return prefix ? test.starts_with(pattern.substr(0, pattern.size() - 1)) : test == pattern;
}

/// The reason if the test is excluded, or null.
static const std::string *findExclusion(const Exclusions &exclusions, const std::string &test) {
  for (const auto &[pattern, reason] : exclusions)
    if (matches(pattern, test))
      return &reason;
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
  for (const auto &part : {memoryTests, copyTests, queueTests, waitTests, signalTests, sequenceTests, groupTests,
                           collectiveTests, errorTests})
    for (Test &test : part())
      tests.push_back(std::move(test));
  return tests;
}

/// The outcome of a test in a strict run; `exclusion` is its reason, or null.
static Outcome judgeStrictly(const Outcome &outcome, const std::string *exclusion) {
  if (exclusion && outcome.result == Result::Passed)
    return {outcome.test, Result::Failed, "it passes, and is excluded: " + *exclusion};
  if (exclusion)
    return {outcome.test, Result::Excluded, *exclusion};
  if (outcome.result == Result::Skipped)
    return {outcome.test, Result::Failed, "it is skipped, and not excluded: " + outcome.detail};
  return outcome;
}

/// Exclusions of tests that no longer exist.
static void reportStale(const std::vector<Test> &tests, const Selection &selection,
                        const std::function<void(const Outcome &)> &report) {
  for (const auto &[pattern, reason] : selection.exclusions) {
    auto isMeant = [&](const Test &test) { return matches(pattern, test.name); };
    if (pattern.starts_with(selection.prefix) && std::none_of(tests.begin(), tests.end(), isMeant))
      report({pattern, Result::Failed, "it is excluded, and there is no such test"});
  }
}

void runSuite(const Subject &subject, const std::vector<Test> &tests, const Selection &selection,
              const std::function<void(const Outcome &)> &report) {
  for (const Test &test : tests) {
    if (!test.name.starts_with(selection.prefix))
      continue;
    const std::string *exclusion = findExclusion(selection.exclusions, test.name);
    if (selection.strict)
      report(judgeStrictly(runTest(test, subject), exclusion));
    else
      report(exclusion ? Outcome{test.name, Result::Excluded, *exclusion} : runTest(test, subject));
  }
  if (selection.strict)
    reportStale(tests, selection, report);
}

} // namespace sluice::conformance
