// Models that a function of arrays calls. The arrays of the models are further operands of the function.
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

/// A model that a compiled call reads. Its operands are its states; in training, the key of its random numbers precedes
/// them. In training, its results are its buffers and its next key.
struct CapturedModel {
  explicit CapturedModel(nn::Module &root) : root(ModuleAccess::self(root)) {}
  /// Copies the types and modes of the model's current states.
  void take(const ModuleArrays &its);
  size_t resultCount() const { return isTraining && isCalled ? buffers.size() + 1 : 0; }

  std::weak_ptr<nn::Module *> root;
  std::vector<mlir::Value> reads;       ///< of its states, in order
  std::vector<const ArrayType *> types; ///< of its operands
  std::vector<size_t> buffers;          ///< numbers of the states that training returns
  std::vector<bool> modes;              ///< whether each module of the model is training
  bool isTraining = false;              ///< whether any module is training
  bool isSpread = false;                ///< whether the states are on several devices
  bool isCalled = false;                ///< whether the last trace called it
  int64_t changes = -1;                 ///< ModuleArrays::changes of the states
};

/// A trace of a function of arrays.
struct CaptureRequest {
  const char *function; ///< for errors
  std::source_location where;
  /// Whether this is the first trace, which may find other models and new states.
  bool isFirst;
  const runtime::ArrayDevice *device = nullptr; ///< in the first trace: the device of keys of models without states
};

/// RAII: lets a function that is traced call modules outside of graphs with its tensors.
class CaptureScope {
public:
  /// The value of an operand of a model.
  using Operand = std::function<mlir::Value(size_t model, size_t number, const ArrayType &type)>;
  /// `known`: the models of earlier traces.
  CaptureScope(GraphImpl &traced, std::vector<CapturedModel> known, Operand operand, CaptureRequest request);
  CaptureScope(const CaptureScope &) = delete;
  ~CaptureScope();

  /// Appends the results of the models. Throws Error if a model was destroyed.
  void addResults(std::vector<Tensor> &results);

  std::vector<CapturedModel> models; ///< the known ones, and others that the function called
  bool hasNew = false;               ///< whether a called model was not known or has new states

private:
  /// A model whose states are mapped to values of the traced graph.
  struct Open {
    size_t number; ///< among `models`
    std::shared_ptr<GraphImpl> graph;
    ArrayCall call;
    ArrayCall *before;             ///< the graph's earlier `call`
    std::vector<bool> modesBefore; ///< the modules' earlier modes
    mlir::Value key;               ///< an operand of the model; null outside of training
  };

  void enter(nn::Module &module, llvm::ArrayRef<Tensor> x);
  Open &open(nn::Module &module);
  mlir::Value operandOf(const Open &its, size_t number) const;
  void setKey(Open &its);
  void setStates(Open &its);

  GraphImpl &traced;
  Operand operand;
  CaptureRequest request;
  mlir::Operation *last;  ///< the last op before the trace
  std::list<Open> opened; ///< a list, because graphs refer to each `call`
  std::function<void(nn::Module &, llvm::ArrayRef<Tensor>)> outer;
};

/// The existing models that a function called in earlier traces. `key` is the key of its call without models.
std::vector<nn::Module *> capturedBefore(std::string_view key);
/// Adds models to those of the key, after the existing ones.
void rememberCaptured(std::string_view key, std::span<const CapturedModel> models);

} // namespace sluice::detail
