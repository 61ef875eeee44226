// Compiles model programs' files in process and runs them, for end-to-end tests.
#pragma once

#include "ir/Interpreter.h"
#include "passes/Pipeline.h"
#include "runtime/Instance.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::test {

/// Element values as doubles, by name.
using Values = std::map<std::string, std::vector<double>>;

/// The `.mlir` text that a program of `models/` writes for these arguments.
std::string modelText(const std::string &program, const std::string &arguments = "");

/// `text` with every `from` replaced; fails the test if there is none.
std::string replaced(std::string text, const std::string &from, const std::string &to);

/// A compiled model, loaded.
class Compiled {
public:
  Compiled(const std::string &text, passes::PipelineOptions options = {}, int threads = 2);
  ~Compiled();

  void init(uint64_t seed);
  void setState(const std::string &name, const std::vector<double> &values);
  std::vector<double> state(const std::string &name) const;
  std::vector<std::byte> stateBytes() const; // of all states, for comparing bits
  const runtime::Plan &plan() const { return instance->plan(); }

  /// Runs an entry point on `rows` rows and gives its outputs.
  Values run(const std::string &entry, const Values &inputs, int64_t rows);

private:
  std::string folder;
  void *library = nullptr;
  std::unique_ptr<runtime::Instance> instance;
};

/// The same model in the reference interpreter, in double precision.
class Interpreted {
public:
  /// Runs the phases up to `phase`.
  explicit Interpreted(const std::string &text, const std::string &phase = "train", passes::PipelineOptions options = {});

  ir::StateMap states;
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
