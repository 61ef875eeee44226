#include "tests/e2e/Kinks.h"
#include "ir/DiagnosticText.h"
#include "ir/ParseGuard.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice::test {

/// The parameters that `op` reads.
static std::vector<std::string> readParameters(Operation *op, ModuleOp module) {
  std::vector<std::string> names;
  for (Value operand : op->getOperands())
    if (auto get = operand.getDefiningOp<ir::GetOp>();
        get && module.lookupSymbol<ir::StateOp>(get.getState()).getKind() == "parameter")
      names.push_back(get.getState().str());
  return names;
}

Kinks::Kinks(const std::string &text) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = llvm::cantFail(ir::parseModuleText(text, "model.mlir", context));
  Kink next;
  std::string after;
  module->walk([&](Operation *op) {
    for (const std::string &parameter : readParameters(op, *module)) {
      next.upstream.insert(parameter);
      after = " after " + parameter;
    }
    if (!isa<ir::ReluOp, ir::MaxOp, ir::MinOp>(op))
      return;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    next.hasSides = op->getNumOperands() == 2;
    Value distance = op->getOperand(0);
    if (next.hasSides)
      distance = builder.create<ir::SubOp>(op->getLoc(), distance.getType(), distance, op->getOperand(1));
    next.output = "kink" + std::to_string(kinks.size());
    builder.create<ir::MetricOp>(op->getLoc(), next.output, distance);
    next.name = op->getName().stripDialect().str() + " of " + ir::printPlace(op->getLoc()) + after;
    next.row = cast<RankedTensorType>(distance.getType()).getShape().drop_front().vec();
    kinks.push_back(next);
  });
  llvm::raw_string_ostream out(modified);
  module->print(out, OpPrintingFlags().enableDebugInfo());
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

std::vector<Kinks::Flip> Kinks::findFlips(const Values &single, const Values &exact) const {
  std::vector<Flip> flips;
  for (const Kink &kink : kinks) {
    auto side = [&](double distance) { return distance > 0 ? 1 : kink.hasSides && distance < 0 ? -1 : 0; };
    const std::vector<double> &a = single.at(kink.output), &b = exact.at(kink.output);
    for (size_t i = 0; i < a.size(); ++i)
      if (side(a[i]) != side(b[i]))
        flips.push_back({kink.name + " at " + printIndex(i, kink.row), a[i], b[i], kink.upstream});
  }
  return flips;
}

} // namespace sluice::test
