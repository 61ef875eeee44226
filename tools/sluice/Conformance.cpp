// sluice conformance
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/backend/host.h"
#include "tests/conformance/Suite.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Installation.h"
#include "tools/sluice/Commands.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace sluice::compiler;
using namespace sluice::conformance;
namespace json = llvm::json;

namespace sluice::tool {

static const char kConformanceExamples[] = R"(Examples:
  sluice conformance --backend sim
  SLUICE_BACKEND_PATH=build sluice conformance --backend mine --only op.add
Tests that the backend cannot pass by design are listed in mine.exclusions, in the folder of its
shared object, as lines `test: reason`. With --strict that file must list every skipped test and no
other test.)";

namespace {

/// The backend under test, and its excluded tests.
struct Found {
  Subject subject;
  Exclusions exclusions;
};

} // namespace

/// Reads the exclusions in a folder, unless another folder had some.
static void addExclusions(llvm::StringRef folder, Found &found) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, found.subject.name + ".exclusions");
  if (found.exclusions.empty())
    found.exclusions = readExclusions(path.str().str());
}

static void addPlugin(const runtime::BackendFile &file, Found &found) {
  const sluice_backend &backend = runtime::loadBackend(file.path);
  if (file.hasCompile)
    found.subject.compile = backend.compile;
  if (file.hasRun)
    found.subject.run = backend.run;
  addExclusions(llvm::sys::path::parent_path(file.path), found);
}

static llvm::Expected<Found> findSubject(const std::string &name, double patience) {
  Found found{{name, nullptr, nullptr, &hostBackend(), patience}, {}};
  for (const sluice_backend_compile *builtIn : builtInBackends())
    if (name == builtIn->name)
      found.subject.compile = builtIn;
  std::string refused;
  try {
    if (name == hostBackend().name) {
      found.subject.run = sluice_host_backend()->run;
      addExclusions(findBackendFolder(), found);
      return found;
    }
    for (const runtime::BackendFile &file : tryBackends()) {
      if (!file.accepted())
        refused += fmt::format("; refused {}: {}", file.path, file.reason);
      else if (file.name == name)
        addPlugin(file, found);
    }
  } catch (const std::exception &error) {
    return makeError(ExitCode::Invalid, error.what());
  }
  if (!found.subject.compile && !found.subject.run)
    return makeError(ExitCode::Unsupported, "there is no backend '" + name + "'" + refused);
  return found;
}

static const char *nameOf(Result result) {
  static constexpr const char *kNames[] = {"passed", "failed", "skipped", "excluded"};
  return kNames[size_t(result)];
}

namespace {

struct Wanted {
  std::string name, only;
  bool strict = false;
  double patience = Subject().patience;
};

} // namespace

static llvm::Error checkBackend(const Wanted &wanted, const Talk &talk) {
  const std::string &name = wanted.name;
  auto found = findSubject(name, wanted.patience);
  if (!found)
    return found.takeError();
  json::Array outcomes;
  size_t counts[4] = {};
  std::vector<Test> tests = runHalfTests(), more = compilerTests();
  tests.insert(tests.end(), more.begin(), more.end());
  Selection selection{wanted.only, std::move(found->exclusions), wanted.strict};
  runSuite(found->subject, tests, selection, [&](const Outcome &outcome) {
    ++counts[size_t(outcome.result)];
    outcomes.push_back(
        json::Object{{"test", outcome.test}, {"result", nameOf(outcome.result)}, {"detail", outcome.detail}});
    bool shown = talk.verbose || (outcome.result != Result::Skipped && !outcome.detail.empty());
    if (!talk.json && shown && !talk.quiet)
      llvm::outs() << fmt::format("{:<9} {}{}{}\n", nameOf(outcome.result), outcome.test,
                                  outcome.detail.empty() ? "" : ": ", outcome.detail);
  });
  auto [passed, failed, skipped, excluded] = counts;
  if (talk.json)
    llvm::outs() << json::Value(json::Object{{"backend", name},
                                             {"passed", int64_t(passed)},
                                             {"failed", int64_t(failed)},
                                             {"skipped", int64_t(skipped)},
                                             {"excluded", int64_t(excluded)},
                                             {"tests", std::move(outcomes)}})
                 << '\n';
  else
    llvm::outs() << fmt::format("{}: {} passed, {} failed, {} skipped, {} excluded\n", name, passed, failed, skipped,
                                excluded);
  if (failed > 0)
    return makeError(ExitCode::Mismatch,
                     fmt::format("backend '{}' fails {} of {} tests", name, failed, passed + failed));
  if (passed == 0)
    return makeError(ExitCode::Mismatch, fmt::format("nothing of backend '{}' was tested", name));
  return llvm::Error::success();
}

Command addConformance(CLI::App &app) {
  CLI::App *command = app.add_subcommand("conformance", "Check a backend against the contract of backends");
  command->footer(kConformanceExamples);
  auto wanted = std::make_shared<Wanted>();
  help::beginGroup(*command, "Tests");
  command->add_option("--backend", wanted->name, "Backend to check, as listed by `sluice devices`")
      ->required()
      ->type_name("NAME");
  command->add_option("--only", wanted->only, "Run only the tests whose names begin with this")->type_name("PREFIX");
  command->add_flag("--strict", wanted->strict, "Fail if a skipped test is not excluded, or an excluded test passes");
  command->add_option("--patience", wanted->patience, "Maximum time that a test waits for an event, at most 1000")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(help::number(0, 1000));
  return {command, [=](const Talk &talk) { return checkBackend(*wanted, talk); }};
}

} // namespace sluice::tool
