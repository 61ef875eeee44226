#include "tests/conformance/OpKernel.h"

#include "ir/Layout.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>
#include <random>
#include <regex>

using namespace mlir;

namespace sluice::conformance {

ir::Sample withElement(ir::Sample sample, const std::string &element) {
  sample.op = std::regex_replace(sample.op, std::regex("([x<])f64>"), "$1" + element + ">");
  sample.op = std::regex_replace(sample.op, std::regex("to = f64"), "to = " + element);
  return sample;
}

OpKernel::OpKernel(const ir::Sample &sample) : sample_(sample), instance_(sample.op) {
  expect(instance_.op, "the sample is no op: " + sample.op + ": " + instance_.error);
  Builder builder(&test::getContext());
  (*instance_.module)->setAttr(ir::kCapacityAttr, builder.getI64IntegerAttr(kCapacity));
}

void OpKernel::takeLayouts(passes::Backend &backend, bool preferred) {
  std::vector<std::pair<Value, passes::LayoutProposal>> proposals;
  for (OpOperand &operand : op()->getOpOperands())
    if (auto proposal = backend.proposeLayout(op(), /*isResult=*/false, operand.getOperandNumber());
        succeeded(proposal))
      proposals.emplace_back(operand.get(), *proposal);
  for (OpResult result : op()->getResults())
    if (auto proposal = backend.proposeLayout(op(), /*isResult=*/true, result.getResultNumber()); succeeded(proposal))
      proposals.emplace_back(result, *proposal);
  for (auto &[value, proposal] : proposals)
    if (proposal.layout && (preferred || proposal.required))
      value.setType(ir::withLayout(type(value), proposal.layout));
}

ir::KernelOp OpKernel::outline() {
  Operation *op = instance_.op;
  OpBuilder builder(op);
  OperationState state(op->getLoc(), ir::KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr("conformance"));
  state.addOperands(op->getOperands());
  state.addTypes(op->getResultTypes());
  Block *block = new Block;
  state.addRegion()->push_back(block);
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, block->addArgument(operand.getType(), op->getLoc()));
  OpBuilder inner(op->getContext());
  inner.setInsertionPointToEnd(block);
  Operation *clone = inner.clone(*op, mapping);
  inner.create<ir::YieldOp>(op->getLoc(), clone->getResults());
  kernel_ = cast<ir::KernelOp>(builder.create(state));
  op->replaceAllUsesWith(kernel_);
  op->erase();
  instance_.op = nullptr;
  return kernel_;
}

bool OpKernel::hasRows() const {
  auto isDynamic = [](Type type) { return !cast<RankedTensorType>(type).hasStaticShape(); };
  return llvm::any_of(kernel_->getOperandTypes(), isDynamic) || llvm::any_of(kernel_->getResultTypes(), isDynamic);
}

std::vector<ir::HostTensor> OpKernel::drawOperands(int64_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<ir::HostTensor> operands;
  for (auto [number, range] : llvm::enumerate(sample_.ranges)) {
    Type element = operandType(unsigned(number)).getElementType();
    ir::HostTensor &tensor = operands.emplace_back(ir::runtimeShape(operandType(unsigned(number)), rows));
    for (double &value : tensor.data) {
      double unit = double(random() >> 11) * 0x1p-53;
      value = range.first + unit * (range.second - range.first);
      value = ir::roundTo(element, isa<FloatType>(element) ? value : std::floor(value));
    }
  }
  return operands;
}

std::vector<ir::HostTensor> OpKernel::evaluate(const std::vector<ir::HostTensor> &operands, int64_t rows) {
  ir::StateMap states;
  auto results = ir::interpret(instance_.entry, operands, states, rows);
  expect(succeeded(results), "the reference function fails");
  return std::vector<ir::HostTensor>(results->begin(), results->end());
}

Bytes pack(RankedTensorType type, const ir::HostTensor &value, int64_t rows) {
  Type element = type.getElementType();
  size_t size = size_t(ir::getElementBytes(element));
  Bytes bytes(size_t(ir::getBufferBytes(type, kCapacity)), 0);
  ir::forEachElement(type, kCapacity, kCapacity, [&](ArrayRef<int64_t>, int64_t place) {
    std::fill_n(bytes.begin() + place * int64_t(size), size, 0xff);
  });
  ir::forEachElement(type, rows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    ir::writeElement(element, &bytes[size_t(place) * size], value.at(index));
  });
  return bytes;
}

ir::HostTensor unpack(RankedTensorType type, const Bytes &bytes, int64_t rows) {
  ir::HostTensor value(ir::runtimeShape(type, rows));
  size_t size = size_t(ir::getElementBytes(type.getElementType()));
  ir::forEachElement(type, rows, kCapacity, [&](ArrayRef<int64_t> index, int64_t place) {
    value.at(index) = ir::readElement(type.getElementType(), &bytes[size_t(place) * size]);
  });
  return value;
}

void expectEqual(RankedTensorType type, const ir::HostTensor &found, const ir::HostTensor &expected,
                 const std::string &what) {
  Type element = type.getElementType();
  double tolerance = element.isF64() ? 1e-10 : element.isF32() ? 2e-4 : 0;
  double largest = 1;
  for (double value : expected.data)
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    double want = ir::roundTo(element, expected.data[i]), have = found.data[i];
    bool same = have == want || (std::isnan(have) && std::isnan(want)) || std::fabs(have - want) <= tolerance * largest;
    expect(same, what + ": element " + std::to_string(i) + " is " + std::to_string(have) + " instead of " +
                     std::to_string(want));
  }
}

} // namespace sluice::conformance
