#include "frontend/onnx/import/Node.h"

#include "frontend/graph/GraphImpl.h"
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Importer.h"

namespace sluice::onnx {

Node::Node(Importer &importer, Scope &scope, const file::Node &file, std::int64_t opset)
    : importer(importer), scope(scope), file(file), version(opset), results(file.outputs.size()) {
  for (std::string_view name : file.inputs)
    operands.push_back(name.empty() ? nullptr : scope.find(name));
}

Node::Node(const Node &reader, const Origin &origin)
    : importer(reader.importer), scope(reader.scope), file(origin.node), version(origin.opset),
      operands(origin.operands), results(origin.node.outputs.size()) {}

std::optional<Node> Node::producer(std::size_t input, std::string_view op) const {
  return has(input) ? producer(operands[input], op) : std::nullopt;
}

std::optional<Node> Node::producer(const ValuePtr &value, std::string_view op) const {
  if (!value->origin || value->origin->node.op != op || !value->origin->node.domain.empty())
    return std::nullopt;
  return Node(*this, *value->origin);
}

std::string Node::name() const { return nameOf(file, scope.prefix); }

void Node::fail(const std::string &reason) { throw Unsupported(reason); }

//===- inputs -----------------------------------------------------------------------------------------------------===//

const Value &Node::input(std::size_t input) const {
  if (!has(input))
    fail("input " + std::to_string(input) + " is missing");
  if (operands[input]->sequence())
    fail("input " + std::to_string(input) + " is a sequence");
  return *operands[input];
}

ValuePtr Node::inputValue(std::size_t input) const {
  if (input >= operands.size())
    fail("input " + std::to_string(input) + " is missing");
  return operands[input];
}

ValuePtr Node::valueOfName(std::string_view name) const { return scope.find(name); }

const Sequence &Node::sequence(std::size_t input) const {
  if (!has(input) || !operands[input]->sequence())
    fail("input " + std::to_string(input) + " is no sequence");
  return *operands[input]->sequence();
}

Dims Node::dims(std::size_t input) const {
  Dims dims;
  for (const Size &size : shape(input)) {
    if (!size.isKnown())
      fail("input " + std::to_string(input) + " has the batch in a dimension that must have a size");
    dims.push_back(size.constant);
  }
  return dims;
}

/// Longer lists are no shapes.
static constexpr std::int64_t kMostSizes = 4096;

std::optional<std::vector<Size>> Node::sizes(std::size_t input) const {
  if (!has(input))
    return std::nullopt;
  const Value &value = this->input(input);
  if (const Sizes *sizes = value.sizes())
    return sizes->elements;
  const Known *known = value.known();
  if (!known || known->rank() > 1 || known->count() > kMostSizes ||
      !(isInteger(known->type()) || known->type() == ElementType::boolean))
    return std::nullopt;
  std::vector<Size> list;
  for (std::int64_t number : known->integers())
    list.push_back({number, 0});
  return list;
}

static const Known &requireKnown(const Node &node, std::size_t input, const char *what) {
  const Known *known = node.known(input);
  if (!known)
    Node::fail(std::string(what) + " must be known when the model is imported" +
               (node.has(input) && node.input(input).sizes() ? ", and depends on the number of rows" : ""));
  return *known;
}

std::vector<std::int64_t> Node::integers(std::size_t input, const char *what) const {
  return requireKnown(*this, input, what).integers();
}

std::vector<double> Node::reals(std::size_t input, const char *what) const {
  return requireKnown(*this, input, what).reals();
}

static void requireOne(const Known &known, const char *what) {
  if (known.count() != 1)
    Node::fail(std::string(what) + " is one number, not " + std::to_string(known.count()));
}

std::int64_t Node::integer(std::size_t input, const char *what) const {
  const Known &known = requireKnown(*this, input, what);
  requireOne(known, what);
  return known.integer(0);
}

double Node::real(std::size_t input, const char *what) const {
  const Known &known = requireKnown(*this, input, what);
  requireOne(known, what);
  return known.real(0);
}

Tensor Node::tensor(std::size_t input) {
  this->input(input);
  return importer.tensorOf(operands[input], /*isWeight=*/false);
}

Tensor Node::weight(std::size_t input) {
  this->input(input);
  return importer.tensorOf(operands[input], /*isWeight=*/true);
}

Tensor Node::weight(std::size_t input, Known elements) {
  ValuePtr value = valueOf(std::move(elements));
  value->name = this->input(input).name;
  return importer.tensorOf(value, /*isWeight=*/true);
}

Tensor Node::state(std::size_t input, const char *kind) {
  const Known &known = requireKnown(*this, input, kind);
  if (!isFloat(known.type()))
    fail("a " + std::string(kind) + " of type " + nameOf(known.type()) + " is not supported");
  return importer.stateOf(kind, scope.isInFunction() ? this->input(input).name : file.inputs[input], known);
}

std::vector<Tensor> &Node::scanIterations() const { return importer.scanIterations(); }

bool Node::trainsBatchNorm() const { return importer.trainsBatchNorm(); }

Tensor Node::tensorOf(const ValuePtr &value) { return importer.tensorOf(value, /*isWeight=*/false); }

//===- attributes -------------------------------------------------------------------------------------------------===//

std::optional<file::Named> Node::attribute(std::string_view name) const {
  for (const file::Named &attribute : file.attributes)
    if (attribute.name == name)
      return scope.resolve(attribute);
  return std::nullopt;
}

bool Node::hasAttribute(std::string_view name) const { return attribute(name).has_value(); }

template <class Read> bool Node::readAttribute(std::string_view name, Read read) const {
  std::optional<file::Named> named = attribute(name);
  if (!named)
    return false;
  Message fields(named->message);
  for (Field field; fields.next(field);)
    read(field);
  return true;
}

std::int64_t Node::integer(std::string_view name, std::int64_t otherwise) const {
  std::int64_t value = otherwise;
  bool isThere = readAttribute(name, [&, isFirst = true](const Field &field) mutable {
    if (std::exchange(isFirst, false))
      value = 0; // a writer may omit a zero
    if (field.number == 3)
      value = field.integer();
  });
  return isThere ? value : otherwise;
}

double Node::real(std::string_view name, double otherwise) const {
  double value = otherwise;
  readAttribute(name, [&, isFirst = true](const Field &field) mutable {
    if (std::exchange(isFirst, false))
      value = 0;
    if (field.number == 2)
      value = double(field.real());
  });
  return value;
}

std::string Node::text(std::string_view name, std::string_view otherwise) const {
  std::string value(otherwise);
  readAttribute(name, [&, isFirst = true](const Field &field) mutable {
    if (std::exchange(isFirst, false))
      value.clear();
    if (field.number == 4)
      value = field.bytes();
  });
  return value;
}

std::vector<std::int64_t> Node::integers(std::string_view name, std::vector<std::int64_t> otherwise) const {
  std::vector<std::int64_t> values;
  bool isThere = readAttribute(name, [&](const Field &field) {
    if (field.number == 8)
      field.appendTo(values);
  });
  return isThere ? values : otherwise;
}

std::vector<double> Node::reals(std::string_view name, std::vector<double> otherwise) const {
  std::vector<float> values;
  bool isThere = readAttribute(name, [&](const Field &field) {
    if (field.number == 7)
      field.appendTo(values);
  });
  return isThere ? std::vector<double>(values.begin(), values.end()) : otherwise;
}

std::vector<std::string> Node::texts(std::string_view name) const {
  std::vector<std::string> values;
  readAttribute(name, [&](const Field &field) {
    if (field.number == 9)
      values.emplace_back(field.bytes());
  });
  return values;
}

Known Node::tensorAttribute(std::string_view name) const {
  std::optional<std::string_view> message;
  readAttribute(name, [&](const Field &field) {
    if (field.number == 5)
      message = field.bytes();
  });
  if (!message)
    throw Malformed("the attribute '" + std::string(name) + "' holds no tensor");
  return importer.tensors().read(*message);
}

file::Graph Node::graphAttribute(std::string_view name) const {
  std::optional<std::string_view> message;
  readAttribute(name, [&](const Field &field) {
    if (field.number == 6)
      message = field.bytes();
  });
  if (!message)
    throw Malformed("the attribute '" + std::string(name) + "' holds no graph");
  return file::readGraph(*message);
}

std::int64_t Node::axisOf(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank)
    fail("the dimension " + std::to_string(axis) + " does not exist: there are " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

//===- results ----------------------------------------------------------------------------------------------------===//

void Node::set(std::size_t output, ValuePtr value) {
  if (output < results.size())
    results[output] = std::move(value);
}

void Node::replace(std::size_t input, ValuePtr value) {
  if (input >= operands.size())
    operands.resize(input + 1);
  operands[input] = std::move(value);
}

void Node::countIteration() { importer.countIteration(); }
std::int64_t Node::iterations() const { return importer.iterationsSoFar(); }

Graph &Node::graph() const { return importer.graph(); }

Shape Node::shapeOf(const std::vector<Size> &sizes) const {
  std::vector<Dim> dims;
  for (const Size &size : sizes) {
    bool isMultiple = size.constant == 0 && size.rows > 0;
    if (!isMultiple && (size.rows != 0 || size.constant < 0))
      fail("a dimension has the size " + textOf(size));
    if (size == Size())
      fail("a tensor without elements is computed with");
    dims.push_back(isMultiple ? detail::Access::graph(graph())->batchDim() * size.rows : Dim(size.constant));
  }
  return Shape(std::move(dims));
}

Tensor Node::constant(const Known &known) const { return importer.constant(known); }

Tensor Node::scalar(double value, DType dtype) const { return graph().full({}, value, dtype); }

std::vector<ValuePtr> Node::call(const file::Graph &body, const std::vector<ValuePtr> &inputs) {
  return importer.callGraph(body, inputs, scope);
}

} // namespace sluice::onnx
