#include "frontend/onnx/operators/Windows.h"

#include "frontend/onnx/operators/Rows.h"

#include <algorithm>
#include <limits>

namespace sluice::onnx {

std::int64_t WindowDim::positions(bool ceil) const {
  std::int64_t room = size + before + after - extent();
  if (room < 0 && (!ceil || room + stride - 1 < 0))
    Node::fail("the window of " + std::to_string(extent()) + " is larger than the padded input of " +
               std::to_string(size + before + after));
  std::int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (count - 1) * stride >= size + before ? count - 1 : count;
}

Dims windowAttribute(const Node &node, const char *name, std::size_t count, std::int64_t otherwise,
                     std::int64_t least) {
  Dims numbers = node.integers(name);
  if (numbers.empty())
    return Dims(count, otherwise);
  if (numbers.size() != count)
    Node::fail(std::string(name) + " has " + std::to_string(numbers.size()) + " numbers, not " + std::to_string(count));
  for (std::int64_t number : numbers)
    if (number < least || number > std::numeric_limits<std::int32_t>::max())
      Node::fail(std::string(name) + " is " + std::to_string(number));
  return numbers;
}

/// As many windows as elements divided by the stride, rounded up. An odd padding is larger at the end, or at the begin.
static void padEqually(WindowDim &window, bool largerAtBegin) {
  std::int64_t windows = (window.size + window.stride - 1) / window.stride,
               total = std::max<std::int64_t>(0, (windows - 1) * window.stride + window.extent() - window.size);
  window.before = largerAtBegin ? total - total / 2 : total / 2;
  window.after = total - window.before;
}

std::vector<WindowDim> windowsOf(const Node &node, const Dims &kernel) {
  std::vector<Size> shape = node.shape(0);
  std::size_t count = kernel.size();
  if (count == 0 || shape.size() != count + 2)
    Node::fail("a window of " + std::to_string(count) + " dimensions for an input of " + std::to_string(shape.size()));
  Dims strides = windowAttribute(node, "strides", count, 1, 1),
       dilations = windowAttribute(node, "dilations", count, 1, 1),
       pads = windowAttribute(node, "pads", 2 * count, 0, 0);
  std::string autoPad = node.text("auto_pad", "NOTSET");
  if (autoPad != "NOTSET" && autoPad != "VALID" && autoPad != "SAME_UPPER" && autoPad != "SAME_LOWER")
    Node::fail("auto_pad '" + autoPad + "' is not supported");
  std::vector<WindowDim> windows;
  for (std::size_t i = 0; i < count; ++i) {
    if (!shape[i + 2].isKnown())
      Node::fail("the batch cannot be a dimension of an image");
    WindowDim window{shape[i + 2].constant, kernel[i], strides[i], dilations[i], pads[i], pads[i + count]};
    if (autoPad != "NOTSET")
      window.before = window.after = 0;
    if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
      padEqually(window, autoPad == "SAME_LOWER");
    windows.push_back(window);
  }
  return windows;
}

Tensor asImages(const Tensor &x, std::int64_t first, std::int64_t second) {
  std::int64_t sizes[] = {factorOfRows(x), 1, 1};
  for (std::int64_t i = 1; i < x.dim(); ++i)
    sizes[i < first ? 0 : i < second ? 1 : 2] *= x.size(i).size;
  return withRows(x, {sizes[0], sizes[1], sizes[2]});
}

} // namespace sluice::onnx
