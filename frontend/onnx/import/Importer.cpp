#include "frontend/onnx/import/Importer.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/AtNode.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/import/Order.h"
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/error.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

using detail::Access;
using detail::GraphImpl;

std::string nameOf(const file::Node &node, const std::string &prefix) {
  if (!node.name.empty())
    return prefix + std::string(node.name);
  for (std::string_view output : node.outputs)
    if (!output.empty())
      return prefix + std::string(output);
  return prefix + std::string(node.op);
}

std::string operatorOf(const file::Node &node) {
  return node.domain.empty() ? std::string(node.op) : std::string(node.domain) + "." + std::string(node.op);
}

//===- scopes -----------------------------------------------------------------------------------------------------===//

ValuePtr Scope::find(std::string_view name) const {
  for (const Scope *scope = this; scope; scope = scope->outer)
    if (auto found = scope->values.find(name); found != scope->values.end())
      return found->second;
  throw Malformed("nothing computes '" + std::string(name) + "'");
}

bool Scope::isInFunction() const { return arguments || (outer && outer->isInFunction()); }

std::optional<file::Named> Scope::resolve(const file::Named &attribute) const {
  std::string_view referred;
  Message fields(attribute.message);
  for (Field field; fields.next(field);)
    if (field.number == 21)
      referred = field.bytes();
  if (referred.empty())
    return attribute;
  for (const Scope *scope = this; scope; scope = scope->outer) {
    if (!scope->arguments)
      continue;
    auto argument = scope->arguments->find(referred);
    return argument == scope->arguments->end() ? std::nullopt : std::optional(argument->second);
  }
  throw Malformed("an attribute outside of a function refers to '" + std::string(referred) + "'");
}

//===- the walk ---------------------------------------------------------------------------------------------------===//

Importer::Importer(Graph &graph, const file::Model &model, file::Tensors &tensors, MakeState makeState, Rules rules)
    : target(&graph), model(model), data(tensors), makeState(std::move(makeState)), rules(rules) {}

void Importer::addInitializers(const file::Graph &graph, Scope &scope) {
  for (const file::Named &initializer : graph.initializers) {
    ValuePtr value = valueOf(data.read(initializer.message));
    value->name = initializer.name;
    value->isWeight = true;
    scope.values.emplace(initializer.name, std::move(value));
  }
}

/// Functions may expand to exponentially many nodes. This many need about 50 MB and a second.
static constexpr std::int64_t kMostExpanded = 1 << 18;

/// Loops and operators such as Expand compute values that are much larger than the file.
static constexpr std::uint64_t kMostComputed = std::uint64_t(1) << 26;

namespace {

/// An error whose text begins with its node.
struct AtItsNode : Malformed {
  using Malformed::Malformed;
};

/// RAII: counts graphs and functions within each other.
class Depth {
public:
  explicit Depth(int &depth) : depth(depth) {
    if (++depth > kMostNested)
      throw Malformed("more than " + std::to_string(kMostNested) + " graphs or functions lie within each other");
  }
  Depth(const Depth &) = delete;
  ~Depth() { --depth; }

private:
  int &depth;
};

} // namespace

std::vector<ValuePtr> Importer::run(const std::map<std::string, ValuePtr, std::less<>> &inputs,
                                    const std::vector<std::string> &outputs) {
  Scope scope{.opsets = &model.opsets};
  for (const auto &[name, value] : inputs)
    scope.values.emplace(name, value);
  if (!model.graph.sparse.empty())
    throw Malformed("the initializer '" + std::string(model.graph.sparse.front()) +
                    "' is sparse, which cannot be imported");
  addInitializers(model.graph, scope);
  walk(model.graph.nodes, {outputs.begin(), outputs.end()}, scope);
  std::vector<ValuePtr> results;
  for (const std::string &output : outputs) {
    results.push_back(scope.find(output));
    if (!results.back())
      throw Malformed("the output '" + output + "' is an input that a function call omits");
  }
  return results;
}

void Importer::walk(const std::vector<file::Node> &nodes, const std::vector<std::string_view> &outputs, Scope &scope) {
  Depth nested(depth);
  std::vector<const file::Node *> order = orderOf(nodes, outputs);
  scope.reads = readsOf(order, outputs);
  for (const file::Node *node : order)
    import(*node, scope);
}

const file::Function *Importer::functionOf(const file::Node &node) const {
  for (const file::Function &function : model.functions)
    if (function.name == node.op && function.domain == node.domain && function.overload == node.overload)
      return &function;
  return nullptr;
}

static std::int64_t versionOf(const file::Opsets &opsets, std::string_view domain) {
  auto found = opsets.find(domain);
  return found == opsets.end() ? 1 : found->second;
}

void Importer::note(const file::Node &node, const Scope &scope, std::int64_t opset, const std::string &reason) {
  std::string op = operatorOf(node);
  auto known =
      std::ranges::find_if(found, [&](const Problem &problem) { return problem.op == op && problem.reason == reason; });
  if (known == found.end())
    known = found.insert(found.end(), {op, reason, nameOf(node, scope.prefix), opset});
  ++known->nodes;
}

