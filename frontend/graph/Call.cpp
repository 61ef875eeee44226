// Builds ops at a user's line, and reports errors in the API's terms.
#include "frontend/graph/Call.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice::detail {

static GraphImpl &graphOf(const char *function, ArrayRef<Tensor> operands, const SourceLocation &location) {
  GraphImpl *graph = nullptr;
  for (const Tensor &operand : operands) {
    if (!Access::value(operand))
      throw Error(std::string(function) + ": an operand is an empty tensor", location);
    if (graph && Access::graph(operand) != graph)
      throw Error(std::string(function) + ": operands of two graphs: '" + graph->name + "' and '" +
                      Access::graph(operand)->name + "'",
                  location);
    graph = Access::graph(operand);
  }
  if (!graph)
    throw Error(std::string(function) + ": needs at least one tensor", location);
  return *graph;
}

Call::Call(const char *function, ArrayRef<Tensor> operands, SourceLocation where, Rows rows)
    : graph(graphOf(function, operands, where)), function(function), operands(operands),
      location(graph.userLine(where, Access::value(operands.front()))) {
  for (const Tensor &operand : operands)
    requireVisible(operand);
  requireOneDevice();
  if (rows == Rows::own)
    requireOwnRows();
}

static bool isSameLine(const SourceLocation &a, const SourceLocation &b) {
  return a.file == b.file && a.line == b.line;
}

void Call::fail(const std::string &message) const {
  std::string shapes;
  std::vector<Error::Note> notes;
  for (const Tensor &operand : operands) {
    shapes += (shapes.empty() ? "" : " x ") + print(operand);
    SourceLocation created = locationOf(Access::value(operand).getLoc());
    if (!created.file.empty())
      notes.push_back({graph.nameOf(Access::value(operand)) + print(operand) + " created here", created});
  }
  SourceLocation inner = location;
  for (SourceLocation caller : llvm::reverse(graph.callers)) {
    if (!isSameLine(caller, inner))
      notes.push_back({"called from here", caller});
    inner = caller;
  }
  throw Error(std::string(function) + ": " + message + " (" + shapes + ")", location, std::move(notes));
}

std::string Call::print(int64_t size) const {
  return graph.shapeOf(RankedTensorType::get({size}, graph.builder.getI1Type()))[0].str();
}

std::string Call::print(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.6g", number);
  return text;
}

//===- requirements -----------------------------------------------------------------------------------------------===//

void Call::requireGraph(const GraphImpl &owner) const {
  if (&owner != &graph)
    fail("the tensor belongs to another graph, '" + graph.name + "'");
}

void Call::requireGraph(const Tensor &other) const {
  if (!Access::value(other))
    fail("an operand is an empty tensor");
  requireGraph(*Access::graph(other));
  requireVisible(other);
}

void Call::requireOneDevice() const {
  auto deviceOf = [&](size_t i) { return ir::getDevice(type(operands[i])); };
  auto describe = [&](size_t i) {
    std::string name = graph.nameOf(Access::value(operands[i]));
    return (name.empty() ? "operand " + std::to_string(i + 1) + " " : name) + "on " + toDevice(deviceOf(i)).str();
  };
  std::optional<size_t> first;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (first && deviceOf(i) && deviceOf(i) != deviceOf(*first))
      fail("operands are on two devices: " + describe(*first) + " and " + describe(i) + "; move one with .to(...)");
    if (!first && deviceOf(i))
      first = i;
  }
}

void Call::requireOwnRows() const {
  for (const Tensor &operand : operands)
    if (int64_t at = mergedAt(operand); at >= 0)
      fail("needs the batch as a separate dimension, but it is merged with one of size " +
           std::to_string(shape(operand)[at + 1]) + "; reshape it first");
}

int64_t Call::mergedAt(const Tensor &x) {
  if (!Access::isMerged(x))
    return -1;
  return llvm::find_if(shape(x), ShapedType::isDynamic) - shape(x).begin();
}

int64_t Call::placeOf(const Tensor &x, int64_t seen) {
  int64_t merged = mergedAt(x);
  return merged < 0 || seen <= merged ? seen : seen + 1;
}

int64_t Call::axis(const Tensor &x, int64_t dim) const {
  int64_t place = placeOf(x, axisOf(seenRank(x), dim));
  if (place == mergedAt(x))
    fail("cannot work along " + graph.shapeOf(type(x), true)[size_t(place)].str() +
         ": the batch, merged with another dimension");
  return place;
}

void Call::requireFloat(const Tensor &x) const {
  if (!is_float(x.dtype()))
    fail(std::string("works on floats, not ") + to_string(x.dtype()) + "; convert with .to(f32)");
}

