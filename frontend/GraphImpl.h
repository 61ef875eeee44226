// What a Graph holds: the module under construction. Tools of this repository take the module from here.
#pragma once

#include "ir/Dialect.h"
#include "sluice/error.h"
#include "sluice/graph.h"
#include "sluice/init.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

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
  GraphImpl(std::string name, Place place);

  // --- named dimensions ---

  /// The type of a tensor with these dimensions; binds new names and throws on contradictions. `what` names the tensor.
  mlir::RankedTensorType typeOf(const std::string &what, DType dtype, const Shape &shape, const Place &place);
  Shape shapeOf(mlir::Type type) const;
  /// "[batch, 784]"
  std::string printShape(mlir::Type type) const { return shapeOf(type).str(); }
  /// `text` of a diagnostic, with the name of the batch dimension for `?` in its shapes.
  std::string withNames(llvm::StringRef text) const;
  /// The size of a dimension in a type (kDynamic for the batch), or nothing if its name is not known.
  std::optional<int64_t> sizeOf(const Dim &dim) const;

  // --- ops ---

  /// Builds an op; a failure of its inference or verifier is returned as text in `failure`.
  mlir::Operation *build(llvm::StringRef op, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                         const Place &place, std::string &failure);
  mlir::Location location(const Place &place);
  mlir::Type elementType(DType dtype);

  // --- structure ---

  mlir::Value addInput(const std::string &name, mlir::RankedTensorType type, const Place &place);
  /// Throws when the name is taken.
  ir::StateOp addState(const char *kind, const std::string &name, mlir::RankedTensorType type, const init::Init &init,
                       const Place &place);
  mlir::Value read(ir::StateOp state, const Place &place);
  /// Throws when the rule makes no sense; `state` names what begins so.
  ir::InitAttr initAttr(const init::Init &init, const std::string &state, const Place &place);
  /// The state that a value reads, or null.
  ir::StateOp stateOf(mlir::Value value);
  ir::StateOp findState(llvm::StringRef name);
  /// "'fc1.weight' " of a state or input; nothing of other values.
  std::string nameOf(mlir::Value value);
  /// Throws unless `name` is new among the outputs and metrics.
  void claimResult(const std::string &name, const Place &place);
  /// The names of the parameters that a value depends on, in order of their creation.
  std::vector<std::string> parametersBehind(mlir::Value value);

  /// Empty, or why the module does not verify.
  std::string verify();
  std::string print();

  std::string name;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ir::GraphOp graph;
  mlir::OpBuilder builder; ///< at the end of the graph's body
  DType dtype = DType::f32;
  std::vector<std::source_location> callers; ///< lines whose module calls are in progress, innermost last

private:
  struct Binding {
    int64_t size;
    Place place;
  };
  llvm::StringMap<Binding> dims;
  std::string batch; ///< the name of the symbolic dimension
  Place batchPlace;
  llvm::StringMap<Place> inputs, results;
};

/// What the public handles hide.
struct Access {
  static GraphImpl *graph(const Tensor &tensor) { return tensor.graph.get(); }
  static std::shared_ptr<GraphImpl> graph(const Graph &graph) { return graph.graph; }
  static mlir::Value value(const Tensor &tensor) { return mlir::Value::getFromOpaquePointer(tensor.value); }
  static Tensor tensor(GraphImpl &graph, mlir::Value value);
};

DType dtypeOf(mlir::Type type);
/// Where the user wrote what became a value.
Place placeOf(mlir::Location location);

} // namespace detail
} // namespace sluice
