#include "tests/e2e/Kinks.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace sluice::test {

/// The last parameter in the operands of `op`.
static std::optional<std::string> readParameter(Operation *op, ModuleOp module) {
  std::optional<std::string> name;
  for (Value operand : op->getOperands())
    if (auto get = operand.getDefiningOp<ir::GetOp>();
        get && module.lookupSymbol<ir::StateOp>(get.getState()).getKind() == ir::StateKind::Parameter)
      name = get.getState().str();
  return name;
}

/// Adds an input to the first operand of `op`.
static void addNudge(Operation *op, const std::string &name) {
  auto graph = op->getParentOfType<ir::GraphOp>();
  SmallVector<Attribute> names(graph.getInputs().getValue());
  OpBuilder builder(op);
  names.push_back(builder.getStringAttr(name));
  graph.setInputsAttr(builder.getArrayAttr(names));
  Value x = op->getOperand(0), nudge = graph.getBody().addArgument(x.getType(), op->getLoc());
  op->setOperand(0, builder.create<ir::AddOp>(op->getLoc(), x.getType(), x, nudge));
}

Kinks::Kinks(const std::string &text) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = llvm::cantFail(ir::parseModuleText(text, "model.mlir", context));
  std::string after;
  SmallVector<Operation *> ops;
  module->walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (std::optional<std::string> parameter = readParameter(op, *module))
      after = " after " + *parameter;
    if (!isa<ir::ReluOp, ir::MaxOp, ir::MinOp>(op))
      continue;
    std::string number = std::to_string(kinks.size());
    Kink kink{"kink" + number, "nudge" + number, op->getName().stripDialect().str(), {}, op->getNumOperands() == 2};
    addNudge(op, kink.nudge);
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value distance = op->getOperand(0);
    if (kink.hasSides)
      distance = builder.create<ir::SubOp>(op->getLoc(), distance.getType(), distance, op->getOperand(1));
    builder.create<ir::MetricOp>(op->getLoc(), kink.output, distance);
    kink.name += " of " + ir::printLocation(op->getLoc()) + after;
    kink.row = cast<RankedTensorType>(distance.getType()).getShape().drop_front().vec();
    kinks.push_back(kink);
  }
  llvm::raw_string_ostream out(modified);
  module->print(out, OpPrintingFlags().enableDebugInfo());
}

Values Kinks::stillness(int64_t rows) const {
  Values nudges;
  for (const Kink &kink : kinks)
    nudges[kink.nudge].resize(
        size_t(std::accumulate(kink.row.begin(), kink.row.end(), rows, std::multiplies<int64_t>())));
  return nudges;
}

static std::string printIndex(size_t element, const std::vector<int64_t> &row) {
  SmallVector<std::string> index;
  for (int64_t size : llvm::reverse(row)) {
    index.push_back(std::to_string(element % size));
    element /= size;
  }
  index.push_back(std::to_string(element));
  std::reverse(index.begin(), index.end());
  return "[" + llvm::join(index, ", ") + "]";
}

int Kinks::Kink::side(double distance) const {
  if (std::isnan(distance))
    return 2;
  return distance > 0 ? 1 : hasSides && distance < 0 ? -1 : 0;
}

std::vector<Kinks::Flip> Kinks::findFlips(const Values &single, const Values &exact) const {
  std::vector<Flip> flips;
  for (const Kink &kink : kinks) {
    const std::vector<double> &a = single.at(kink.output), &b = exact.at(kink.output);
    for (size_t i = 0; i < a.size(); ++i)
      if (kink.side(a[i]) != kink.side(b[i]))
        flips.push_back({kink.name + " at " + printIndex(i, kink.row), a[i], b[i], kink.nudge, i});
  }
  return flips;
}

void Kinks::nudge(Values &nudges, const std::vector<Flip> &flips) {
  for (const Flip &flip : flips)
    nudges.at(flip.nudge)[flip.element] += flip.single - flip.exact;
}

} // namespace sluice::test