void Call::requireScalar(const Tensor &x) const {
  requireFloat(x);
  if (rank(x) != 0)
    fail("needs a scalar; reduce it with mean or sum");
}

void Call::requireSameDType(const Tensor &a, const Tensor &b) const {
  if (a.dtype() != b.dtype())
    fail(std::string("dtypes differ: ") + to_string(a.dtype()) + " and " + to_string(b.dtype()) +
         "; convert one with .to(...)");
}

void Call::requireRank(const char *operand, const Tensor &x, int64_t expected) const {
  if (seenRank(x) != expected)
    fail(std::string(operand) + " has " + std::to_string(seenRank(x)) + " dimensions, not " + std::to_string(expected));
}

int64_t Call::axisOf(int64_t rank, int64_t dim) const {
  if (dim < -rank || dim >= rank)
    fail("dimension " + std::to_string(dim) + " is out of range for " + std::to_string(rank) + " dimensions");
  return dim < 0 ? dim + rank : dim;
}

SmallVector<int64_t> Call::axes(const Tensor &x, const Axes &dims) const {
  SmallVector<int64_t> result;
  if (dims.values().empty())
    return llvm::to_vector(llvm::seq<int64_t>(0, rank(x)));
  for (int64_t dim : dims.values()) {
    result.push_back(placeOf(x, axisOf(seenRank(x), dim)));
    if (result.back() == mergedAt(x))
      result.push_back(result.back() + 1);
  }
  llvm::sort(result);
  if (auto twice = std::adjacent_find(result.begin(), result.end()); twice != result.end())
    fail("dimension " + std::to_string(*twice) + " is given twice");
  return result;
}

//===- ops --------------------------------------------------------------------------------------------------------===//

SmallVector<Tensor> Call::emitAll(StringRef op, ArrayRef<Tensor> tensors, ArrayRef<NamedAttribute> attributes) {
  SmallVector<Value> values;
  for (const Tensor &tensor : tensors)
    values.push_back(Access::value(tensor));
  std::string failure;
  Operation *built = graph.build(op, values, attributes, location, failure);
  if (!built)
    fail(graph.withNames(failure));
  bool isMerged = llvm::any_of(tensors, Access::isMerged);
  SmallVector<Tensor> results;
  for (Value result : built->getResults())
    results.push_back(
        Access::tensor(graph, result, isMerged && !cast<RankedTensorType>(result.getType()).hasStaticShape()));
  return results;
}

NamedAttribute Call::attribute(StringRef name, Attribute value) { return graph.builder.getNamedAttr(name, value); }
NamedAttribute Call::list(StringRef name, ArrayRef<int64_t> values) {
  return attribute(name, graph.builder.getDenseI64ArrayAttr(values));
}
NamedAttribute Call::integer(StringRef name, int64_t value) {
  return attribute(name, graph.builder.getI64IntegerAttr(value));
}
NamedAttribute Call::real(StringRef name, double value) {
  return attribute(name, graph.builder.getF64FloatAttr(value));
}
NamedAttribute Call::unit(StringRef name) { return attribute(name, graph.builder.getUnitAttr()); }

std::pair<double, double> rangeOf(DType dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (dtype) {
  case DType::f32:
  case DType::f64:
  case DType::f16:
  case DType::bf16:
    return {-infinity, infinity};
  case DType::i32:
    return {-0x1p31, 0x1p31 - 1};
  case DType::i64:
    return {-0x1p63, 0x1p63};
  case DType::u8:
    return {0, 255};
  case DType::boolean:
    return {0, 1};
  }
  llvm_unreachable("a DType beyond the enumeration");
}

Tensor Call::literal(double value, const Tensor &x) {
  if (!ir::holds(type(x).getElementType(), value))
    fail("the number " + print(value) + " is not a value of " + to_string(x.dtype()) + "; convert with .to(f32)");
  return seen(full(value, type(x)), Access::isMerged(x));
}

Tensor Call::key() { return Access::tensor(graph, graph.readKey(location)); }

Tensor Call::full(double value, RankedTensorType type) {
  auto unplaced = TypeAttr::get(ir::withDevice(type, {}));
  return emit<ir::FullOp>({}, {real("value", value), attribute("type", unplaced)});
}

Tensor Call::iota(Type type, int64_t axis, double start, double step) {
  auto unplaced = TypeAttr::get(ir::withDevice(type, {}));
  return emit<ir::IotaOp>(
      {}, {real("start", start), real("step", step), integer("axis", axis), attribute("type", unplaced)});
}

