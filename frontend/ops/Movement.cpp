// Reshaping, broadcasting, slicing, padding and joining.
#include "frontend/graph/Call.h"

#include <limits>

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

//===- reshape ----------------------------------------------------------------------------------------------------===//

static bool hasBatch(ArrayRef<int64_t> shape) { return llvm::any_of(shape, ShapedType::isDynamic); }

namespace {

/// The requested sizes, and the multiple of the batch in its dimension.
struct Target {
  SmallVector<int64_t> sizes;
  int64_t times = 1;

  /// The sizes of the value, in which merged rows are two dimensions.
  SmallVector<int64_t> ofValue() const {
    SmallVector<int64_t> result(sizes);
    if (times != 1)
      result.insert(llvm::find_if(result, ShapedType::isDynamic) + 1, times);
    return result;
  }
};

} // namespace

/// The requested sizes with names resolved and -1 computed. Either the sizes after the batch hold a row's elements, or
/// the batch is merged with the remaining factor.
static Target targetOf(const Call &call, const Tensor &x, const Shape &asked) {
  ArrayRef<int64_t> from = Call::shape(x);
  std::string cannot = "cannot turn " + call.print(x) + " into " + asked.str();
  Target target;
  SmallVector<int64_t> &sizes = target.sizes;
  int64_t open = -1;
  for (const Dim &dim : asked) {
    Dim one = dim;
    one.times = 1;
    std::optional<int64_t> size = call.graph.sizeOf(one);
    if (!size)
      call.fail("no dimension is called '" + dim.name + "'");
    if (dim.symbolic() && ShapedType::isDynamic(*size))
      target.times = dim.times;
    if (!dim.symbolic() && *size == -1) {
      if (open >= 0)
        call.fail("only one size can be -1: " + asked.str());
      open = int64_t(sizes.size());
      size = 1;
    } else if (!dim.symbolic() && *size <= 0) {
      call.fail("sizes are positive or -1, not " + std::to_string(*size));
    }
    sizes.push_back(*size);
  }
  bool batchIsMissing = hasBatch(from) && !hasBatch(sizes);
  int64_t had = detail::product(from), has = 0;
  bool isTooMany = __builtin_mul_overflow(detail::product(sizes), target.times, &has);
  if (isTooMany || has < 1 || (open >= 0 && had % has != 0))
    call.fail(cannot);
  if (open >= 0 && batchIsMissing) {
    sizes[open] = ShapedType::kDynamic;
    target.times = had / has;
  } else if (open >= 0) {
    sizes[open] = had / has;
  } else if (had != has || hasBatch(from) != hasBatch(sizes)) {
    call.fail(cannot);
  }
  return target;
}

static Tensor reshapedTo(Call &call, const Tensor &x, const Target &target) {
  return call.seen(call.reshape(x, target.ofValue()), target.times != 1);
}

static Tensor reshapeAs(const char *name, const Arg &x, const Shape &shape) {
  Call call(name, x, Rows::merged);
  return reshapedTo(call, x.tensor, targetOf(call, x.tensor, shape));
}

Tensor reshape(Arg x, Shape shape) { return reshapeAs("reshape", x, shape); }
Tensor view(Arg x, Shape shape) { return reshapeAs("view", x, shape); }

Tensor flatten(Arg x, std::int64_t start_dim, std::int64_t end_dim) {
  Call call("flatten", x, Rows::merged);
  Shape from = x.tensor.shape();
  int64_t rank = Call::seenRank(x.tensor);
  if (rank == 0)
    return call.reshape(x.tensor, {1});
  int64_t start = call.axisOf(rank, start_dim), end = call.axisOf(rank, end_dim);
  if (start > end)
    call.fail("start_dim " + std::to_string(start_dim) + " comes after end_dim " + std::to_string(end_dim));
  Dim product = 1;
  for (int64_t i = start; i <= end; ++i)
    product = from[size_t(i)].symbolic() ? from[size_t(i)] * product.size : product * from[size_t(i)].size;
  std::vector<Dim> dims(from.begin(), from.begin() + start);
  dims.push_back(product);
  dims.insert(dims.end(), from.begin() + end + 1, from.end());
  return reshapedTo(call, x.tensor, targetOf(call, x.tensor, Shape(std::move(dims))));
}

