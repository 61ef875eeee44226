// Pools. A pool over more than two dimensions is one over the last two, and then one over each other dimension.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Windows.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sluice::onnx {

using PoolOfImages = std::function<Tensor(const Tensor &x, const WindowDim &h, const WindowDim &w)>;

/// Pools images that consist of some dimensions, and restores all other dimensions.
static Tensor pooledAlong(const Tensor &x, std::int64_t first, std::int64_t second, const WindowDim &h,
                          const WindowDim &w, const PoolOfImages &pool) {
  Shape before = x.shape();
  std::vector<Dim> shape(before.begin(), before.end());
  Tensor y = pool(asImages(x, first, second), h, w);
  if (first < second)
    shape[std::size_t(first)] = y.size(2);
  if (w.kernel != 1 || w.stride != 1)
    shape[std::size_t(second)] = y.size(3);
  return y.reshape(Shape(shape));
}

static Tensor pooled(const Tensor &x, const std::vector<WindowDim> &windows, const PoolOfImages &pool) {
  std::int64_t last = x.dim() - 1;
  if (windows.size() == 1)
    return pooledAlong(x, last, last, WindowDim(), windows[0], pool);
  std::size_t i = windows.size() - 2;
  Tensor y = pooledAlong(x, last - 1, last, windows[i], windows[i + 1], pool);
  while (i-- > 0)
    y = pooledAlong(y, std::int64_t(i) + 2, std::int64_t(i) + 3, windows[i], WindowDim(), pool);
  return y;
}

static std::vector<WindowDim> poolWindows(const Node &node) {
  std::int64_t count = node.rank(0) - 2;
  if (count < 1 || !node.hasAttribute("kernel_shape"))
    Node::fail("the pool has no kernel_shape, or its input no dimension besides channels");
  std::vector<WindowDim> windows = windowsOf(node, windowAttribute(node, "kernel_shape", std::size_t(count), 1, 1));
  for (const WindowDim &window : windows)
    window.positions(/*ceil=*/node.integer("ceil_mode", 0) != 0);
  return windows;
}

//===- MaxPool ----------------------------------------------------------------------------------------------------===//

/// A maximum's place in a window is one byte.
static constexpr std::int64_t kMostElements = 256;

/// Whether maxima of rows, and then of columns, replace those of windows: if they compare at most half as many elements,
/// and for windows that are too large.
static bool isSeparated(const WindowDim &h, const WindowDim &w) {
  std::int64_t elements = h.kernel * w.kernel;
  return h.kernel > 1 && w.kernel > 1 && (elements > kMostElements || elements >= 2 * (w.kernel * h.stride + h.kernel));
}

static PoolOfImages maxPool(bool ceil) {
  return [ceil](const Tensor &x, const WindowDim &h, const WindowDim &w) {
    auto pool = [&](const Tensor &y, const WindowDim &rows, const WindowDim &columns) {
      return max_pool2d(y, {rows.kernel, columns.kernel},
                        {.stride = {rows.stride, columns.stride},
                         .padding = {rows.before, columns.before},
                         .dilation = {rows.dilation, columns.dilation},
                         .ceil_mode = ceil,
                         .padding_end = Size2(rows.after, columns.after)});
    };
    if (isSeparated(h, w))
      return pool(pool(x, WindowDim(), w), h, WindowDim());
    return pool(x, h, w);
  };
}

namespace {

/// The elements of all windows of one channel, by their index in the channel.
struct WindowElements {
  std::vector<std::int32_t> read;  ///< [windows, taps] in row-major order; a tap in the padding reads another element
  std::vector<std::int64_t> names; ///< the same in the order of the attribute storage_order
  std::int64_t windows = 1, taps = 1;
};

} // namespace

/// The index of a tap's element along one dimension; -1 in the padding.
static std::int64_t elementAt(const WindowDim &window, std::int64_t position, std::int64_t tap) {
  std::int64_t element = position * window.stride - window.before + tap * window.dilation;
  return element < window.size ? element : -1;
}

/// Splits a number into digits: the last dimension changes fastest.
static Dims digitsOf(std::int64_t number, const Dims &sizes) {
  Dims digits(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0; number /= sizes[i])
    digits[i] = number % sizes[i];
  return digits;
}

