#include "passes/train/MetricFigures.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

MetricFigures::MetricFigures(GraphOp graph, Value loss) {
  CallFlows flows(graph);
  if (loss)
    reportList.push_back({"loss", loss});
  auto metrics = llvm::to_vector(graph.getBody().getOps<MetricOp>());
  for (MetricOp metric : metrics)
    reportList.push_back({metric.getName().str(), metric.getValue()});
  if (loss)
    add(flows, "loss", loss, /*isDeclared=*/false);
  for (MetricOp metric : metrics)
    add(flows, metric.getName().str(), metric.getValue(), metric->hasAttr(kIsFormula));
}

void MetricFigures::add(const CallFlows &flows, const std::string &name, Value value, bool isDeclared) {
  auto [flow, formula] = flows.figureOf(value, isDeclared);
  if (flow == CallFlow::Sum)
    reportList.push_back({name + "/sum", value});
  if (flow == CallFlow::Own)
    reportList.push_back({name + "/calls", value});
  if (flow != CallFlow::Formula)
    return;
  for (auto [number, part] : llvm::enumerate(formula.parts)) {
    std::string &partName = nameOf[part]; // metrics may share parts
    if (!partName.empty())
      continue;
    partName = name + "/" + std::to_string(number) + (flows.of(part) == CallFlow::Sum ? "/sum" : "");
    reportList.push_back({partName, part});
  }
  formulas.push_back({name, value, std::move(formula)});
}

static Type wide(Type element) {
  return isa<FloatType>(element) ? Type(Float64Type::get(element.getContext())) : element;
}

/// The type in f64 and without a device.
static RankedTensorType wideTensor(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), wide(type.getElementType()));
}

static Attribute wideElements(DenseFPElementsAttr elements) {
  return elements.mapValues(Float64Type::get(elements.getContext()), [](APFloat value) {
    bool inexact = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    return value.bitcastToAPInt();
  });
}

/// Clones an op of a formula in f64, without a pinned device.
static void cloneWide(OpBuilder &builder, Operation *op, IRMapping &mapping, AttrTypeReplacer &replacer) {
  if (isa<CopyOp, VariableOp>(op)) {
    mapping.map(op->getResult(0), mapping.lookup(op->getOperand(0)));
    return;
  }
  Operation *copy = builder.clone(*op, mapping);
  copy->removeAttr(kPinAttr);
  replacer.replaceElementsIn(copy, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

void MetricFigures::addEntry(ModuleOp module, Location loc) const {
  if (formulas.empty())
    return;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<StringRef> inputs, outputs;
  SmallVector<Type> types;
  for (auto &[part, name] : nameOf) {
    inputs.push_back(name);
    types.push_back(wideTensor(cast<RankedTensorType>(part.getType())));
  }
  for (const Formula &formula : formulas)
    outputs.push_back(formula.name);
  EntryOp entry = createEntry(builder, loc, kMetricsEntry, inputs, types, outputs);
  IRMapping mapping;
  for (auto [named, argument] : llvm::zip_equal(nameOf, entry.getActions().getArguments()))
    mapping.map(named.first, argument);
  AttrTypeReplacer replacer;
  replacer.addReplacement([](FloatType type) { return wide(type); });
  replacer.addReplacement([](RankedTensorType type) -> Type { return wideTensor(type); });
  replacer.addReplacement([](DenseFPElementsAttr elements) { return wideElements(elements); });
  builder.setInsertionPointToEnd(&entry.getActions());
  SmallVector<Value> values;
  for (const Formula &formula : formulas) {
    for (Operation *op : formula.formula.ops)
      if (!mapping.contains(op->getResult(0)))
        cloneWide(builder, op, mapping, replacer);
    values.push_back(mapping.lookup(formula.value));
  }
  builder.create<ReturnOp>(loc, values);
}

} // namespace sluice::passes
