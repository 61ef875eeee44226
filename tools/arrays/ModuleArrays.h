// The arrays of modules outside of a graph.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "sluice/module.h"
#include "tools/arrays/ArrayImpl.h"

namespace sluice::detail {

/// A state of a module, and its elements.
struct ModuleState {
  std::string name;
  bool isParameter = false, isBuffer = false, isFrozen = false;
  mlir::Value read; ///< in the graph of the modules
  Array array;
  mlir::Attribute init = nullptr; ///< the rule of its initial values
};

/// The arrays of a whole model.
struct ModuleArrays {
  uint64_t model = 0, seed = 0;    ///< numbers of the model, and of its random numbers
  std::vector<ModuleState> states; ///< in the order of their creation
  int64_t changes = -1;            ///< those of the graph when the members were updated
  std::string modes;               ///< of all modules, with their pins
  bool isTraining = false;         ///< whether a module is
  bool isPending = false;          ///< whether a lazy layer has no parameters yet
  Array key;                       ///< of random numbers of the next call

  /// Whether the states are on several devices.
  bool isSpread() const;
};

/// Access to the private members of modules.
struct ModuleAccess {
  /// The module and those below it, parents first.
  static std::vector<nn::Module *> parts(nn::Module &module);
  static nn::Module &root(nn::Module &module);
  static GraphImpl &graph(const nn::Module &module) { return *module.graph; }
  static std::size_t number(const nn::Module &module) { return module.number; }
  static std::weak_ptr<nn::Module *> self(const nn::Module &module) { return module.self; }
  static const std::string &path(const nn::Module &module) { return module.path; }
  static bool isTraining(const nn::Module &module) { return module.isTraining; }
  static void setTraining(nn::Module &module, bool mode) { module.isTraining = mode; }
  static bool isPending(const nn::Module &module) { return module.isDelayed && module.members.empty(); }
  static const std::optional<Device> &pin(const nn::Module &module) { return module.pinned; }
  /// The device that is chosen for the states of a module.
  static std::optional<Device> device(const nn::Module &module);
  /// The states of the module itself that are not tied to another one: name, read.
  static std::vector<std::pair<std::string, mlir::Value>> states(const nn::Module &module);
};

/// The arrays of the model that a module belongs to, created, and moved to their devices. Throws Error if it belongs to
/// a graph.
ModuleArrays &arraysOf(nn::Module &module, std::source_location where);
/// Calls forward once and drops the result, so that lazy layers create their states. Does nothing if all have states.
void createStates(nn::Module &module, llvm::ArrayRef<Tensor> x, std::source_location where);
/// Attaches gradients to the parameters that require one.
void attachGradients(ModuleArrays &its, std::source_location where);
/// Puts the key on the device of the states or, without states, on `otherwise`.
void placeKey(ModuleArrays &its, const Device &otherwise, std::source_location where);
/// New initial values of the states of the model, in their order, from a key and on its device.
std::vector<Array> firstArrays(nn::Module &module, const Array &key, std::source_location where);
/// Those of one module and its submodules.
std::vector<ModuleState *> statesOf(nn::Module &module, std::source_location where);

} // namespace sluice::detail
