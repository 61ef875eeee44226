// The contents of a Graph: the module under construction. Tools of this repository access the module through this
// header.
#pragma once

#include "frontend/graph/ContextLease.h"
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

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace sluice {

/// The graph's module, verified. Throws Error if verification fails. The graph owns it: clone it before changing it.
mlir::ModuleOp moduleOf(const Graph &graph, std::source_location where = std::source_location::current());

namespace nn {
class Module;
}

namespace detail {

class GraphImpl;

/// A call on arrays in progress: modules of one graph build their computation in another graph, in which values stand
/// for their states.
struct ArrayCall {
  GraphImpl &target;
  bool isTraining = false;    ///< states are written
  bool createsStates = false; ///< layers may create states, which become inputs of the target
  /// By read of a state in its graph: the latest value in the target.
  llvm::DenseMap<mlir::Value, mlir::Value> values = llvm::DenseMap<mlir::Value, mlir::Value>();
  mlir::Value key = {}; ///< of random numbers; null if the model is not training
  int64_t streams = 0;  ///< number of random streams so far; calls have equal streams and different keys

  /// The value for a read. Throws Error for other values.
  mlir::Value valueOf(mlir::Value read) const;
  /// Adds a state that a layer has created.
  void add(const std::string &state, mlir::Value read, const SourceLocation &location);
};

class GraphImpl : public std::enable_shared_from_this<GraphImpl> {
public:
  GraphImpl(std::string name, SourceLocation location);

  // --- named dimensions ---

  /// The type of a tensor with these dimensions. Binds new names and throws on contradictions. `what` names the tensor.
  mlir::RankedTensorType typeOf(const std::string &what, DType dtype, const Shape &shape,
                                const SourceLocation &location);
  /// With `merged`, the batch and the following dimension count as one.
  Shape shapeOf(mlir::Type type, bool merged = false) const;
  /// The dimension without a size, if the graph has one.
  Dim batchDim() const { return Dim(batch); }
  /// "[batch, 784]"
  std::string printShape(mlir::Type type, bool merged = false) const { return shapeOf(type, merged).str(); }
  /// `text` of a diagnostic, with the name of the batch dimension for `?` in its shapes.
  std::string withNames(llvm::StringRef text) const;
  /// The size of a dimension in a type (kDynamic for the batch); nothing if its name is unknown.
  std::optional<int64_t> sizeOf(const Dim &dim) const;

  // --- ops ---

  /// Builds an op; returns an inference or verifier failure as text in `failure`.
  mlir::Operation *build(llvm::StringRef op, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                         const SourceLocation &location, std::string &failure);
  /// The value in a separate buffer on a device; null: placed later.
  mlir::Value copy(mlir::Value value, mlir::StringAttr device, ir::CopyReason reason, const SourceLocation &location);
  /// The last op; null if there is none.
  mlir::Operation *lastOp() { return openBlocks.front()->empty() ? nullptr : &openBlocks.front()->back(); }
  /// Erases the ops after `last` (null: all) without effect on which neither other ops nor values of `kept` depend, and
  /// the parameters and constants that only they read. Handles to their values must not be used later.
  void eraseUnusedAfter(mlir::Operation *last, llvm::ArrayRef<Tensor> kept);
  /// The ops that one outermost call of the API built.
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
  /// Throws if the new target lacks a device in use.
  void setTarget(ir::Target target, const SourceLocation &location);
  /// The logical name of a device, marked as used by `function`. Throws unless the target has the device.
  mlir::StringAttr use(const char *function, const Device &device, const SourceLocation &location);
  /// The device for new values; null: placed later.
  mlir::StringAttr scopeDevice();
  Device defaultGpu() const;
  /// The device of a value, fixed or pinned; null: unknown yet.
  mlir::StringAttr deviceOf(mlir::Value value);

  // --- structure ---

  /// Records facts about the file of an imported model, such as {"producer", "pytorch"}, for `info`. Values are made
  /// valid UTF-8 and cut to a limit; facts without a value, and those beyond a limit, are left out.
  void setImportedFrom(const std::vector<std::pair<std::string, std::string>> &facts);
  /// Sets the location of the model itself, such as the name of an imported file.
  void setLocation(const std::string &place);

  /// The input is placed on the scope's device.
  mlir::Value addInput(const std::string &name, mlir::RankedTensorType type, const SourceLocation &location);
  /// An input that is on a device from the start; null: on the host or wherever it is needed.
  mlir::Value addInputOn(mlir::StringAttr device, const std::string &name, mlir::RankedTensorType type,
                         const SourceLocation &location);
  /// Adds inputs x0, x1, ... of these types, which include the devices. Takes linear time: adding a single input copies
  /// the list of names.
  std::vector<mlir::Value> addInputs(llvm::ArrayRef<mlir::Type> types, const SourceLocation &location);
  /// Whether this is the name of an entry point, including those that the compiler adds.
  bool isEntryPoint(llvm::StringRef name);
  /// The name is any that a tensor of a weights file may have: UTF-8 without control characters (ir/text/Names.h).
  /// Throws for others, and if another state or an entry point has it. The state is placed on `device`; null: placed
  /// later.
  ir::StateOp addState(ir::StateKind kind, const std::string &name, mlir::RankedTensorType type, const init::Init &init,
                       mlir::StringAttr device, const SourceLocation &location);
  ir::StateOp addState(ir::StateKind kind, const std::string &name, mlir::RankedTensorType type, ir::InitAttr begin,
                       mlir::StringAttr device, const SourceLocation &location);
  /// The state's value, fixed on a device unless `device` is null.
  mlir::Value read(ir::StateOp state, mlir::StringAttr device, const SourceLocation &location);
  /// The key of random numbers: the key of the call on arrays in progress, or else a separate state of the graph.
  mlir::Value readKey(const SourceLocation &location);
  /// The number of a new random stream of this key.
  int64_t nextStream() { return running && running->key ? running->streams++ : streams++; }
  /// Throws if the rule is invalid; `state` names the initialized state.
  ir::InitAttr initAttr(const init::Init &init, const std::string &state, mlir::RankedTensorType type,
                        const SourceLocation &location);
  /// The data file of a rule: the tensor that the rule names, or else `tensor`.
  runtime::TensorSource open(const init::Init &init, const std::string &tensor);
  /// A constant stored in the data file.
  mlir::Value constant(const runtime::TensorSource &source, mlir::RankedTensorType type,
                       const SourceLocation &location);
  /// The same for large constants; small ones are in the text of the graph.
  mlir::Value constantOf(const runtime::TensorSource &source, mlir::RankedTensorType type,
                         const SourceLocation &location);
  /// The initial data of a state that begins with data.
  const runtime::TensorSource &dataOf(llvm::StringRef state) const { return data.at(state.str()); }
  /// Whether the graph has data outside its text; the second function writes this data.
  bool hasData() const { return !data.empty(); }
  void writeData(const std::string &path, const SourceLocation &location) const;
  /// The state of which the value is a read; else null.
  ir::StateOp stateOf(mlir::Value value);
  ir::StateOp findState(llvm::StringRef name);
  /// Gives a state another name, which is free, also where it is read.
  void renameState(const std::string &state, const std::string &to);
  /// A parameter on a device with the same initial value as another one and separate updates.
  ir::StateOp addLike(ir::StateOp parameter, const Device &device, const SourceLocation &location);
  /// Sets the initial value of a state and of its copies.
  void setInit(ir::StateOp state, ir::InitAttr begin);
  /// The op that sets a state after a training step, or after a call of the entry point under construction; else null.
  ir::SetOp findSet(llvm::StringRef state);
  /// Adds this op for a state without one.
  void addSet(ir::StateOp state, mlir::Value value, const SourceLocation &location);
  void eraseSet(ir::SetOp set);
  /// The name of the entry point under construction; null if there is none.
  mlir::StringAttr entryAttr();
  /// Makes one parameter an alias of a second one: removes its state, and redirects its handles to the second one.
  void tie(const Tensor &parameter, const Tensor &to);
  /// Replaces the value of a tied parameter by the value of its target.
  mlir::Value resolve(mlir::Value value) const;
  /// "'fc1.weight' " for a state or input; empty for other values.
  std::string nameOf(mlir::Value value);
  /// Whether a parameter, or the parameter that it is `like`, has requires_grad(false).
  bool isFrozen(ir::StateOp parameter);
  /// The op that trains parameters, or null.
  ir::MinimizeOp findMinimize();
  /// Whether `minimize` updates a parameter.
  bool isTrained(llvm::StringRef parameter);
  /// Throws unless `name` is new among the outputs and metrics, or among the outputs of the entry point under
  /// construction.
  void claimResult(const std::string &name, const SourceLocation &location);
  /// Throws unless the name is new among the inputs, or among those of one size of Graph::sizes.
  void claimInput(const std::string &name, const SourceLocation &location);
  /// The ops that values depend on, without ops nested in regions.
  llvm::SetVector<mlir::Operation *> opsBehind(mlir::ValueRange values);
  /// The names of the parameters that a value depends on, in creation order.
  std::vector<std::string> parametersBehind(mlir::Value value);
  /// The names of the parameters that require a gradient and that a gradient of the loss reaches. PyTorch's optimizers
  /// update the same parameters.
  std::vector<std::string> parametersReached(mlir::Value loss);
  /// Whether a gradient flows from a value to another value that it depends on or equals.
  bool dependsOn(mlir::Value value, mlir::Value on);

  /// The reason why the module does not verify; empty if it verifies.
  std::string verify();
  std::string print();

  std::string name;
  ContextLease lease; ///< outlives everything of the context
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::GraphOp graph;
  mlir::OpBuilder builder; ///< at the end of the innermost open block
  DType dtype = DType::f32;
  ArrayCall *call = nullptr;    ///< a call on arrays of this graph's modules
  ArrayCall *running = nullptr; ///< the call on arrays that builds in this graph
  /// In a graph that traces a function of arrays: runs before each call of a module outside of graphs, with the module
  /// and the operands of the call. Maps the states of the module's model to values of this graph.
  std::function<void(nn::Module &, llvm::ArrayRef<Tensor>)> enterModule;
  bool isTraining = false;                   ///< mode-dependent ops are built with their semantics in training
  bool isOutside = false;                    ///< of modules outside of a graph: holds only their states
  std::shared_ptr<void> arrays;              ///< of the states, if `isOutside`
  int64_t changes = 0;                       ///< of the states, devices and modes of its modules so far
  std::vector<mlir::Block *> openBlocks;     ///< blocks under construction: the graph's body, then steps and branches
  std::vector<std::source_location> callers; ///< lines whose module calls are in progress, innermost last
  mlir::StringAttr pin;                      ///< pin of the module whose call is in progress
  std::optional<Device> scope;               ///< device of the innermost DeviceScope
  std::string entry;                         ///< entry point under construction; empty if there is none
  bool isSized = false;                      ///< that entry point is one of Graph::sizes
  bool hasSizes = false;                     ///< so that predictions are entry points of sizes
  /// During a replica's call: the substitutes of its module's states.
  std::optional<llvm::DenseMap<mlir::Value, mlir::Value>> replica;
  /// The node of an imported model whose ops are built: their location, and that of errors. Empty for graphs of C++.
  std::string node;
  /// Record of a module: modules may be destroyed before the graph is saved.
  struct Layer {
    std::string name;             ///< for `get_submodule`; empty for the whole model
    std::optional<size_t> parent; ///< index among the layers, before this one
    SourceLocation where;         ///< line of the first call; before that, of the declaration
    std::vector<std::string> states;
    std::vector<mlir::Value> results; ///< results of its calls
  };
  std::vector<Layer> layers;
  llvm::StringSet<> frozen;                            ///< parameters with requires_grad(false)
  std::vector<std::unique_ptr<mlir::Block>> abandoned; ///< failed steps and branches, kept because users may hold their
                                                       ///< values
  mlir::Value key;                                     ///< of random numbers; null until they are used
  int64_t streams = 0;                                 ///< random streams so far
  unsigned callDepth = 0, callNumber = 0;              ///< API calls in progress, and outermost calls so far

private:
  /// Gives a mode-dependent op its semantics. Fails with a diagnostic if it cannot train.
  mlir::LogicalResult setMode(mlir::Operation *op);
  /// The parameter of a handle passed to `tie`. Throws for other values.
  ir::StateOp tiedState(const std::string &what, const Tensor &tensor, const SourceLocation &location);
  ir::StateOp createState(ir::StateKind kind, llvm::StringRef name, mlir::RankedTensorType type, ir::InitAttr begin,
                          mlir::TypeAttr physical, const SourceLocation &location);

  ir::InitAttr dataAttr(const init::Init &init, const std::string &state, mlir::RankedTensorType type,
                        const SourceLocation &location);
  /// Stores the initial data of a state.
  ir::InitAttr keepData(const std::string &state, const runtime::TensorSource &source);

  struct Binding {
    int64_t size;
    SourceLocation location;
  };
  llvm::StringMap<Binding> dims;
  std::string batch; ///< the name of the symbolic dimension
  SourceLocation batchLocation;
  llvm::StringMap<SourceLocation> inputs,
      results; ///< names of inputs and results; results of an entry point are prefixed by its name and a line break
  llvm::StringMap<SourceLocation> sizedInputs; ///< of Graph::sizes, with the prefix of an entry point's results
  llvm::StringSet<> sizedNames;                ///< their names
  ir::Target targetDevices;
  int64_t lastUsed = -1; ///< the last accelerator in use
  llvm::StringMap<ir::StateOp> states;
  std::vector<ir::StateOp> likes; ///< states that start with the values of another state
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, ir::SetOp> sets; ///< by state and entry point
  llvm::DenseMap<mlir::Operation *, unsigned> callOf;
  llvm::DenseMap<mlir::Value, llvm::SetVector<mlir::Value>>
      differentiable;                                ///< by loss, the values that a gradient reaches
  std::map<std::string, runtime::TensorSource> data; ///< initial data of states, by name
  std::map<std::string, std::shared_ptr<const runtime::SafetensorsFile>> dataFiles;
  int64_t constants = 0;                                 ///< constants in the data file so far
  llvm::DenseMap<mlir::Value, mlir::Value> tied;         ///< by first read of a tied parameter, its target
  std::vector<mlir::OwningOpRef<ir::GetOp>> tiedHandles; ///< removed from the graph; users' handles name them
};

/// Access to the private members of public handles.
struct Access {
  /// During a call on arrays, the graph in which the modules build.
  static GraphImpl *graph(const Tensor &tensor) {
    GraphImpl *graph = tensor.graph.get();
    return graph && graph->call ? &graph->call->target : graph;
  }
  /// The call on arrays in which the tensor is a state; else null.
  static ArrayCall *call(const Tensor &tensor) { return tensor.graph ? tensor.graph->call : nullptr; }
  static std::shared_ptr<GraphImpl> graph(const Graph &graph) { return graph.graph; }
  static Graph handle(GraphImpl &graph) { return Graph(graph.shared_from_this()); }
  /// The value of the handle itself.
  static mlir::Value ownValue(const Tensor &tensor) {
    mlir::Value value = mlir::Value::getFromOpaquePointer(tensor.value);
    return value ? tensor.graph->resolve(value) : value;
  }
  /// During a replica's call, the replica's copy of a state; during a call on arrays, its value in the target.
  static mlir::Value value(const Tensor &tensor) {
    mlir::Value value = ownValue(tensor);
    if (value && tensor.graph->call)
      return tensor.graph->call->valueOf(value);
    mlir::Value copy = value && tensor.graph->replica ? tensor.graph->replica->lookup(value) : mlir::Value();
    return copy ? copy : value;
  }
  static Tensor tensor(GraphImpl &graph, mlir::Value value, bool merged = false);
  /// Whether users see the batch and the following dimension as one.
  static bool isMerged(const Tensor &tensor) { return tensor.merged; }
};

DType dtypeOf(mlir::Type type);
/// The device of a logical name of the target.
Device toDevice(llvm::StringRef name);
/// Whether a name matches a pattern in which '*' matches any characters.
bool matches(std::string_view pattern, std::string_view name);
/// The user's source line of a value.
SourceLocation locationOf(mlir::Location location);

} // namespace detail
} // namespace sluice
