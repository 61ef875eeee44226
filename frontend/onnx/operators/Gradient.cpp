// Gradient: derivatives of a value of the file with respect to other values.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

namespace sluice::onnx {

/// The sum of y differentiated with respect to each of xs. The inputs are the values that xs and zs name.
void gradientOf(Node &node) {
  std::vector<std::string> names = node.texts("xs"), fixed = node.texts("zs");
  std::size_t count = names.size();
  names.insert(names.end(), fixed.begin(), fixed.end());
  if (count == 0 || node.inputs() != names.size())
    throw Malformed("xs and zs name " + std::to_string(names.size()) + " inputs, and there are " +
                    std::to_string(node.inputs()));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (node.valueOfName(names[i]) != node.inputValue(i))
      Node::fail("input " + std::to_string(i) + " is not the value '" + names[i] + "', which is not supported");
  ValuePtr y = node.valueOfName(node.text("y", ""));
  if (!y || !y->tensor())
    Node::fail("y is not computed");
  std::vector<Tensor> xs;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < count; ++i)
    if (node.wants(i)) {
      wanted.push_back(i);
      xs.push_back(node.tensor(i));
    }
  std::vector<Tensor> gradients = grad(y->tensor()->sum(), xs);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    node.set(wanted[i], gradients[i]);
}

} // namespace sluice::onnx
