// Models that a function of arrays calls. Their arrays are operands of the function, after its own.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "tools/arrays/ArrayImpl.h"
#include "tools/arrays/ModuleArrays.h"
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::detail {

/// A model, as a compiled call reads it. Its operands are, in training, the key of its random numbers, then its states.
/// Its results are, in training, its buffers, then its next key.
struct CapturedModel {
  explicit CapturedModel(nn::Module &root) : root(ModuleAccess::self(root)) {}
  /// Takes the current states of the model.
  void take(const ModuleArrays &its);
  size_t resultCount() const { return isTraining && isCalled ? buffers.size() + 1 : 0; }

  std::weak_ptr<nn::Module *> root;
  std::vector<mlir::Value> reads;       ///< of its states, in order
  std::vector<const ArrayType *> types; ///< of its operands
  std::vector<size_t> buffers;          ///< numbers of the states that training returns
  std::vector<bool> modes;              ///< of the modules of the model: whether they are training
  bool isTraining = false;              ///< whether a module is
  bool isSpread = false;                ///< the states are on several devices
  bool isCalled = false;                ///< the last trace called it
  int64_t changes = -1;                 ///< ModuleArrays::changes of the states
};

/// A trace of a function of arrays.
struct CaptureRequest {
  const char *function; ///< for errors
  std::source_location where;
  /// The first trace, in which the function may call other models, and their states may be new.
  bool isFirst;
  const runtime::ArrayDevice *device = nullptr; ///< in the first trace: of keys of models without states
};

/// RAII: while a function is traced, modules outside of graphs may be called with its tensors.
class CaptureScope {
public:
  /// The value of an operand of a model.
  using Operand = std::function<mlir::Value(size_t model, size_t number, const ArrayType &type)>;
  /// `known`: the models of earlier traces.
  CaptureScope(GraphImpl &traced, std::vector<CapturedModel> known, Operand operand, CaptureRequest request);
  CaptureScope(const CaptureScope &) = delete;
  ~CaptureScope();

  /// Adds the results of the models. Throws Error if one was destroyed.
  void addResults(std::vector<Tensor> &results);

  std::vector<CapturedModel> models; ///< the known ones, and those that the function called
  bool hasNew = false;               ///< whether there is a model that was not known, or a known one has new states

private:
  /// A model whose states stand for values of the traced graph.
  struct Open {
    size_t number; ///< among `models`
    std::shared_ptr<GraphImpl> graph;
    ArrayCall call;
    ArrayCall *before;             ///< of the graph
    std::vector<bool> modesBefore; ///< of the modules
    mlir::Value key;               ///< operand of the model; null outside training
  };

  void enter(nn::Module &module, llvm::ArrayRef<Tensor> x);
  Open &open(nn::Module &module);
  mlir::Value operandOf(const Open &its, size_t number) const;
  void setKey(Open &its);
  void setStates(Open &its);

  GraphImpl &traced;
  Operand operand;
  CaptureRequest request;
  mlir::Operation *last;  ///< of the graph before the trace
  std::list<Open> opened; ///< graphs refer to `call`
  std::function<void(nn::Module &, llvm::ArrayRef<Tensor>)> outer;
};

/// The models that a function called in earlier traces and that exist, by the key of its call without models.
std::vector<nn::Module *> capturedBefore(std::string_view key);
/// Adds models to those of the key. Existing ones keep their order.
void rememberCaptured(std::string_view key, std::span<const CapturedModel> models);

} // namespace sluice::detail