Tensor squeeze(Arg x, Axes dim) {
  Call call("squeeze", x, Rows::merged);
  ArrayRef<int64_t> from = Call::shape(x.tensor);
  SmallVector<int64_t> sizes;
  SmallVector<int64_t> removed = call.axes(x.tensor, dim);
  for (int64_t i = 0; i < int64_t(from.size()); ++i)
    if (!llvm::is_contained(removed, i) || from[i] != 1)
      sizes.push_back(from[i]);
  return call.reshape(x.tensor, sizes);
}

static Tensor unsqueezed(Call &call, const Tensor &x, int64_t location) {
  SmallVector<int64_t> sizes(Call::shape(x));
  sizes.insert(sizes.begin() + location, 1);
  // The op reshape keeps the batch outermost; broadcasting may put a dimension before it.
  if (!hasBatch(sizes) || ShapedType::isDynamic(sizes.front()))
    return call.reshape(x, sizes);
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < Call::rank(x); ++i)
    dims.push_back(i < location ? i : i + 1);
  return call.expand(x, dims, sizes);
}

Tensor unsqueeze(Arg x, std::int64_t dim) {
  Call call("unsqueeze", x, Rows::merged);
  return unsqueezed(call, x.tensor, Call::placeOf(x.tensor, call.axisOf(Call::seenRank(x.tensor) + 1, dim)));
}

Tensor expand(Arg x, Shape shape) {
  Call call("expand", x);
  ArrayRef<int64_t> from = Call::shape(x.tensor);
  if (shape.size() < from.size())
    call.fail("has more dimensions than " + shape.str());
  SmallVector<int64_t> sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    std::optional<int64_t> size = call.graph.sizeOf(shape[i]);
    if (!size)
      call.fail("no dimension is called '" + shape[i].str() + "'");
    size_t missing = shape.size() - from.size();
    bool keeps = !shape[i].symbolic() && *size == -1 && i >= missing;
    int64_t to = keeps ? from[i - missing] : *size;
    if (!keeps && !shape[i].symbolic() && to <= 0)
      call.fail("sizes are positive or -1, not " + std::to_string(to));
    if (i >= missing && from[i - missing] != to && from[i - missing] != 1)
      call.fail("size " + call.print(from[i - missing]) + " cannot become " + call.print(to));
    sizes.push_back(to);
  }
  return call.broadcast(x.tensor, sizes);
}

//===- order ------------------------------------------------------------------------------------------------------===//

/// Permutes in the user's order of dimensions: merged rows remain adjacent.
static Tensor permuted(Call &call, const Tensor &x, ArrayRef<int64_t> seen) {
  SmallVector<int64_t> order;
  for (int64_t dim : seen) {
    order.push_back(Call::placeOf(x, dim));
    if (order.back() == Call::mergedAt(x))
      order.push_back(order.back() + 1);
  }
  return call.permute(x, order);
}

Tensor permute(Arg x, Axes dims) {
  Call call("permute", x, Rows::merged);
  int64_t rank = Call::seenRank(x.tensor);
  if (int64_t(dims.values().size()) != rank)
    call.fail("names " + std::to_string(dims.values().size()) + " dimensions of " + std::to_string(rank));
  call.axes(x.tensor, dims); // checks that each dimension appears once
  SmallVector<int64_t> order;
  for (int64_t dim : dims.values())
    order.push_back(call.axisOf(rank, dim));
  return permuted(call, x.tensor, order);
}

static Tensor swapped(Call &call, const Tensor &x, int64_t dim0, int64_t dim1) {
  int64_t rank = Call::seenRank(x);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[call.axisOf(rank, dim0)], order[call.axisOf(rank, dim1)]);
  return permuted(call, x, order);
}

Tensor transpose(Arg x, std::int64_t dim0, std::int64_t dim1) {
  Call call("transpose", x, Rows::merged);
  return swapped(call, x.tensor, dim0, dim1);
}

Tensor Tensor::t(Where where) const {
  Call call("t", Arg(*this, where), Rows::merged);
  call.requireRank("the operand", *this, 2);
  return swapped(call, *this, 0, 1);
}

//===- parts ------------------------------------------------------------------------------------------------------===//

static Tensor sliced(Call &call, const Tensor &x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  ArrayRef<int64_t> from = Call::shape(x);
  SmallVector<int64_t> starts(from.size(), 0), ends(from), steps(from.size(), 1);
  starts[axis] = start;
  ends[axis] = end;
  steps[axis] = step;
  return call.emit<ir::SliceOp>({x}, {call.list("start", starts), call.list("end", ends), call.list("step", steps)});
}

