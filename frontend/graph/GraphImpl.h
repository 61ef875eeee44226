// What a Graph holds: the module under construction. Tools of this repository take the module from here.
#pragma once

#include "ir/Dialect.h"
#include "ir/Target.h"
#include "runtime/io/TensorSource.h"
#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/graph.h"
#include "sluice/init.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace sluice {

/// The graph's module, verified. Throws Error when it does not verify. The graph owns it: clone it to change it.
mlir::ModuleOp moduleOf(const Graph &graph, std::source_location where = std::source_location::current());

namespace detail {

class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
public:
  GraphImpl(std::string name, SourceLocation location);

  // --- named dimensions ---

  /// The type of a tensor with these dimensions; binds new names and throws on contradictions. `what` names the tensor.
  mlir::RankedTensorType typeOf(const std::string &what, DType dtype, const Shape &shape,
                                const SourceLocation &location);
  /// With `merged`, the batch and the dimension behind it are one.
  Shape shapeOf(mlir::Type type, bool merged = false) const;
  /// "[batch, 784]"
  std::string printShape(mlir::Type type, bool merged = false) const { return shapeOf(type, merged).str(); }
  /// `text` of a diagnostic, with the name of the batch dimension for `?` in its shapes.
  std::string withNames(llvm::StringRef text) const;
  /// The size of a dimension in a type (kDynamic for the batch), or nothing if its name is not known.
  std::optional<int64_t> sizeOf(const Dim &dim) const;

  // --- ops ---

  /// Builds an op; a failure of its inference or verifier is returned as text in `failure`.
  mlir::Operation *build(llvm::StringRef op, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                         const SourceLocation &location, std::string &failure);
  /// The value in a buffer of its own on a device; null: placed later.
  mlir::Value copy(mlir::Value value, mlir::StringAttr device, ir::CopyReason reason, const SourceLocation &location);
  /// The ops that one call of the API built, where calls within it count as part of it.
  llvm::SmallVector<mlir::Operation *> opsOfCall(mlir::Operation *op);
  mlir::Location toLocation(const SourceLocation &location);
  /// The location if it is in user code; otherwise that of the module call in progress, or else of the line that
  /// created `operand`.
  SourceLocation userLine(const SourceLocation &location, mlir::Value operand);
  /// Whether new ops may read a value. Values of a step or branch that has ended are not visible.
  bool isVisible(mlir::Value value) const { return llvm::is_contained(openBlocks, value.getParentBlock()); }
  mlir::Type elementType(DType dtype);

  // --- devices ---

  const ir::Target &target() const { return targetDevices; }
  /// Throws when a device that is in use would vanish.
  void setTarget(ir::Target target, const SourceLocation &location);
  /// The logical name of a device that `function` uses from now on. Throws unless the target has it.
  mlir::StringAttr use(const char *function, const Device &device, const SourceLocation &location);
  /// Where things are created; null: placed later.
  mlir::StringAttr scopeDevice();
  Device defaultGpu() const;
  /// Where a value lives, fixed or pinned; null: not known yet.
  mlir::StringAttr deviceOf(mlir::Value value);

  // --- structure ---

