#include "tests/e2e/torch/ModelJson.h"
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include <cmath>

using namespace mlir;
using nlohmann::json;

namespace sluice::test {

static std::string printed(auto printable) {
  std::string text;
  llvm::raw_string_ostream(text) << printable;
  return text;
}

static json shapeJson(ArrayRef<int64_t> shape) {
  json sizes = json::array();
  for (int64_t size : shape)
    sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  return sizes;
}

static json typeJson(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return {{"dtype", printed(type)}};
  return {{"dtype", printed(tensor.getElementType())}, {"shape", shapeJson(tensor.getShape())}};
}

static json attributeJson(Attribute attribute) {
  if (isa<UnitAttr>(attribute))
    return true;
  if (auto number = dyn_cast<FloatAttr>(attribute)) {
    double value = number.getValueAsDouble();
    return std::isfinite(value) ? json(value) : json(std::to_string(value)); // JSON has no infinities
  }
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute))
    return shapeJson(numbers.asArrayRef());
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto state = dyn_cast<FlatSymbolRefAttr>(attribute))
    return state.getValue().str();
  if (auto type = dyn_cast<TypeAttr>(attribute))
    return typeJson(type.getValue());
  return printed(attribute);
}

namespace {
class GraphJson {
public:
  json describe(ModuleOp module) {
    json model{{"ops", json::array()}, {"inputs", json::object()}, {"parameters", json::array()}};
    for (auto state : module.getOps<ir::StateOp>())
      if (state.getKind() == ir::StateKind::Parameter)
        model["parameters"].push_back(state.getSymName().str());
    auto graph = *module.getOps<ir::GraphOp>().begin();
    for (auto [name, argument] :
         llvm::zip_equal(graph.getInputs().getAsValueRange<StringAttr>(), graph.getBody().getArguments())) {
      model["inputs"][name.str()] = typeJson(argument.getType());
      model["inputs"][name.str()]["value"] = numberOf(argument);
    }
    for (Operation &op : graph.getBody().front())
      model["ops"].push_back(describe(op));
    return model;
  }

private:
  json describe(Operation &op) {
    json described{{"op", op.getName().stripDialect().str()},
                   {"operands", json::array()},
                   {"results", json::array()},
                   {"types", json::array()},
                   {"attributes", json::object()}};
    for (Value operand : op.getOperands())
      described["operands"].push_back(numberOf(operand));
    for (Value result : op.getResults()) {
      described["results"].push_back(numberOf(result));
      described["types"].push_back(typeJson(result.getType()));
    }
    for (NamedAttribute attribute : op.getAttrDictionary())
      described["attributes"][attribute.getName().str()] = attributeJson(attribute.getValue());
    return described;
  }

  size_t numberOf(Value value) { return numbers.try_emplace(value, numbers.size()).first->second; }

  DenseMap<Value, size_t> numbers;
};
} // namespace

json modelJson(const std::string &text) {
  MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  OwningOpRef<ModuleOp> module = llvm::cantFail(ir::parseModuleText(text, "model.mlir", context));
  return GraphJson().describe(*module);
}

} // namespace sluice::test