Tensor Call::vector(ArrayRef<double> elements, Type element) {
  auto values =
      llvm::map_to_vector(elements, [&](double value) -> Attribute { return FloatAttr::get(element, value); });
  auto type = RankedTensorType::get({int64_t(elements.size())}, element);
  return emit<ir::ConstantOp>({}, attribute("value", DenseElementsAttr::get(type, values)));
}

Tensor Call::copy(const Tensor &x, StringAttr device, ir::CopyReason reason) {
  return Access::tensor(graph, graph.copy(Access::value(x), device, reason, location));
}

static bool isOf(ir::StateOp state, ir::StateKind kind) { return state && state.getKind() == kind; }

/// A statistic, or a state that rows carry.
static bool isBuffer(ir::StateOp state) {
  return isOf(state, ir::StateKind::Statistic) || (isOf(state, ir::StateKind::Slot) && !state.getOf());
}

/// The earlier update of a state by a batch norm of this graph. Null if there is none, or if another op writes the
/// state.
static ir::SetOp findUpdate(GraphImpl &graph, ir::StateOp state) {
  ir::SetOp set = state ? graph.findSet(state.getSymName()) : ir::SetOp();
  if (!set || set->getBlock() != graph.builder.getInsertionBlock())
    return {};
  auto value = dyn_cast<OpResult>(set.getValue());
  bool isStatistic = value && value.getResultNumber() > 0 && isa<ir::BatchNormOp>(value.getOwner());
  return isStatistic ? set : ir::SetOp();
}

Tensor Call::latest(const Tensor &statistic) {
  if (graph.replica || !graph.entry.empty())
    return statistic;
  ir::SetOp before = findUpdate(graph, graph.stateOf(Access::value(statistic)));
  return before ? Access::tensor(graph, before.getValue()) : statistic;
}

/// In a call on arrays, in training: makes a state have another value.
static void writeInCall(const Tensor &state, const Tensor &value) {
  if (ArrayCall *call = Access::call(state); call->isTraining)
    call->values[Access::ownValue(state)] = Access::value(value);
}

void Call::update(const Tensor &buffer, const Tensor &value) {
  if (Access::call(buffer))
    return writeInCall(buffer, value);
  if (graph.replica || !graph.entry.empty()) // updates in these contexts are dropped
    return;
  ir::StateOp state = graph.stateOf(Access::value(buffer));
  if (!isBuffer(state))
    fail("can only update buffers of a module: pass the tensor that `buffer` returned");
  if (ir::SetOp before = findUpdate(graph, state))
    graph.eraseSet(before);
  set(state, value);
}

void Call::write(const Tensor &existing, const Tensor &value) {
  if (Access::call(existing))
    return writeInCall(existing, value);
  if (graph.replica)
    return;
  ir::StateOp state = graph.stateOf(Access::value(existing));
  bool isParameter = isOf(state, ir::StateKind::Parameter), isCache = isOf(state, ir::StateKind::Cache);
  if (isCache && graph.entry.empty())
    fail(("'" + state.getSymName() + "' is a cache, which only entry points of Graph::entry can write").str());
  if (!isCache && !graph.entry.empty())
    fail("the entry point '" + graph.entry + "' can only write caches: pass the tensor that `cache` returned");
  if (!isParameter && !isCache && !isBuffer(state))
    fail("can only write parameters and buffers of a module: pass the tensor that `parameter` or `buffer` returned");
  if (isParameter && graph.isTrained(state.getSymName()))
    fail(("'" + state.getSymName() + "' is trained by minimize already; requires_grad(false) prevents that").str());
  set(state, value);
}

void Call::set(ir::StateOp state, const Tensor &value) {
  if (graph.findSet(state.getSymName()))
    fail(("'" + state.getSymName() + "' is updated twice a " + (graph.entry.empty() ? "step" : "call")).str());
  graph.addSet(state, Access::value(value), location);
}

Tensor Call::cast(const Tensor &x, DType dtype) {
  if (x.dtype() == dtype)
    return x;
  return emit<ir::CastOp>({x}, attribute("to", TypeAttr::get(graph.elementType(dtype))));
}

Tensor Call::permute(const Tensor &x, ArrayRef<int64_t> order) {
  if (llvm::is_sorted(order))
    return x;
  return emit<ir::TransposeOp>({x}, list("permutation", order));
}

/// The position of the batch dimension; 0 if there is none.
static int64_t batchOf(ArrayRef<int64_t> shape) {
  auto found = llvm::find_if(shape, ShapedType::isDynamic);
  return found == shape.end() ? 0 : found - shape.begin();
}

