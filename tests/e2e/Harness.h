// Compiles files of model programs in process and runs them, for end-to-end tests.
#pragma once

#include "ir/reference/Interpreter.h"
#include "passes/driver/Pipeline.h"
#include "runtime/instance/Instance.h"
#include "tests/TemporaryFolder.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::test {

/// Element values as doubles, by name.
using Values = std::map<std::string, std::vector<double>>;

/// The `.mlir` text that a program of `models/` writes with these arguments.
std::string modelText(const std::string &program, const std::string &arguments = "");

/// `text` with every `from` replaced; fails the test if there is none.
std::string replaced(std::string text, const std::string &from, const std::string &to);

/// Options for running a compiled model.
struct RunOptions {
  int threads = 2;
  std::string sim = "";                                // settings of the virtual accelerators
  std::string plan = "";                               // replaces the model's plan
  std::string code = "";                               // replaces the device code of the first backend
  const sluice_backend_run *simulator = nullptr;       // replaces the plugin
  bool replays = true;                                 // capture and replay accelerator work
  const sluice_backend_run *cuda = nullptr;            // replaces the plugin
  std::shared_ptr<runtime::DevicePool> pool = nullptr; // of several models; null: a new one
};

/// A compiled model, loaded.
class Compiled {
public:
  Compiled(const std::string &text, const CompileOptions &options = {}, const RunOptions &run = {},
           passes::PipelineInputs inputs = {});
  ~Compiled();

  /// Restarts with other options and zero states.
  void restart(const RunOptions &run);

  void init(uint64_t seed);
  void setState(const std::string &name, const std::vector<double> &values);
  std::vector<double> state(const std::string &name) const;
  std::vector<std::byte> stateBytes() const; // all states but derived ones, for bitwise comparisons
  const runtime::Plan &plan() const { return instance->plan(); }
  std::string planText() const;
  /// The linked artifact, for the C API.
  const sluice_artifact &artifact() const;
  /// The artifact's sections of device code.
  std::vector<std::string> code() const;
  runtime::Instance &program() { return *instance; }

  /// Runs an entry point on `rows` rows and returns its outputs.
  Values run(const std::string &entry, const Values &inputs, int64_t rows);
  /// The same without reading the outputs, so that nothing waits for them. The host writes the inputs in order,
  /// beginning with number `first`.
  void submit(const std::string &entry, const Values &inputs, int64_t rows, size_t first = 0);
  /// The outputs of the last call, read in order, beginning with number `first`.
  Values outputs(const std::string &entry, int64_t rows, size_t first = 0);

private:
  TemporaryFolder folder;
  void *library = nullptr;
  std::string otherPlan, otherCode;
  std::vector<sluice_code_section> sections;
  sluice_artifact changed{};
  std::unique_ptr<runtime::Instance> instance;
};

/// The norm of the difference from the truth, relative to the norm of the truth. Different sizes fail the test.
double relativeError(const std::vector<double> &value, const std::vector<double> &truth);

/// The data type of a precision.
std::optional<DType> dtypeOf(ir::Precision precision);

/// The compiler's error for an invalid model.
std::string compileError(const std::string &text);

/// The same model in the reference interpreter, in double precision.
class Interpreted {
public:
  /// Runs the phases up to `phase`.
  explicit Interpreted(const std::string &text, const std::string &phase = "train", const CompileOptions &options = {},
                       passes::PipelineInputs inputs = {});

  ir::StateMap states;
  ir::InterpreterOptions options; // of all runs
  void init(uint64_t seed);
  void setState(const std::string &name, const std::vector<double> &values) { states.at(name).data = values; }
  std::vector<double> state(const std::string &name) const { return states.at(name).data; }
  Values run(const std::string &entry, const Values &inputs, int64_t rows);
  mlir::ModuleOp module() { return *op; }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> op;
};

} // namespace sluice::test
