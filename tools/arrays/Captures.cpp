#include "tools/arrays/Captures.h"

#include "ir/ops/model/Init.h"
#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

namespace sluice::detail {

//===- models -----------------------------------------------------------------------------------------------------===//

/// Whether each module of a model is training.
static std::vector<bool> modesOf(nn::Module &root) {
  std::vector<bool> modes;
  for (nn::Module *part : ModuleAccess::parts(root))
    modes.push_back(ModuleAccess::isTraining(*part));
  return modes;
}

static void setModes(nn::Module &root, const std::vector<bool> &modes) {
  std::vector<nn::Module *> parts = ModuleAccess::parts(root);
  for (size_t i = 0; i < std::min(parts.size(), modes.size()); ++i)
    ModuleAccess::setTraining(*parts[i], modes[i]);
}

void CapturedModel::take(const ModuleArrays &its) {
  reads.clear(), types.clear(), buffers.clear();
  modes = modesOf(**root.lock());
  isTraining = its.isTraining;
  isSpread = its.isSpread();
  changes = its.changes;
  auto add = [&](const Array &array) { types.push_back(ArrayAccess::get(array)->value.type); };
  if (isTraining)
    add(its.key);
  for (const ModuleState &state : its.states) {
    if (state.isBuffer)
      buffers.push_back(reads.size());
    reads.push_back(state.read);
    add(state.array);
  }
}

static bool isModel(const CapturedModel &model, const nn::Module &root) {
  std::shared_ptr<nn::Module *> alive = model.root.lock();
  return alive && *alive == &root;
}

//===- traces -----------------------------------------------------------------------------------------------------===//

CaptureScope::CaptureScope(GraphImpl &traced, std::vector<CapturedModel> known, Operand operand, CaptureRequest request)
    : models(std::move(known)), traced(traced), operand(std::move(operand)), request(request), last(traced.lastOp()),
      outer(std::move(traced.enterModule)) {
  for (CapturedModel &model : models)
    model.isCalled = false;
  traced.enterModule = [this](nn::Module &module, llvm::ArrayRef<Tensor> x) { enter(module, x); };
}

CaptureScope::~CaptureScope() {
  for (Open &its : opened) {
    its.graph->call = its.before;
    if (std::shared_ptr<nn::Module *> root = models[its.number].root.lock())
      setModes(**root, its.modesBefore);
  }
  traced.enterModule = std::move(outer);
}

void CaptureScope::enter(nn::Module &module, llvm::ArrayRef<Tensor> x) {
  GraphImpl &graph = ModuleAccess::graph(module);
  auto known = std::find_if(opened.begin(), opened.end(), [&](const Open &its) { return its.graph.get() == &graph; });
  if (known == opened.end() && graph.call)
    return; // another scope has mapped the states
  createStates(module, x, request.where);
  Open &its = known == opened.end() ? open(module) : *known;
  CapturedModel &model = models[its.number];
  bool isChanged = request.isFirst && model.changes != graph.changes;
  if (isChanged) {
    model.take(arraysOf(module, request.where));
    hasNew = true;
  }
  if (isChanged || known == opened.end())
    setStates(its);
}

CaptureScope::Open &CaptureScope::open(nn::Module &module) {
  nn::Module &root = ModuleAccess::root(module);
  auto found =
      std::find_if(models.begin(), models.end(), [&](const CapturedModel &each) { return isModel(each, root); });
  size_t number = size_t(found - models.begin());
  if (found == models.end()) {
    if (!request.isFirst)
      throw Error(std::string(request.function) +
                      ": the function called another module than in its first trace; it must be pure",
                  request.where);
    models.emplace_back(root);
    ModuleArrays &its = arraysOf(module, request.where);
    if (its.isTraining)
      placeKey(its, nameOf(*request.device), request.where);
    models.back().take(its);
    hasNew = true;
  }
  models[number].isCalled = true;
  GraphImpl &graph = ModuleAccess::graph(module);
  opened.push_back({number, graph.shared_from_this(), ArrayCall{traced}, graph.call, modesOf(root), {}});
  setModes(root, models[number].modes); // the user may have changed the modes since the recorded call
  graph.call = &opened.back().call;
  setKey(opened.back());
  return opened.back();
}

mlir::Value CaptureScope::operandOf(const Open &its, size_t number) const {
  return operand(its.number, number, *models[its.number].types[number]);
}

void CaptureScope::setKey(Open &its) {
  const CapturedModel &model = models[its.number];
  if (!model.isTraining)
    return;
  its.call.key = its.key = operandOf(its, 0);
  if (!model.isSpread)
    return;
  // The copy is at the start of each trace, never within a step: saved values are known by the numbers of their ops.
  mlir::OpBuilder::InsertionGuard guard(traced.builder);
  if (last)
    traced.builder.setInsertionPointAfter(last);
  else
    traced.builder.setInsertionPointToStart(&traced.graph.getBody().front());
  its.call.key = traced.copy(its.key, /*device=*/{}, ir::CopyReason::To, request.where);
}

void CaptureScope::setStates(Open &its) {
  const CapturedModel &model = models[its.number];
  for (size_t i = 0; i < model.reads.size(); ++i)
    if (mlir::Value &value = its.call.values[model.reads[i]]; !value)
      value = operandOf(its, model.isTraining + i);
}

void CaptureScope::addResults(std::vector<Tensor> &results) {
  auto add = [&](mlir::Value value) {
    if (!traced.isVisible(value))
      throw Error(std::string(request.function) + ": a module wrote a buffer within a step or a branch", request.where);
    results.push_back(Access::tensor(traced, value));
  };
  for (size_t i = 0; i < models.size(); ++i) {
    const CapturedModel &model = models[i];
    if (model.root.expired())
      throw Error(std::string(request.function) +
                      ": a module that the function calls was destroyed; it must live as long as "
                      "the function is called and differentiated",
                  request.where);
    auto its = std::find_if(opened.begin(), opened.end(), [&](const Open &each) { return each.number == i; });
    if (model.resultCount() == 0)
      continue;
    for (size_t buffer : model.buffers)
      add(its->call.values.at(model.reads[buffer]));
    bool draws = !its->key.use_empty();
    add(draws ? ir::nextKey(ir::Node(traced.builder, traced.toLocation(request.where), its->key)) : its->key);
  }
}

//===- models of earlier traces -----------------------------------------------------------------------------------===//

namespace {

struct KnownModels {
  std::mutex mutex; ///< guards the member below
  std::unordered_map<std::string, std::vector<CapturedModel>> models;
};

} // namespace

static KnownModels &knownModels() {
  static KnownModels &known = *new KnownModels();
  return known;
}

std::vector<nn::Module *> capturedBefore(std::string_view key) {
  KnownModels &known = knownModels();
  std::lock_guard lock(known.mutex);
  std::vector<nn::Module *> list;
  auto found = known.models.find(std::string(key));
  if (found == known.models.end())
    return list;
  std::erase_if(found->second, [](const CapturedModel &model) { return model.root.expired(); });
  for (const CapturedModel &model : found->second)
    list.push_back(*model.root.lock());
  return list;
}

void rememberCaptured(std::string_view key, std::span<const CapturedModel> models) {
  KnownModels &known = knownModels();
  std::lock_guard lock(known.mutex);
  std::vector<CapturedModel> &list = known.models[std::string(key)];
  for (const CapturedModel &model : models) {
    std::shared_ptr<nn::Module *> root = model.root.lock();
    if (root &&
        std::none_of(list.begin(), list.end(), [&](const CapturedModel &each) { return isModel(each, **root); }))
      list.emplace_back(**root);
  }
}

} // namespace sluice::detail