std::string Importer::problemText() const {
  if (found.empty())
    return {};
  std::string text = found.size() == 1 ? "1 operator is" : std::to_string(found.size()) + " operators are";
  text += " not supported: ";
  for (const Problem &problem : found) {
    text += &problem == &found.front() ? "" : ", ";
    text += problem.op + " (" + std::to_string(problem.nodes) + (problem.nodes == 1 ? " node, '" : " nodes, first '") +
            problem.first + "', opset " + std::to_string(problem.opset) +
            (problem.reason.empty() ? "" : ": " + problem.reason) + ")";
  }
  return text;
}

void Importer::import(const file::Node &node, Scope &scope) {
  if (++visited > kMostExpanded + std::int64_t(model.graph.nodes.size()))
    throw Malformed("functions and loops expand to more than " + std::to_string(kMostExpanded) + " nodes");
  for (std::string_view output : node.outputs)
    if (!output.empty())
      scope.values[output] = lostValue();
  for (std::string_view input : node.inputs)
    if (ValuePtr value = input.empty() ? nullptr : scope.find(input); value && value->isLost())
      return;
  std::int64_t opset = versionOf(*scope.opsets, node.domain);
  AtNode at(*Access::graph(*target), nameOf(node, scope.prefix));
  try {
    if (const file::Function *function = functionOf(node))
      return callFunction(*function, node, scope);
    importOperator(node, scope, opset);
  } catch (const Unsupported &error) {
    note(node, scope, opset, error.what());
  } catch (const Malformed &error) {
    if (functionOf(node) && dynamic_cast<const AtItsNode *>(&error)) // whose path names this node
      throw;
    throw AtItsNode("node '" + nameOf(node, scope.prefix) + "' (" + std::string(node.op) + "): " + error.what());
  } catch (const Error &error) {
    note(node, scope, opset, error.message());
  }
}

/// The memory of a value of a sequence and of its dimensions, as measured.
static constexpr std::uint64_t kBytesOfValue = 350;

void Importer::countComputed(const Node &node) {
  for (const ValuePtr &result : node.results) {
    if (const Sequence *sequence = result ? result->sequence() : nullptr)
      for (const ValuePtr &element : sequence->elements)
        computed += sizeof element + (element.use_count() == 1 ? kBytesOfValue : 0);
    const Known *known = result ? result->known() : nullptr;
    bool isView = !known || known->isInFile() || std::ranges::any_of(node.operands, [&](const ValuePtr &operand) {
      return operand && operand->known() && known->isPartOf(*operand->known());
    });
    computed += isView ? 0 : known->bytes();
  }
  if (computed > kMostComputed + 16 * data.bytesOfFiles()) // weights are dequantized and transposed
    throw Unsupported("the values that are computed during the import have more than " +
                      std::to_string(kMostComputed >> 20) + " MiB and 16 times the size of the file");
}

void Importer::importOperator(const file::Node &file, Scope &scope, std::int64_t opset) {
  const Operator *row = findOperator(file.domain, file.op, opset);
  if (!row)
    throw Unsupported("");
  Node node(*this, scope, file, opset);
  bool isStatic = true, areKnown = true, hasWeight = false, areWeights = true;
  for (const ValuePtr &operand : node.operands) {
    isStatic &= !operand || !operand->tensor();
    areKnown &= !operand || operand->known();
    hasWeight |= operand && operand->isWeight;
    areWeights &= !operand || operand->isWeight || !isFloat(operand->type); // a shape may be a constant
  }
  bool isDone = row->folds && isStatic && row->evaluator && row->evaluator(node);
  if (!isDone && row->folds && areKnown && !node.operands.empty())
    isDone = fold(node, row->handler);
  if (!isDone && !(rules.recognizes && recognize(node)))
    row->handler(node);
  countComputed(node);
  auto origin = std::make_shared<const Origin>(file, node.operands, opset);
  for (std::size_t i = 0; i < file.outputs.size(); ++i) {
    if (file.outputs[i].empty())
      continue;
    if (!node.results[i])
      throw Unsupported("output " + std::to_string(i) + " is not supported");
    if (node.results[i]->name.empty()) {
      node.results[i]->name = file.outputs[i];
      node.results[i]->isWeight |= hasWeight && areWeights;
      if (node.results[i]->tensor() && !scope.isInFunction())
        node.results[i]->origin = origin;
      node.results[i]->isReadOnce = scope.reads[file.outputs[i]] == 1;
    }
    scope.values[file.outputs[i]] = node.results[i];
  }
}

void Importer::countIteration() {
  constexpr std::int64_t most = 1 << 16;
  if (++iterations > most)
    throw Unsupported("loops are unrolled to more than " + std::to_string(most) + " iterations");
}

//===- graphs and functions ---------------------------------------------------------------------------------------===//