/// An order of dimensions with the dimension `from` moved to `to`.
static SmallVector<int64_t> moved(size_t rank, int64_t from, int64_t to) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank == 0)
    return order;
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return order;
}

// The op requires the batch outermost. In row-major order the batch may be anywhere, provided that the dimensions
// before it have the same product in both shapes. The dimensions before and after the batch are then reshaped as if
// there were no batch.
Tensor Call::reshape(const Tensor &x, ArrayRef<int64_t> newShape) {
  if (newShape == shape(x))
    return x;
  int64_t from = batchOf(shape(x)), to = batchOf(newShape);
  if (product(shape(x).take_front(from)) != product(newShape.take_front(to)))
    fail("would mix rows: " + std::to_string(product(shape(x).take_front(from))) +
         " elements lie before the batch dimension, and in the result " +
         std::to_string(product(newShape.take_front(to))));
  SmallVector<int64_t> outermost;
  for (int64_t dim : moved(newShape.size(), to, 0))
    outermost.push_back(newShape[dim]);
  Tensor front = permute(x, moved(shape(x).size(), from, 0));
  if (ArrayRef(outermost) != shape(front))
    front = emit<ir::ReshapeOp>({front}, list("shape", outermost));
  return permute(front, moved(newShape.size(), 0, to));
}

Tensor Call::expand(const Tensor &x, ArrayRef<int64_t> dims, ArrayRef<int64_t> newShape) {
  Tensor y = emit<ir::ExpandOp>({x}, {list("dims", dims), list("shape", newShape)});
  for (const Tensor &operand : operands)
    if (StringAttr device = ir::getDevice(type(operand)))
      ir::setDeviceAndPin(Access::value(y).getDefiningOp(), device, graph.pin);
  return y;
}

// At the merged dimension, x has either no dimension or one of size 1, which becomes two dimensions.
Tensor Call::beside(const Tensor &other, const Tensor &x) {
  int64_t merged = mergedAt(other);
  if (merged < 0)
    return x;
  int64_t behind = rank(other) - 2 - merged, at = seenRank(x) - 1 - behind;
  bool isAlike = mergedAt(x) >= 0 && placeOf(x, at) == mergedAt(x) && shape(x)[at + 1] == shape(other)[merged + 1];
  if (isAlike || at < 0)
    return x;
  if (Access::isMerged(x) || shape(x)[at] != 1)
    fail("sizes do not broadcast: " + print(other) + " and " + print(x) + " in dimension -" +
         std::to_string(behind + 1));
  SmallVector<int64_t> sizes(shape(x));
  sizes.insert(sizes.begin() + at, 1);
  return reshape(x, sizes);
}

Tensor Call::broadcast(const Tensor &x, ArrayRef<int64_t> newShape) {
  if (newShape == shape(x))
    return x;
  int64_t missing = int64_t(newShape.size()) - rank(x);
  return expand(x, llvm::to_vector(llvm::seq<int64_t>(missing, newShape.size())), newShape);
}

SmallVector<int64_t> Call::commonShape(ArrayRef<int64_t> a, ArrayRef<int64_t> b) const {
  SmallVector<int64_t> common(std::max(a.size(), b.size()));
  for (size_t fromEnd = 1; fromEnd <= common.size(); ++fromEnd) {
    int64_t left = fromEnd <= a.size() ? a[a.size() - fromEnd] : 1;
    int64_t right = fromEnd <= b.size() ? b[b.size() - fromEnd] : 1;
    if (left != right && left != 1 && right != 1)
      fail("sizes do not broadcast: " + print(left) + " and " + print(right) + " in dimension -" +
           std::to_string(fromEnd));
    common[common.size() - fromEnd] = left == 1 ? right : left;
  }
  return common;
}

Tensor Call::plusBias(const Tensor &y, const Tensor &bias, int64_t axis) {
  if (!Access::value(bias))
    return y;
  requireSameDType(y, bias);
  requireRank("bias", bias, 1);
  if (shape(bias)[0] != shape(y)[axis])
    fail("bias has " + print(shape(bias)[0]) + " elements for " + print(shape(y)[axis]) + " outputs");
  return emit<ir::AddOp>({y, expand(bias, {axis}, shape(y))});
}

SmallVector<Tensor> Call::present(std::initializer_list<Tensor> tensors) {
  return llvm::to_vector(llvm::make_filter_range(tensors, [](const Tensor &tensor) { return bool(tensor); }));
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    if (!ShapedType::isDynamic(size) && __builtin_mul_overflow(result, size, &result))
      return std::numeric_limits<int64_t>::max();
  return result;
}

} // namespace sluice::detail