static WindowElements elementsOf(const std::vector<WindowDim> &windows, bool ceil, bool columnMajor) {
  static constexpr std::int64_t most = std::int64_t(1) << 24;
  WindowElements elements;
  Dims positions, kernel;
  for (const WindowDim &window : windows) {
    positions.push_back(window.positions(ceil));
    kernel.push_back(window.kernel);
    elements.windows *= positions.back();
    elements.taps *= window.kernel;
    if (elements.windows > most || elements.taps > most || elements.windows * elements.taps > most)
      Node::fail("the indices of so many windows are not supported");
  }
  for (std::int64_t place = 0; place < elements.windows; ++place) {
    std::size_t first = elements.read.size(), padded = 0;
    Dims position = digitsOf(place, positions);
    for (std::int64_t tap = 0; tap < elements.taps; ++tap) {
      Dims digits = digitsOf(tap, kernel);
      std::int64_t row = 0, column = 0, times = 1;
      for (std::size_t i = 0; i < windows.size(); ++i) {
        std::int64_t element = elementAt(windows[i], position[i], digits[i]);
        row = row < 0 || element < 0 ? -1 : row * windows[i].size + element;
        column += times * element;
        times *= windows[i].size;
      }
      if (row < 0) {
        ++padded;
        continue;
      }
      elements.read.push_back(std::int32_t(row));
      elements.names.push_back(columnMajor ? column : row);
    }
    if (padded == std::size_t(elements.taps))
      Node::fail("a window has no element");
    for (; padded > 0; --padded) {
      elements.read.push_back(elements.read[first]);
      elements.names.push_back(elements.names[first]);
    }
  }
  return elements;
}

/// The index of each window's maximum in x, flattened.
static Tensor indicesOfMaxima(Node &node, const Tensor &x, const std::vector<WindowDim> &windows, const Shape &result) {
  bool ceil = node.integer("ceil_mode", 0) != 0;
  Dims dims = node.dims(0);
  std::int64_t channels = dims[0] * dims[1], size = 1;
  for (const WindowDim &window : windows)
    if (__builtin_mul_overflow(size, window.size, &size) || size > std::numeric_limits<std::int32_t>::max())
      Node::fail("the indices of so large images are not supported");
  WindowElements elements = elementsOf(windows, ceil, node.integer("storage_order", 0) != 0);
  Graph graph = node.graph();
  Tensor table = graph.constant(elements.read, {elements.windows, elements.taps});
  Tensor read = index_select(x.reshape({channels, size}), 1, table);
  Tensor tap = argmax(read, 2, /*keepdim=*/true, i64);
  Tensor names = graph.constant(elements.names, {1, elements.windows, elements.taps});
  Tensor inChannel = take_along_dim(names, tap, 2).squeeze(2);
  Tensor first = graph.arange(0, double(channels * size), double(size)).reshape({channels, 1});
  return (inChannel + first).reshape(result);
}

void maxPool(Node &node) {
  std::vector<WindowDim> windows = poolWindows(node);
  Tensor x = node.tensor(0), wide = is_float(x.dtype()) ? x : x.to(f32);
  Tensor y = pooled(wide, windows, maxPool(node.integer("ceil_mode", 0) != 0));
  node.set(0, y.to(x.dtype()), node.type(0));
  if (node.wants(1))
    node.set(1, indicesOfMaxima(node, wide, windows, y.shape()));
}

//===- AveragePool and LpPool -------------------------------------------------------------------------------------===//

/// The windows of one dimension, with padding for a last one that exceeds it.
static WindowDim paddedForCeil(WindowDim window, bool ceil) {
  std::int64_t end = (window.positions(ceil) - 1) * window.stride + window.extent();
  window.after = std::max(window.after, end - window.size - window.before);
  return window;
}

/// The sum of each window. Dilated windows are those of a convolution.
static Tensor sumOfWindows(Graph &graph, const Tensor &x, const WindowDim &h, const WindowDim &w) {
  if (h.dilation == 1 && w.dilation == 1)
    return avg_pool2d(x, {h.kernel, w.kernel},
                      {.stride = {h.stride, w.stride},
                       .padding = {h.before, w.before},
                       .padding_end = Size2(h.after, w.after)}) *
           double(h.kernel * w.kernel);
  return conv2d(x, graph.ones({x.size(1), 1, h.kernel, w.kernel}, x.dtype()), {},
                {.stride = {h.stride, w.stride},
                 .padding = {h.before, w.before},
                 .dilation = {h.dilation, w.dilation},
                 .groups = x.size(1).size,
                 .padding_end = Size2(h.after, w.after)});
}

