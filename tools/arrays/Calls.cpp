#include "tools/arrays/Calls.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace sluice::detail {

using runtime::ArrayDevice;
using runtime::StoragePointer;

void CallKey::add(const Array &array) {
  ArrayImpl *impl = ArrayAccess::get(array);
  const ArrayType *type = impl ? impl->value.type : nullptr;
  addBytes(&type, sizeof type);
  if (!impl)
    return;
  if (arrayCount == std::size(fewArrays))
    moreArrays.assign(fewArrays, fewArrays + arrayCount);
  if (arrayCount >= std::size(fewArrays))
    moreArrays.push_back(impl);
  else
    fewArrays[arrayCount] = impl;
  ++arrayCount;
}

//===- the cache --------------------------------------------------------------------------------------------------===//

namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using CallMap = std::unordered_map<std::string, const CachedCall *, TextHash, std::equal_to<>>;

/// The compiled calls of the process. Thread-safe.
class CallCache {
public:
  static CallCache &ofProcess() {
    static CallCache &cache = *new CallCache();
    return cache;
  }

  const CachedCall *find(std::string_view key) {
    std::lock_guard lock(mutex);
    auto found = calls.find(key);
    return found == calls.end() ? nullptr : found->second;
  }

  /// Adds a call, unless another thread has added it.
  const CachedCall *add(std::string_view key, std::unique_ptr<CachedCall> call) {
    std::lock_guard lock(mutex);
    auto [found, isNew] = calls.try_emplace(std::string(key), call.get());
    if (isNew)
      owned.push_back(std::move(call));
    return found->second;
  }

private:
  std::mutex mutex; ///< guards the members below
  CallMap calls;
  std::vector<std::unique_ptr<CachedCall>> owned;
};

} // namespace

/// The calls of this thread, looked up without a lock. A pointer, because destructors of static variables may call
/// functions after the variables of the thread have ended.
static thread_local CallMap *callsOfThread = nullptr;
static thread_local bool hasThreadEnded = false;

static CallMap &mapOfThread() {
  struct End {
    ~End() {
      delete std::exchange(callsOfThread, nullptr);
      hasThreadEnded = true;
    }
  };
  static thread_local End end;
  if (!callsOfThread)
    callsOfThread = new CallMap();
  return *callsOfThread;
}

const CachedCall *findCached(std::string_view key) { return CallCache::ofProcess().find(key); }
const CachedCall *addCached(std::string_view key, std::unique_ptr<CachedCall> call) {
  return CallCache::ofProcess().add(key, std::move(call));
}

/// The name of a device; with that of its backend if another one has the same name, from an earlier list.
static std::string textOf(const ArrayDevice &device, const ArrayDevice &other) {
  return nameOf(device) == nameOf(other) ? device.text() : nameOf(device).str();
}

/// The device of a call's arrays. Throws if operands are on several devices, except for functions by jit.
static ArrayDevice *deviceOf(const CallRequest &request) {
  std::span<ArrayImpl *const> arrays = request.key->arrays();
  if (arrays.empty())
    return &findDevice(request.device.value_or(default_device()), request.function, request.where);
  const ArrayType &first = *arrays.front()->value.type;
  for (size_t i = 1; i < arrays.size() && !request.isWhole; ++i)
    if (const ArrayType &other = *arrays[i]->value.type; other.device != first.device)
      throw Error(runtime::concat(request.function, ": operand 1 ", first.shapeText(), " is on ",
                                  textOf(*first.device, *other.device), ", and operand ", i + 1, " ", other.shapeText(),
                                  " on ", textOf(*other.device, *first.device), ": move one of them with to()"),
                  request.where);
  return first.device;
}

/// A graph has no dimension without elements.
static void requireElements(const CallRequest &request) {
  std::span<ArrayImpl *const> arrays = request.key->arrays();
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i]->value.type->elements == 0)
      throw Error(runtime::concat(request.function, ": operand ", i + 1, " ", arrays[i]->value.type->shapeText(),
                                  " has no elements; functions of arrays need at least one"),
                  request.where);
}