std::vector<ValuePtr> Importer::callGraph(const file::Graph &body, const std::vector<ValuePtr> &inputs,
                                          const Scope &outer) {
  Scope scope{.outer = &outer, .opsets = outer.opsets, .prefix = outer.prefix};
  if (inputs.size() > body.inputs.size())
    throw Malformed("a graph takes " + std::to_string(body.inputs.size()) + " inputs, and is given " +
                    std::to_string(inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    scope.values[body.inputs[i].name] = inputs[i];
  addInitializers(body, scope);
  std::vector<std::string_view> outputs;
  for (const file::ValueInfo &output : body.outputs)
    outputs.push_back(output.name);
  walk(body.nodes, outputs, scope);
  std::vector<ValuePtr> results;
  for (std::string_view output : outputs)
    results.push_back(scope.find(output));
  return results;
}

void Importer::callFunction(const file::Function &function, const file::Node &node, Scope &scope) {
  std::map<std::string_view, file::Named> arguments;
  for (const file::Named &argument : function.defaults)
    arguments[argument.name] = argument;
  for (const file::Named &argument : node.attributes)
    if (std::optional<file::Named> resolved = scope.resolve(argument))
      arguments[argument.name] = *resolved;
  Scope inner{.opsets = function.opsets.empty() ? scope.opsets : &function.opsets,
              .arguments = &arguments,
              .prefix = nameOf(node, scope.prefix) + "/"};
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    bool isGiven = i < node.inputs.size() && !node.inputs[i].empty();
    inner.values[function.inputs[i]] = isGiven ? scope.find(node.inputs[i]) : nullptr;
  }
  walk(function.nodes, function.outputs, inner);
  for (std::size_t i = 0; i < std::min(function.outputs.size(), node.outputs.size()); ++i)
    if (!node.outputs[i].empty())
      scope.values[node.outputs[i]] = inner.find(function.outputs[i]);
}

//===- tensors ----------------------------------------------------------------------------------------------------===//

Tensor Importer::constant(const Known &known) const {
  std::optional<DType> held = heldAs(known.type());
  if (!held)
    throw Unsupported("values of type " + nameOf(known.type()) + " are not supported");
  Shape shape(std::vector<Dim>(known.dims().begin(), known.dims().end()));
  if (known.count() == 0)
    throw Unsupported("a tensor without elements is computed with");
  bool isEqual = known.isUniform() || known.count() == 1;
  if (isEqual && (is_float(*held) || std::abs(known.integer(0)) < std::int64_t(1) << 53))
    return target->full(shape, is_float(*held) ? known.real(0) : double(known.integer(0)), *held);
  GraphImpl &impl = *Access::graph(*target);
  SourceLocation nowhere;
  mlir::RankedTensorType type = impl.typeOf("constant", *held, shape, nowhere);
  return Access::tensor(impl, impl.constantOf(known.source("a constant"), type, nowhere));
}

/// The number of rows is the sum of one 1 for each row.
Tensor Importer::tensorOf(const Sizes &sizes) const {
  std::vector<std::int64_t> constants, factors;
  for (const Size &size : sizes.elements) {
    constants.push_back(size.constant);
    factors.push_back(size.rows);
  }
  Dims dims = sizes.isScalar ? Dims() : Dims{std::int64_t(constants.size())};
  Tensor rows = target->full({Access::graph(*target)->batchDim()}, 1, i64).sum();
  return rows * constant(Known::ofIntegers(ElementType::i64, dims, factors)) +
         constant(Known::ofIntegers(ElementType::i64, dims, constants));
}

Tensor Importer::tensorOf(const ValuePtr &value, bool isWeight) {
  if (const Tensor *tensor = value->tensor())
    return *tensor;
  if (value->made && !foldInputs)
    return value->made;
  GraphImpl &impl = *Access::graph(*target);
  mlir::OpBuilder::InsertionGuard guard(impl.builder);
  impl.builder.setInsertionPointToEnd(&impl.graph.getBody().front()); // in a branch or a loop: before it, for all nodes
  if (const Sizes *sizes = value->sizes())
    return value->made = tensorOf(*sizes);
  const Known *known = value->known();
  if (!known)
    throw Unsupported("an input is not supported");
  if (foldInputs)
    return tensorToFold(value);
  bool isFloat = onnx::isFloat(known->type());
  bool isParameter =
      isFloat && known->rank() > 0 && !known->isUniform() && (isWeight || (value->isWeight && known->count() > 1));
  value->made =
      isParameter && known->count() > 0 ? makeState("parameter", std::string(value->name), *known) : constant(*known);
  return value->made;
}

Tensor Importer::stateOf(const char *kind, std::string_view name, const Known &known) {
  GraphImpl &impl = *Access::graph(*target);
  mlir::OpBuilder::InsertionGuard guard(impl.builder);
  impl.builder.setInsertionPointToEnd(&impl.graph.getBody().front());
  return makeState(kind, std::string(name), known);
}

} // namespace sluice::onnx
