// Parses the messages of onnx.proto. Field numbers are those of ONNX 1.22 (IR version 14). Unknown fields are skipped.
#include "frontend/onnx/file/Model.h"
#include "frontend/onnx/file/Wire.h"

namespace sluice::onnx::file {

/// Bounds the memory of structures that take few bytes in the file: nodes, names and attributes.
static constexpr std::int64_t kMostItems = 2'000'000;

namespace {

/// Counts the structures of one graph or model.
class Items {
public:
  void add() {
    if (++count > kMostItems)
      throw Malformed("the graph has more than " + std::to_string(kMostItems) + " nodes, values and attributes");
  }

private:
  std::int64_t count = 0;
};

} // namespace

static Named readNamed(std::string_view message, std::uint32_t nameField) {
  Named named{{}, message};
  Message fields(message);
  for (Field field; fields.next(field);)
    if (field.number == nameField)
      named.name = field.bytes();
  return named;
}

static Named readAttribute(std::string_view message) { return readNamed(message, 1); }
static Named readTensorName(std::string_view message) { return readNamed(message, 8); }

static Dimension readDimension(std::string_view message) {
  Dimension dimension;
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1 && field.integer() > 0)
      dimension.size = field.integer();
    else if (field.number == 2 && field.bytes() != "?") // Paddle writes ? for each dimension without a name
      dimension.name = field.bytes();
  }
  return dimension;
}

static std::vector<Dimension> readShape(std::string_view message) {
  std::vector<Dimension> shape;
  Message fields(message);
  for (Field field; fields.next(field);)
    if (field.number == 1)
      shape.push_back(readDimension(field.bytes()));
  return shape;
}

static void readTensorType(std::string_view message, ValueInfo &info) {
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1)
      info.type = ElementType(field.integer());
    else if (field.number == 2)
      info.shape = readShape(field.bytes());
  }
}

static ValueInfo readValueInfo(std::string_view message) {
  ValueInfo info;
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1)
      info.name = field.bytes();
    if (field.number != 2)
      continue;
    Message type(field.bytes());
    for (Field kind; type.next(kind);) {
      if (kind.number == 1)
        readTensorType(kind.bytes(), info);
      else if (kind.number != 6) // 6: denotation
        info.isTensor = false;
    }
  }
  return info;
}

static Node readNode(std::string_view message, Items &items) {
  Node node;
  Message fields(message);
  for (Field field; fields.next(field);) {
    switch (field.number) {
    case 1:
      items.add();
      node.inputs.push_back(field.bytes());
      break;
    case 2:
      items.add();
      node.outputs.push_back(field.bytes());
      break;
    case 3:
      node.name = field.bytes();
      break;
    case 4:
      node.op = field.bytes();
      break;
    case 5:
      items.add();
      node.attributes.push_back(readAttribute(field.bytes()));
      break;
    case 7:
      node.domain = field.bytes();
      break;
    case 8:
      node.overload = field.bytes();
      break;
    }
  }
  if (node.op.empty())
    throw Malformed("a node has no operator");
  if (node.domain == "ai.onnx")
    node.domain = "";
  return node;
}

static std::string_view sparseName(std::string_view message) {
  Message fields(message);
  for (Field field; fields.next(field);)
    if (field.number == 1)
      return readTensorName(field.bytes()).name;
  return {};
}

static Graph readGraph(std::string_view message, Items &items) {
  Graph graph;
  Message fields(message);
  for (Field field; fields.next(field);) {
    items.add();
    switch (field.number) {
    case 1:
      graph.nodes.push_back(readNode(field.bytes(), items));
      break;
    case 2:
      graph.name = field.bytes();
      break;
    case 5:
      graph.initializers.push_back(readTensorName(field.bytes()));
      break;
    case 10:
      graph.doc = field.bytes();
      break;
    case 11:
      graph.inputs.push_back(readValueInfo(field.bytes()));
      break;
    case 12:
      graph.outputs.push_back(readValueInfo(field.bytes()));
      break;
    case 15:
      graph.sparse.push_back(sparseName(field.bytes()));
      break;
    }
  }
  return graph;
}

Graph readGraph(std::string_view message) {
  Items items;
  return readGraph(message, items);
}

std::vector<Graph> graphsOf(const Node &node) {
  std::vector<Graph> graphs;
  for (const Named &attribute : node.attributes) {
    Message fields(attribute.message);
    for (Field field; fields.next(field);)
      if (field.number == 6 || field.number == 11)
        graphs.push_back(readGraph(field.bytes()));
  }
  return graphs;
}

static void readOpset(std::string_view message, Opsets &opsets) {
  std::string_view domain;
  std::int64_t version = 0;
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1)
      domain = field.bytes();
    else if (field.number == 2)
      version = field.integer();
  }
  opsets[domain == "ai.onnx" ? "" : domain] = version;
}

static Function readFunction(std::string_view message, Items &items) {
  Function function;
  Message fields(message);
  for (Field field; fields.next(field);) {
    items.add();
    switch (field.number) {
    case 1:
      function.name = field.bytes();
      break;
    case 4:
      function.inputs.push_back(field.bytes());
      break;
    case 5:
      function.outputs.push_back(field.bytes());
      break;
    case 7:
      function.nodes.push_back(readNode(field.bytes(), items));
      break;
    case 9:
      readOpset(field.bytes(), function.opsets);
      break;
    case 10:
      function.domain = field.bytes();
      break;
    case 11:
      function.defaults.push_back(readAttribute(field.bytes()));
      break;
    case 13:
      function.overload = field.bytes();
      break;
    }
  }
  return function;
}

static std::pair<std::string_view, std::string_view> readEntry(std::string_view message) {
  std::pair<std::string_view, std::string_view> entry;
  Message fields(message);
  for (Field field; fields.next(field);) {
    if (field.number == 1)
      entry.first = field.bytes();
    else if (field.number == 2)
      entry.second = field.bytes();
  }
  return entry;
}

Model readModel(std::string_view bytes) {
  Model model;
  Items items;
  bool hasGraph = false;
  Message fields(bytes);
  for (Field field; fields.next(field);) {
    switch (field.number) {
    case 1:
      model.irVersion = field.integer();
      break;
    case 2:
      model.producer = field.bytes();
      break;
    case 3:
      model.producerVersion = field.bytes();
      break;
    case 4:
      model.domain = field.bytes();
      break;
    case 5:
      model.version = field.integer();
      break;
    case 6:
      model.doc = field.bytes();
      break;
    case 7:
      model.graph = readGraph(field.bytes(), items);
      hasGraph = true;
      break;
    case 8:
      readOpset(field.bytes(), model.opsets);
      break;
    case 14:
      items.add();
      model.metadata.push_back(readEntry(field.bytes()));
      break;
    case 25:
      model.functions.push_back(readFunction(field.bytes(), items));
      break;
    }
  }
  if (!hasGraph)
    throw Malformed("the file has no graph");
  if (model.opsets.empty())
    model.opsets[""] = 1; // files before opset imports existed
  return model;
}

} // namespace sluice::onnx::file