/// A dimension of a known size.
static int64_t sliceable(const Call &call, const Tensor &x, int64_t axis, const char *would) {
  int64_t size = Call::shape(x)[axis];
  if (ShapedType::isDynamic(size))
    call.fail(std::string(would) + "; a result has all rows of a call, or a size that is known before");
  return size;
}

Tensor slice(Arg x, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  Call call("slice", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim);
  if (step <= 0)
    call.fail("the step is positive, not " + std::to_string(step));
  if (start == 0 && end == Tensor::toEnd && step == 1)
    return x.tensor;
  int64_t size = sliceable(call, x.tensor, axis, "would take a part of the batch");
  auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  if (clamped(start) >= clamped(end))
    call.fail("takes nothing: from " + std::to_string(start) + " to " + std::to_string(end) + " of " +
              std::to_string(size));
  return sliced(call, x.tensor, axis, clamped(start), clamped(end), step);
}

Tensor select(Arg x, std::int64_t dim, std::int64_t index) {
  Call call("select", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim);
  int64_t size = sliceable(call, x.tensor, axis, "would take one row of the batch");
  if (index < -size || index >= size)
    call.fail("index " + std::to_string(index) + " is out of range for " + std::to_string(size));
  int64_t at = index < 0 ? index + size : index;
  Tensor one = sliced(call, x.tensor, axis, at, at + 1, 1);
  SmallVector<int64_t> sizes(Call::shape(one));
  sizes.erase(sizes.begin() + axis);
  return call.reshape(one, sizes);
}

/// Consecutive parts of x with these sizes.
static std::vector<Tensor> parts(Call &call, const Tensor &x, int64_t axis, ArrayRef<int64_t> sizes) {
  std::vector<Tensor> result;
  int64_t start = 0;
  for (int64_t size : sizes) {
    result.push_back(size == Call::shape(x)[axis] ? x : sliced(call, x, axis, start, start + size, 1));
    start += size;
  }
  return result;
}

/// The sizes of parts of a dimension: `most` each, and a smaller last part.
static SmallVector<int64_t> equalSizes(int64_t size, int64_t most) {
  SmallVector<int64_t> sizes;
  for (int64_t left = size; left > 0; left -= most)
    sizes.push_back(std::min(left, most));
  return sizes;
}

std::vector<Tensor> split(Arg x, std::int64_t split_size, std::int64_t dim) {
  Call call("split", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim), size = sliceable(call, x.tensor, axis, "would take the batch apart");
  if (split_size <= 0)
    call.fail("parts have a positive size, not " + std::to_string(split_size));
  return parts(call, x.tensor, axis, equalSizes(size, split_size));
}

std::vector<Tensor> split(Arg x, std::vector<std::int64_t> split_sizes, std::int64_t dim) {
  Call call("split", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim), size = sliceable(call, x.tensor, axis, "would take the batch apart");
  int64_t left = size;
  for (int64_t part : split_sizes) {
    if (part <= 0)
      call.fail("parts have a positive size, not " + std::to_string(part));
    left = part > left ? -1 : left - part;
  }
  if (left != 0)
    call.fail("the sizes of parts do not add up to " + std::to_string(size));
  return parts(call, x.tensor, axis, split_sizes);
}

std::vector<Tensor> chunk(Arg x, std::int64_t chunks, std::int64_t dim) {
  Call call("chunk", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim), size = sliceable(call, x.tensor, axis, "would take the batch apart");
  if (chunks <= 0)
    call.fail("the number of chunks is positive, not " + std::to_string(chunks));
  return parts(call, x.tensor, axis, equalSizes(size, (size - 1) / chunks + 1));
}

/// x cropped by negative padding; the remaining padding is not negative.
static Tensor cropped(Call &call, Tensor x, MutableArrayRef<int64_t> low, MutableArrayRef<int64_t> high) {
  for (int64_t axis = 0; axis < Call::rank(x); ++axis) {
    int64_t size = Call::shape(x)[axis], start = std::max<int64_t>(0, -low[axis]);
    int64_t end = size - std::max<int64_t>(0, -high[axis]);
    if (ShapedType::isDynamic(size) || (start == 0 && end == size))
      continue;
    if (start >= end)
      call.fail("leaves nothing of dimension " + std::to_string(axis) + ": " + std::to_string(low[axis]) + " and " +
                std::to_string(high[axis]) + " of " + std::to_string(size));
    x = sliced(call, x, axis, start, end, 1);
  }
  for (int64_t &padding : low)
    padding = std::max<int64_t>(0, padding);
  for (int64_t &padding : high)
    padding = std::max<int64_t>(0, padding);
  return x;
}