/// 1 divided by the number of elements of each window along one dimension; with `withPadding`, padding counts.
static std::vector<double> inverseCounts(const WindowDim &window, bool ceil, bool withPadding) {
  std::vector<double> inverse;
  for (std::int64_t place = 0; place < window.positions(ceil); ++place) {
    std::int64_t count = 0;
    for (std::int64_t tap = 0; tap < window.kernel; ++tap) {
      std::int64_t element = place * window.stride - window.before + tap * window.dilation;
      count += withPadding ? element < window.size + window.after : element >= 0 && element < window.size;
    }
    inverse.push_back(1.0 / double(count));
  }
  return inverse;
}

static PoolOfImages averagePool(Graph &graph, bool ceil, bool withPadding) {
  return [&graph, ceil, withPadding](const Tensor &x, const WindowDim &h, const WindowDim &w) {
    if (h.dilation == 1 && w.dilation == 1)
      return avg_pool2d(x, {h.kernel, w.kernel},
                        {.stride = {h.stride, w.stride},
                         .padding = {h.before, w.before},
                         .ceil_mode = ceil,
                         .count_include_pad = withPadding,
                         .padding_end = Size2(h.after, w.after)});
    Tensor sum = sumOfWindows(graph, x, paddedForCeil(h, ceil), paddedForCeil(w, ceil));
    auto inverse = [&](const WindowDim &window) {
      std::vector<double> numbers = inverseCounts(window, ceil, withPadding);
      return graph.constant(numbers, std::int64_t(numbers.size())).to(x.dtype());
    };
    return sum * inverse(h).unsqueeze(-1) * inverse(w);
  };
}

void averagePool(Node &node) {
  bool ceil = node.integer("ceil_mode", 0) != 0, withPadding = node.integer("count_include_pad", 0) != 0;
  Graph graph = node.graph();
  node.set(0, pooled(node.tensor(0), poolWindows(node), averagePool(graph, ceil, withPadding)));
}

/// The exponent of LpPool and GlobalLpPool: at first a float.
static double exponentOf(const Node &node) {
  double p = node.opset() < 2 ? node.real("p", 2.0) : double(node.integer("p", 2));
  if (!(p >= 1))
    Node::fail("p is " + std::to_string(p));
  return p;
}

static Tensor powerOf(const Tensor &x, double p) {
  return p == 1 ? sluice::abs(x) : p == 2 ? square(x) : pow(sluice::abs(x), p);
}

static Tensor rootOf(const Tensor &x, double p) { return p == 1 ? x : p == 2 ? sluice::sqrt(x) : pow(x, 1.0 / p); }

void lpPool(Node &node) {
  bool ceil = node.integer("ceil_mode", 0) != 0;
  double p = exponentOf(node);
  Graph graph = node.graph();
  Tensor sums = pooled(powerOf(node.tensor(0), p), poolWindows(node),
                       [&](const Tensor &x, const WindowDim &h, const WindowDim &w) {
                         return sumOfWindows(graph, x, paddedForCeil(h, ceil), paddedForCeil(w, ceil));
                       });
  node.set(0, rootOf(sums, p));
}

//===- global pools -----------------------------------------------------------------------------------------------===//

/// The dimensions from 2 on.
static Axes imageAxes(const Node &node) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 2; axis < node.rank(0); ++axis)
    axes.push_back(axis);
  if (axes.empty())
    Node::fail("the input has no dimension besides channels");
  return axes;
}

void globalAveragePool(Node &node) { node.set(0, node.tensor(0).mean(imageAxes(node), /*keepdim=*/true)); }
void globalMaxPool(Node &node) { node.set(0, node.tensor(0).max(imageAxes(node), /*keepdim=*/true)); }
void globalLpPool(Node &node) {
  double p = exponentOf(node);
  node.set(0, rootOf(powerOf(node.tensor(0), p).sum(imageAxes(node), /*keepdim=*/true), p));
}

} // namespace sluice::onnx
