#include "tools/arrays/Tape.h"

#include "frontend/graph/Gradient.h"
#include "frontend/graph/GraphImpl.h"
#include "runtime/base/Text.h"
#include "sluice/array/ops.h"
#include "sluice/array/tape.h"
#include "tools/arrays/SavedValues.h"
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace sluice {

static thread_local bool isRecording = false;

Tape::Tape() : before(std::exchange(isRecording, true)) {}
Tape::~Tape() { isRecording = before; }
NoGrad::NoGrad() : before(std::exchange(isRecording, false)) {}
NoGrad::~NoGrad() { isRecording = before; }
bool is_recording() { return isRecording; }

namespace detail {

//===- recording --------------------------------------------------------------------------------------------------===//

/// Destroys the calls that this one depends on iteratively: recursion would overflow the stack for long records.
RecordedCall::~RecordedCall() {
  static thread_local std::vector<std::shared_ptr<RecordedCall>> *pending = nullptr;
  std::vector<std::shared_ptr<RecordedCall>> own;
  bool isOutermost = !pending;
  if (isOutermost)
    pending = &own;
  for (ArrayValue &operand : operands)
    if (operand.call)
      pending->push_back(std::move(operand.call));
  if (!isOutermost)
    return;
  while (!own.empty()) {
    std::shared_ptr<RecordedCall> last = std::move(own.back());
    own.pop_back();
    last.reset();
  }
  pending = nullptr;
}

bool hasGradient(const ArrayImpl &array) { return array.gradient || array.value.call; }

static void record(const CachedCall *cached, std::span<ArrayImpl *const> operands, std::span<Array> results,
                   const runtime::CallSite &site) {
  auto call = std::make_shared<RecordedCall>();
  call->cached = cached;
  call->site = site;
  for (ArrayImpl *operand : operands) {
    call->operands.push_back(operand->value);
    call->operands.back().writes = operand->value.storage->writes();
    bool isLeaf = operand->gradient && !operand->value.call;
    call->leaves.push_back(isLeaf ? operand->weak_from_this() : std::weak_ptr<ArrayImpl>());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    ArrayValue &value = ArrayAccess::get(results[i])->value;
    call->results.push_back({value.type, value.storage});
    if (!is_float(value.type->dtype))
      continue;
    value.call = call;
    value.result = i;
  }
}

void recordCall(const CachedCall &cached, std::span<ArrayImpl *const> operands, std::vector<Array> &results,
                const runtime::CallSite &site) {
  if (std::any_of(operands.begin(), operands.end(), [](ArrayImpl *operand) { return hasGradient(*operand); }))
    record(&cached, operands, results, site);
}

void recordCopy(const Array &from, Array &to, const char *function, std::source_location where) {
  ArrayImpl *operand = ArrayAccess::get(from);
  if (hasGradient(*operand))
    record(nullptr, {&operand, 1}, {&to, 1}, {function, where});
}

//===- differentiation --------------------------------------------------------------------------------------------===//

namespace {

/// A recorded call whose operands and results are indices into Record::values.
struct NumberedCall {
  const CachedCall *cached;
  std::vector<size_t> operands, results;
  std::optional<Device> device; ///< of a copy
};

/// A record as a list of calls on numbered values.
struct Record {
  std::vector<NumberedCall> calls; ///< each after those that it depends on
  std::vector<ArrayValue> values;
  std::vector<std::shared_ptr<ArrayImpl>> leaves; ///< arrays with gradients
  std::vector<size_t> leafValues;                 ///< for each leaf, its index in `values`
  size_t loss = 0;
};

/// Collects the calls on which a loss depends, producers first.
class Recorder {
public:
  explicit Recorder(std::source_location where) : where(where) {}

  Record run(const ArrayValue &loss) {
    visit(loss.call);
    record.loss = numberOf(loss);
    return std::move(record);
  }

private:
  /// Without recursion: a record may have thousands of calls.
  void visit(const std::shared_ptr<RecordedCall> &last) {
    std::vector<std::pair<const RecordedCall *, size_t>> open{{last.get(), 0}};
    while (!open.empty()) {
      auto &[call, next] = open.back();
      if (numbers.contains(call)) {
        open.pop_back();
      } else if (next < call->operands.size()) {
        const RecordedCall *producer = call->operands[next++].call.get();
        if (producer && !numbers.contains(producer))
          open.push_back({producer, 0});
      } else {
        add(*call);
        open.pop_back();
      }
    }
  }

  void add(const RecordedCall &call) {
    NumberedCall numbered{call.cached, {}, {}, {}};
    if (!call.cached)
      numbered.device = nameOf(*call.results.front().type->device);
    for (size_t i = 0; i < call.operands.size(); ++i) {
      std::shared_ptr<ArrayImpl> leaf = call.leaves[i].lock();
      numbered.operands.push_back(numberOf(call.operands[i], leaf.get()));
      requireUnchanged(call, i);
      if (leaf)
        addLeaf(leaf, numbered.operands.back());
    }
    numbers[&call] = record.values.size();
    for (const ArrayValue &result : call.results) {
      numbered.results.push_back(record.values.size());
      record.values.push_back(result);
    }
    record.calls.push_back(std::move(numbered));
  }

  /// Elements of a recorded operand change only in memory shared with another library.
  void requireUnchanged(const RecordedCall &call, size_t operand) const {
    const ArrayValue &value = call.operands[operand];
    if (!value.call && value.writes != value.storage->writes())
      throw Error(runtime::concat("backward: operand ", operand + 1, " ", value.type->shapeText(), " of ",
                                  call.site.function,
                                  " was changed in place after the call, in memory shared with another "
                                  "library: change it after backward, or pass a copy (copy_to)"),
                  where, {{"the call", call.site.where}});
  }

  void addLeaf(const std::shared_ptr<ArrayImpl> &leaf, size_t value) {
    for (size_t i = 0; i < record.leaves.size(); ++i)
      if (record.leaves[i] == leaf && record.leafValues[i] == value)
        return;
    record.leaves.push_back(leaf);
    record.leafValues.push_back(value);
  }

  /// The same memory is one value for each leaf, and one for all that are none: gradients flow to leaves only.
  size_t numberOf(const ArrayValue &value, const ArrayImpl *leaf = nullptr) {
    if (value.call)
      return numbers.at(value.call.get()) + value.result;
    auto [found, isNew] = given.try_emplace({value.storage.get(), value.type, leaf}, record.values.size());
    if (isNew)
      record.values.push_back(value);
    return found->second;
  }

  std::source_location where;
  Record record;
  std::unordered_map<const RecordedCall *, size_t> numbers; ///< index of the call's first result
  std::map<std::tuple<const runtime::Storage *, const ArrayType *, const ArrayImpl *>, size_t> given;
};

} // namespace

/// Equal records have equal keys.
static std::string keyOf(const Record &record) {
  std::string key = "backward";
  auto add = [&](const void *bytes, size_t size) { key.append(static_cast<const char *>(bytes), size); };
  auto addNumbers = [&](const std::vector<size_t> &numbers) {
    size_t count = numbers.size();
    add(&count, sizeof count);
    add(numbers.data(), count * sizeof(size_t));
  };
  for (const NumberedCall &call : record.calls) {
    add(&call.cached, sizeof call.cached);
    addNumbers(call.operands);
    addNumbers(call.results);
  }
  for (const ArrayValue &value : record.values)
    add(&value.type, sizeof value.type);
  addNumbers(record.leafValues);
  add(&record.loss, sizeof record.loss);
  return key;
}

/// Computes the gradients of the leaves from the values of the record.
static std::vector<Tensor> differentiate(const Record &record, std::span<const Tensor> given,
                                         std::source_location where) {
  std::vector<Tensor> values(given.begin(), given.end());
  GraphImpl &graph = *Access::graph(given.front());
  for (const NumberedCall &call : record.calls) {
    std::vector<Tensor> operands, results, savedValues;
    for (size_t operand : call.operands)
      operands.push_back(values[operand]);
    mlir::Operation *last = graph.lastOp();
    results = call.cached ? call.cached->trace(operands, where)
                          : std::vector<Tensor>{operands.front().to(*call.device, where)};
    for (size_t number : std::span(call.results).subspan(results.size()))
      savedValues.push_back(given[number]);
    if (!savedValues.empty())
      useSaved(graph, last, call.cached->saved, savedValues, call.cached->function, where);
    for (size_t i = 0; i < results.size(); ++i)
      if (is_float(results[i].dtype()))
        values[call.results[i]] = saved(results[i], given[call.results[i]]);
  }
  Tensor loss = values[record.loss];
  if (loss.dim() > 0)
    loss = loss.sum({}, false, where);
  std::vector<Tensor> reached, gradients;
  for (size_t leaf : record.leafValues)
    if (graph.dependsOn(Access::value(loss), Access::value(values[leaf])))
      reached.push_back(values[leaf]);
  std::vector<Tensor> computed = reached.empty() ? reached : sluice::grad(Arg(loss, where), reached);
  size_t next = 0;
  for (size_t leaf : record.leafValues)
    gradients.push_back(graph.dependsOn(Access::value(loss), Access::value(values[leaf]))
                            ? computed[next++]
                            : sluice::zeros_like(Arg(values[leaf], where)));
  return gradients;
}

static const CachedCall &backwardCall(const Record &record, std::source_location where) {
  std::string key = keyOf(record);
  if (const CachedCall *known = findCached(key))
    return *known;
  CompileRequest request{.function = "backward",
                         .where = where,
                         .own = record.values.size(),
                         .isWhole = true,
                         .device = record.values[record.loss].type->device};
  for (const ArrayValue &value : record.values)
    request.arrays.push_back(value.type);
  for (const NumberedCall &call : record.calls)
    if (call.cached)
      request.saved.insert(request.saved.end(), call.results.end() - std::ptrdiff_t(call.cached->saved.size()),
                           call.results.end());
  Record structure = record; // the cache must not keep arrays alive
  structure.leaves.clear();
  structure.values.clear();
  Trace trace = [structure = std::move(structure)](std::span<const Tensor> given, std::source_location line) {
    return differentiate(structure, given, line);
  };
  std::vector<CapturedModel> none;
  return *addCached(key, compileCall(request, std::move(trace), none));
}

} // namespace detail

using namespace detail;

Array &Array::attach_grad(Where where) {
  ArrayImpl &impl = ArrayAccess::require(*this, "attach_grad", where);
  if (!is_float(impl.value.type->dtype))
    throw Error(runtime::concat("attach_grad: the array is ", to_string(impl.value.type->dtype),
                                "; only float arrays have gradients"),
                where);
  impl.value.call = nullptr;
  impl.gradient = std::make_shared<Array>(zeros_like(ArrayArg(*this, where)));
  return *this;
}

Array Array::grad() const { return impl && impl->gradient ? *impl->gradient : Array(); }

void Array::backward(bool accumulate, Where where) const {
  const ArrayValue &loss = ArrayAccess::require(*this, "backward", where).value;
  if (!loss.call)
    throw Error("backward: the array was not recorded: compute it while a tape exists (record), from arrays with "
                "attach_grad",
                where);
  NoGrad pause;
  Record record = Recorder(where).run(loss);
  const CachedCall &call = backwardCall(record, where);
  std::vector<runtime::StoragePointer> values;
  for (const ArrayValue &value : record.values)
    values.push_back(value.storage);
  std::vector<runtime::StoragePointer> outputs;
  detail::guarded("backward", where, [&] { outputs = call.call(values, {"backward", where}); });
  std::map<ArrayImpl *, bool> seen; // an array changed in place has one leaf per version; their gradients add up
  for (size_t i = 0; i < record.leaves.size(); ++i) {
    ArrayImpl *leaf = record.leaves[i].get();
    Array gradient = ArrayAccess::make({call.results[i], outputs[call.outputs[i]]});
    if (accumulate || std::exchange(seen[leaf], true))
      gradient = add(ArrayArg(*leaf->gradient, where), ArrayArg(gradient, where));
    assign({*leaf->gradient, where}, gradient);
  }
}

} // namespace sluice