/// Counts the compilations of a function, whose identity is the first part of its key. Prints a note if there are many:
/// a common mistake is to pass a number that changes in each call.
static void countCompilation(const CallRequest &request, std::string_view key) {
  static constexpr int many = 200;
  static std::mutex mutex;
  static auto &counts = *new std::unordered_map<std::string, int>();
  std::lock_guard lock(mutex);
  if (++counts[std::string(key.substr(0, sizeof(const void *)))] == many)
    std::fprintf(stderr,
                 "sluice: note: %s was compiled %d times, for different types, numbers or options. Pass numbers that "
                 "change as arrays.\n",
                 runtime::CallSite{request.function, request.where}.text().c_str(), many);
}

/// For each operand of a function that may call modules, whether it has a gradient. Empty for other functions, and if
/// the call is not recorded.
static std::vector<bool> gradientsOf(const CallRequest &request) {
  std::vector<bool> gradients;
  if (request.callsModules && is_recording())
    for (ArrayImpl *operand : request.key->arrays())
      gradients.push_back(hasGradient(*operand));
  bool isRecorded = std::find(gradients.begin(), gradients.end(), true) != gradients.end();
  return isRecorded ? gradients : std::vector<bool>();
}

/// Compiles a call. `own`: the number of operands that are not those of models. Returns null as compileCall does.
static std::unique_ptr<CachedCall> compileNew(const CallRequest &request, size_t own,
                                              std::vector<CapturedModel> &models) {
  if (hasThreadEnded) // so have variables of MLIR
    throw Error(std::string(request.function) + ": cannot be compiled after the thread, or main, has ended",
                request.where);
  requireElements(request);
  CompileRequest compile{.function = request.function,
                         .where = request.where,
                         .own = own,
                         .isWhole = request.isWhole,
                         .options = request.options,
                         .device = deviceOf(request),
                         .isDifferentiated = gradientsOf(request)};
  for (ArrayImpl *array : request.key->arrays())
    compile.arrays.push_back(array->value.type);
  return compileCall(compile, request.trace(request.context), models);
}

/// The key of a call in the cache: the key of the request, or a longer one in the memory of `text`.
static std::string_view keyOf(const CallRequest &request, std::string &text) {
  std::string_view key = request.key->text();
  if (request.key->arrays().empty()) { // the device of the result is part of the key
    const ArrayDevice *device = deviceOf(request);
    text.assign(key).append(reinterpret_cast<const char *>(&device), sizeof device);
    key = text;
  }
  if (request.isWhole) { // all devices of the process are part of the key
    int64_t generation = runtime::ArrayDevices::ofProcess().generation();
    text.assign(std::string(key)).append(reinterpret_cast<const char *>(&generation), sizeof generation);
    key = text;
  }
  return key;
}

/// Looks up a compiled call in the caches of this thread and of the process; null if there is none.
static const CachedCall *findInThread(std::string_view key) {
  CallMap &calls = mapOfThread();
  if (auto found = calls.find(key); found != calls.end())
    return found->second;
  const CachedCall *call = CallCache::ofProcess().find(key);
  if (call)
    calls.emplace(std::string(key), call);
  return call;
}

/// Adds a compiled call to the caches of this thread and of the process.
static const CachedCall &addInThread(const CallRequest &request, std::string_view key,
                                     std::unique_ptr<CachedCall> made) {
  const CachedCall *call = CallCache::ofProcess().add(key, std::move(made));
  countCompilation(request, key);
  mapOfThread().emplace(std::string(key), call);
  return *call;
}

static const CachedCall &findCall(const CallRequest &request) {
  std::string text;
  std::string_view key = keyOf(request, text);
  if (const CachedCall *known = findInThread(key))
    return *known;
  std::vector<CapturedModel> none;
  return addInThread(request, key, compileNew(request, request.key->arrays().size(), none));
}

//===- calls ------------------------------------------------------------------------------------------------------===//

std::vector<StoragePointer> CachedCall::call(std::span<const StoragePointer> arrays,
                                             const runtime::CallSite &site) const {
  std::vector<StoragePointer> taken;
  taken.reserve(inputs.size());
  for (size_t number : inputs)
    taken.push_back(arrays[number]);
  return program->call(taken, devices, site);
}