  /// Lives where things are created.
  mlir::Value addInput(const std::string &name, mlir::RankedTensorType type, const SourceLocation &location);
  /// Whether this is the name of an entry point, including those that the compiler adds.
  bool isEntryPoint(llvm::StringRef name);
  /// Throws if another state or an entry point has the name. The state is kept on `device`; null: placed later.
  ir::StateOp addState(ir::StateKind kind, const std::string &name, mlir::RankedTensorType type, const init::Init &init,
                       mlir::StringAttr device, const SourceLocation &location);
  ir::StateOp addState(ir::StateKind kind, const std::string &name, mlir::RankedTensorType type, ir::InitAttr begin,
                       mlir::StringAttr device, const SourceLocation &location);
  /// The state's value, fixed on a device unless that is null.
  mlir::Value read(ir::StateOp state, mlir::StringAttr device, const SourceLocation &location);
  /// The key of the graph's random numbers, from a state of its own.
  mlir::Value readKey(const SourceLocation &location);
  /// Throws when the rule makes no sense; `state` names what begins so.
  ir::InitAttr initAttr(const init::Init &init, const std::string &state, mlir::RankedTensorType type,
                        const SourceLocation &location);
  /// The file of a rule that is data: the tensor that it names, or else this one.
  runtime::TensorSource open(const init::Init &init, const std::string &tensor);
  /// A constant that stands beside the text.
  mlir::Value constant(const runtime::TensorSource &source, mlir::RankedTensorType type,
                       const SourceLocation &location);
  /// Whether there is anything to stand beside the text, and writes it.
  bool hasData() const { return !data.empty(); }
  void writeData(const std::string &path, const SourceLocation &location) const;
  /// The state that a value reads, or null.
  ir::StateOp stateOf(mlir::Value value);
  ir::StateOp findState(llvm::StringRef name);
  /// A parameter on a device that begins as another one does, and changes by itself from then on.
  ir::StateOp addLike(ir::StateOp parameter, const Device &device, const SourceLocation &location);
  /// Of a state, and of those that are like it.
  void setInit(ir::StateOp state, ir::InitAttr begin);
  /// The op that sets a state after a training step, or after a call of the entry point under construction; or null.
  ir::SetOp findSet(llvm::StringRef state);
  /// Adds such an op for a state that has none.
  void addSet(ir::StateOp state, mlir::Value value, const SourceLocation &location);
  void eraseSet(ir::SetOp set);
  /// The name of the entry point under construction; null outside of any.
  mlir::StringAttr entryAttr();
  /// Makes one parameter another name of a second one: its own state is gone, and handles of it are handles of the other.
  void tie(const Tensor &parameter, const Tensor &to);
  /// What stands for the value of a parameter that was tied.
  mlir::Value resolve(mlir::Value value) const;
  /// "'fc1.weight' " of a state or input; nothing of other values.
  std::string nameOf(mlir::Value value);
  /// Whether a parameter, or the parameter that it is `like`, has requires_grad(false).
  bool isFrozen(ir::StateOp parameter);
  /// The op that trains parameters, or null.
  ir::MinimizeOp findMinimize();
  /// Whether `minimize` updates a parameter.
  bool isTrained(llvm::StringRef parameter);
  /// Throws unless `name` is new among the outputs and metrics, or among the outputs of the entry point under construction.
  void claimResult(const std::string &name, const SourceLocation &location);
  /// What values are made of: ops of the graph, those in regions of others apart.
  llvm::SetVector<mlir::Operation *> opsBehind(mlir::ValueRange values);
  /// The names of the parameters that a value depends on, in order of their creation.
  std::vector<std::string> parametersBehind(mlir::Value value);
  /// The same for the parameters that a gradient of a loss reaches and that require one. PyTorch's optimizers update
  /// the same parameters.
  std::vector<std::string> parametersReached(mlir::Value loss);
  /// Whether a gradient flows from a value to another that it is made of, or is.
  bool dependsOn(mlir::Value value, mlir::Value on);

  /// Empty, or why the module does not verify.
  std::string verify();
  std::string print();

