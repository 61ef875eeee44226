// The conformance suite: what every backend must do, checked through its C tables alone.
//
// A test runs in a child process, so that a backend which crashes or hangs fails that test and no other. What a backend
// cannot do by design it excludes in a file that it ships, `<backend>.exclusions` beside its shared object: a line
// `test: reason` for each, where the test may end in `*`. A strict run takes that file at its word: what is skipped fails
// unless it is excluded, and so does what is excluded and passes.
//
// Kernels run with all rows, with fewer and with none, on results that hold rubbish before, in every layout that the
// backend must accept, alone and several to a launch. A test that finds nothing to try is skipped, and says why; a
// suite in which no test passed is failed.
#pragma once

#include "sluice/backend/compile.h"
#include "sluice/backend/run.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::conformance {

/// The tested backend; a missing half is null.
struct Subject {
  std::string name;
  const sluice_backend_compile *compile = nullptr;
  const sluice_backend_run *run = nullptr;
  const sluice_backend_compile *host = nullptr; ///< for its services
  double patience = 10;                         ///< timeout of a test's waits, in seconds
  std::string settings = {};                    ///< of the run half, as products=own
};

/// Ends a test: the backend does not do what it must.
class Failed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Ends a test without a verdict: the backend has no such device, member or kernel, and need not have it.
class Skipped : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Throws Failed with `what` unless `holds`.
void expect(bool holds, const std::string &what);

struct Test {
  Test(std::string name, void (*body)(const Subject &))
      : name(std::move(name)), run([body](const Subject &subject) {
          body(subject);
          return std::string();
        }) {}
  Test(std::string name, std::function<std::string(const Subject &)> run)
      : name(std::move(name)), run(std::move(run)) {}

  std::string name; ///< "memory.zeroed", "op.einsum.f32"
  /// returns notes of a passed test: kernels that the backend rejected
  std::function<std::string(const Subject &)> run;
};

/// The tests of each part. Those of the run half, and of tables, need no compiler; `compilerTests` do.
std::vector<Test> memoryTests();
std::vector<Test> copyTests();
std::vector<Test> queueTests();
std::vector<Test> waitTests();
std::vector<Test> signalTests();
std::vector<Test> sequenceTests();
std::vector<Test> groupTests();
std::vector<Test> collectiveTests();
std::vector<Test> collectiveErrorTests();
std::vector<Test> errorTests();
std::vector<Test> viewTests();
std::vector<Test> opTests();
std::vector<Test> graphTests();
std::vector<Test> singleKernelTests();
std::vector<Test> runHalfTests();
std::vector<Test> compilerTests();

enum class Result { Passed, Failed, Skipped, Excluded };

struct Outcome {
  std::string test;
  Result result;
  std::string detail; ///< why it did not pass, or what was left out
};

/// Patterns of tests and the reasons why the backend does not pass them.
using Exclusions = std::vector<std::pair<std::string, std::string>>;

/// Reads a file of exclusions; there are none if it does not exist. Throws std::runtime_error on a line without a
/// reason.
Exclusions readExclusions(const std::string &path);

/// The selected tests, and the required outcome.
struct Selection {
  std::string prefix = {}; ///< of the tests' names
  Exclusions exclusions = {};
  bool strict = false; ///< nothing is left out but what the exclusions name, and all of that
};

/// Runs the tests that are selected; `report` is called after each.
void runSuite(const Subject &subject, const std::vector<Test> &tests, const Selection &selection,
              const std::function<void(const Outcome &)> &report);

} // namespace sluice::conformance