/// Runs a compiled call, and records it.
static std::vector<Array> runCached(const CachedCall &cached, const CallRequest &request) {
  runtime::CallSite site{request.function, request.where};
  std::span<ArrayImpl *const> arrays = request.key->arrays();
  std::vector<StoragePointer> inputs, outputs;
  inputs.reserve(cached.inputs.size());
  for (size_t number : cached.inputs)
    inputs.push_back(arrays[number]->value.storage);
  try {
    outputs = cached.program->call(inputs, cached.devices, site);
  } catch (const runtime::Error &error) {
    throw Error(error.what(), request.where, {}, int(error.code()));
  }
  std::vector<Array> results;
  results.reserve(cached.results.size());
  for (size_t i = 0; i < cached.results.size(); ++i)
    results.push_back(ArrayAccess::make({cached.results[i], outputs[cached.outputs[i]]}));
  if (is_recording())
    recordCall(cached, arrays, results, site);
  return results;
}

std::vector<Array> run(const CallRequest &request) {
  return request.callsModules ? run(request, {}) : runCached(findCall(request), request);
}

//===- calls of modules -------------------------------------------------------------------------------------------===//

/// Adds the models that earlier traces of the function found.
static std::vector<CallModel> withCaptured(const CallRequest &request, std::vector<CallModel> models) {
  for (nn::Module *root : capturedBefore(request.key->text()))
    if (std::none_of(models.begin(), models.end(), [&](const CallModel &model) { return model.root == root; }))
      models.push_back({root, &arraysOf(*root, request.where)});
  return models;
}

/// The key of a call, with the arrays of its models as further operands.
static CallKey keyWith(const CallRequest &request, const std::vector<CallModel> &models) {
  CallKey key = *request.key;
  for (const CallModel &model : models) {
    ModuleArrays &its = *model.arrays;
    if (is_recording() && model.isOwn)
      attachGradients(its, request.where);
    key.addAll(its.model, its.modes);
    if (its.isTraining) {
      std::span<ArrayImpl *const> own = request.key->arrays();
      placeKey(its, own.empty() ? default_device() : nameOf(*own.front()->value.type->device), request.where);
      key.add(its.key);
    }
    for (const ModuleState &state : its.states)
      key.add(state.array);
  }
  return key;
}

/// Assigns the results of a call in training to the arrays of its models. Leaves only the results of the function in
/// `results`.
static void update(const std::vector<CallModel> &models, const CachedCall &cached, std::vector<Array> &results,
                   std::source_location where) {
  size_t count = results.size() - cached.saved.size();
  for (const CapturedModel &captured : cached.models)
    count -= captured.resultCount();
  size_t next = count;
  for (size_t i = 0; i < cached.models.size(); ++i) {
    const CapturedModel &captured = cached.models[i];
    ModuleArrays &its = *models[i].arrays;
    if (models[i].isOwn && captured.resultCount() > 0) {
      for (size_t number = 0; number < captured.buffers.size(); ++number)
        assign({its.states[captured.buffers[number]].array, where}, results[next + number].detach(where));
      its.key = results[next + captured.buffers.size()].detach(where);
    }
    next += captured.resultCount();
  }
  results.resize(count);
}

std::vector<Array> run(const CallRequest &request, const std::vector<CallModel> &given) {
  for (;;) {
    std::vector<CallModel> models = withCaptured(request, given);
    CallKey key = keyWith(request, models);
    CallRequest call = request;
    call.key = &key;
    for (bool hasGradient : gradientsOf(call)) // a recorded call returns saved values
      key.add(hasGradient);
    std::string text;
    std::string_view callKey = keyOf(call, text);
    const CachedCall *cached = findInThread(callKey);
    if (!cached) {
      std::vector<CapturedModel> captured;
      for (const CallModel &model : models)
        captured.emplace_back(*model.root).take(*model.arrays);
      std::unique_ptr<CachedCall> made = compileNew(call, request.key->arrays().size(), captured);
      if (!made) { // the trace found new models or states
        rememberCaptured(request.key->text(), std::span(captured).subspan(given.size()));
        continue;
      }
      cached = &addInThread(call, callKey, std::move(made));
    }
    std::vector<Array> results = runCached(*cached, call);
    update(models, *cached, results, request.where);
    return results;
  }
}

} // namespace sluice::detail