  std::string name;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::GraphOp graph;
  mlir::OpBuilder builder; ///< at the end of the graph's body
  DType dtype = DType::f32;
  std::vector<mlir::Block *> openBlocks;     ///< in construction: the graph's body, then steps and branches
  std::vector<std::source_location> callers; ///< lines whose module calls are in progress, innermost last
  mlir::StringAttr pin;                      ///< of the module whose call is in progress
  std::optional<Device> scope;               ///< of the innermost DeviceScope
  std::string entry;                         ///< under construction; empty outside of any
  /// Of the replica whose call is in progress: what stands for the states of its module.
  std::optional<llvm::DenseMap<mlir::Value, mlir::Value>> replica;
  /// A module: modules are gone when the graph is saved.
  struct Layer {
    std::string name;             ///< for `get_submodule`; the whole model has none
    std::optional<size_t> parent; ///< among the layers, before it
    SourceLocation where;         ///< of the first call; before that, of the declaration
    std::vector<std::string> states;
    std::vector<mlir::Value> results; ///< of its calls
  };
  std::vector<Layer> layers;
  llvm::StringSet<> frozen;                            ///< parameters with requires_grad(false)
  std::vector<std::unique_ptr<mlir::Block>> abandoned; ///< failed steps and branches, whose values users may hold
  int64_t streams = 0;                                 ///< of random numbers, so far
  unsigned callDepth = 0, callNumber = 0;              ///< calls of the API in progress, and outermost ones so far

private:
  /// The parameter that a handle of `tie` is of. Throws where it is another value.
  ir::StateOp tiedState(const std::string &what, const Tensor &tensor, const SourceLocation &location);
  ir::StateOp createState(ir::StateKind kind, llvm::StringRef name, mlir::RankedTensorType type, ir::InitAttr begin,
                          mlir::TypeAttr physical, const SourceLocation &location);

  ir::InitAttr dataAttr(const init::Init &init, const std::string &state, mlir::RankedTensorType type,
                        const SourceLocation &location);
  /// Keeps what a state begins with.
  ir::InitAttr keepData(const std::string &state, const runtime::TensorSource &source);

  struct Binding {
    int64_t size;
    SourceLocation location;
  };
  llvm::StringMap<Binding> dims;
  std::string batch; ///< the name of the symbolic dimension
  SourceLocation batchLocation;
  llvm::StringMap<SourceLocation> inputs,
      results; ///< of the latter, those of an entry point behind its name and a space
  ir::Target targetDevices;
  int64_t lastUsed = -1; ///< the last accelerator in use
  llvm::StringMap<ir::StateOp> states;
  std::vector<ir::StateOp> likes; ///< states that begin with the values of another one
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, ir::SetOp> sets; ///< by state and entry point
  mlir::Value key; ///< null until random numbers are drawn
  llvm::DenseMap<mlir::Operation *, unsigned> callOf;
  llvm::DenseMap<mlir::Value, llvm::SetVector<mlir::Value>>
      differentiable;                                ///< the values that a gradient of each reaches
  std::map<std::string, runtime::TensorSource> data; ///< that states begin with, by their names
  std::map<std::string, std::shared_ptr<const runtime::SafetensorsFile>> dataFiles;
  int64_t constants = 0;                                 ///< beside the text, so far
  llvm::DenseMap<mlir::Value, mlir::Value> tied;         ///< the first read of parameters that were tied, and of which
  std::vector<mlir::OwningOpRef<ir::GetOp>> tiedHandles; ///< no longer in the graph; handles of users name them
};

/// What the public handles hide.
struct Access {
  static GraphImpl *graph(const Tensor &tensor) { return tensor.graph.get(); }
  static std::shared_ptr<GraphImpl> graph(const Graph &graph) { return graph.graph; }
  /// In a replica's call, its copy of a state.
  static mlir::Value value(const Tensor &tensor) {
    mlir::Value value = mlir::Value::getFromOpaquePointer(tensor.value);
    if (value)
      value = tensor.graph->resolve(value);
    mlir::Value copy = value && tensor.graph->replica ? tensor.graph->replica->lookup(value) : mlir::Value();
    return copy ? copy : value;
  }
  static Tensor tensor(GraphImpl &graph, mlir::Value value, bool merged = false);
  /// Whether the batch and the dimension behind it are seen as one.
  static bool isMerged(const Tensor &tensor) { return tensor.merged; }
};

DType dtypeOf(mlir::Type type);
/// The device of a logical name of the target.
Device toDevice(llvm::StringRef name);
/// Whether a name matches a pattern in which '*' stands for any characters.
bool matches(std::string_view pattern, std::string_view name);
/// Where the user wrote what became a value.
SourceLocation locationOf(mlir::Location location);

} // namespace detail
} // namespace sluice