Tensor pad(Arg x, std::vector<std::int64_t> pad, double value) {
  Call call("pad", x, Rows::merged);
  int64_t rank = Call::rank(x.tensor), pairs = int64_t(pad.size()) / 2;
  if (pad.size() % 2 != 0 || pairs > Call::seenRank(x.tensor))
    call.fail("takes a pair (before, after) for each dimension from the last; got " + std::to_string(pad.size()) +
              " numbers for " + std::to_string(Call::seenRank(x.tensor)) + " dimensions");
  for (int64_t i = 0; i < pairs; ++i)
    if (pad[2 * i] != 0 || pad[2 * i + 1] != 0)
      call.axis(x.tensor, -1 - i); // fails for merged rows
  SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0);
  for (int64_t i = 0; i < pairs; ++i) {
    int64_t axis = Call::placeOf(x.tensor, Call::seenRank(x.tensor) - 1 - i);
    low[axis] = pad[2 * i];
    high[axis] = pad[2 * i + 1];
  }
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (int64_t i = 0; i < rank; ++i) {
    if (std::max(low[i], high[i]) > most || std::min(low[i], high[i]) < -most)
      call.fail("padding is at most 2147483647");
    if (low[i] != 0 || high[i] != 0)
      sliceable(call, x.tensor, i, "would pad or crop the batch");
  }
  Tensor inner = cropped(call, x.tensor, low, high);
  if (llvm::all_of(low, [](int64_t n) { return n == 0; }) && llvm::all_of(high, [](int64_t n) { return n == 0; }))
    return inner;
  return call.emit<ir::PadOp>({inner}, {call.list("low", low), call.list("high", high), call.list("interior", interior),
                                        call.real("value", value)});
}

/// Throws unless the tensor matches the first in all dimensions but the axis.
static void requireJoinable(const Call &call, const Tensor &first, const Tensor &tensor, int64_t axis) {
  call.requireSameDType(first, tensor);
  call.requireRank("a tensor", tensor, Call::seenRank(first));
  if (Call::mergedAt(first) != Call::mergedAt(tensor))
    call.fail("the batch is merged differently: " + call.print(first) + " and " + call.print(tensor));
  ArrayRef<int64_t> a = Call::shape(first), b = Call::shape(tensor);
  sliceable(call, tensor, axis, "would join along the batch");
  for (int64_t i = 0; i < Call::rank(first); ++i)
    if (i != axis && a[i] != b[i])
      call.fail("sizes differ in dimension " + std::to_string(i) + ": " + call.print(a[i]) + " and " +
                call.print(b[i]));
}

static Tensor joined(const char *name, ArrayRef<Tensor> tensors, int64_t dim, std::source_location where) {
  Call call(name, tensors, where, Rows::merged);
  const Tensor &first = tensors.front();
  int64_t axis = call.axis(first, dim);
  if (tensors.size() == 1)
    return first;
  for (const Tensor &tensor : tensors)
    requireJoinable(call, first, tensor, axis);
  return call.emit<ir::ConcatOp>(tensors, call.integer("axis", axis));
}

Tensor cat(std::vector<Tensor> tensors, std::int64_t dim, std::source_location where) {
  return joined("cat", tensors, dim, where);
}
Tensor concat(std::vector<Tensor> tensors, std::int64_t dim, std::source_location where) {
  return joined("concat", tensors, dim, where);
}

Tensor stack(std::vector<Tensor> tensors, std::int64_t dim, std::source_location where) {
  Call call("stack", tensors, where, Rows::merged);
  const Tensor &first = tensors.front();
  int64_t axis = Call::placeOf(first, call.axisOf(Call::seenRank(first) + 1, dim));
  SmallVector<Tensor> slices;
  for (const Tensor &tensor : tensors) {
    call.requireSameDType(first, tensor);
    if (call.print(tensor) != call.print(first))
      call.fail("shapes differ: " + call.print(first) + " and " + call.print(tensor));
    slices.push_back(unsqueezed(call, tensor, axis));
  }
  return slices.size() == 1 ? slices.front() : call.emit<ir::ConcatOp>(slices, call.integer("axis", axis));
}

} // namespace sluice
