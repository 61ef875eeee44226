#include "tests/conformance/OpKernel.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "mlir/IR/IRMapping.h"
#include "passes/backend/KernelView.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <random>
#include <regex>

using namespace mlir;

namespace sluice::conformance {

std::unique_ptr<passes::Backend> begin(const Subject &subject) {
  sluice_compile_services services{sizeof(services), subject.host};
  sluice_target_options options{sizeof(options), "native", kCapacity, &services, "", nullptr, SLUICE_MATH_STRICT};
  auto backend = passes::Backend::create(*subject.compile, options, UnknownLoc::get(&test::getContext()));
  expect(backend != nullptr, "begin fails");
  return backend;
}

/// Attention of halves has sums of three dimensions, one for each query, in f32.
static std::string withWideSums(const std::string &op) {
  bool isAttention = op.find("attention") != std::string::npos;
  return isAttention ? std::regex_replace(op, std::regex("(tensor<[^x>]+x[^x>]+x[^x>]+x)b?f16>"), "$1f32>") : op;
}

ir::Sample withElement(ir::Sample sample, const std::string &element) {
  sample.op = std::regex_replace(sample.op, std::regex("([x<])f64>"), "$1" + element + ">");
  sample.op = withWideSums(std::regex_replace(sample.op, std::regex("to = f64"), "to = " + element));
  return sample;
}

std::optional<ir::Sample> withRows(const ir::Sample &sample) {
  std::smatch outermost;
  if (sample.op.find('?') != std::string::npos ||
      !std::regex_search(sample.op, outermost, std::regex(": \\(tensor<([0-9]+)x")))
    return std::nullopt;
  ir::Sample rows = sample;
  rows.op = std::regex_replace(sample.op, std::regex("tensor<" + outermost[1].str() + "x"), "tensor<?x");
  return test::OpInstance(rows.op).op ? std::optional(rows) : std::nullopt;
}

OpKernel::OpKernel(const ir::Sample &sample) : sample_(sample), instance_(sample.op) {
  expect(instance_.op, "the sample is no op: " + sample.op + ": " + instance_.error);
  Builder builder(&test::getContext());
  ir::getModel(*instance_.module).setCapacity(uint64_t(kCapacity));
}

/// Dimensions in reversed order, or the last of a known size in tiles of two; null if there is no such layout.
static AffineMap layoutAs(Layouts choice, RankedTensorType type) {
  MLIRContext *context = type.getContext();
  SmallVector<AffineExpr> dims;
  for (int64_t dim = type.getRank(); dim-- > 0;)
    dims.push_back(getAffineDimExpr(unsigned(dim), context));
  if (choice == Layouts::Reversed)
    return AffineMap::get(unsigned(type.getRank()), 0, dims, context);
  std::reverse(dims.begin(), dims.end());
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return AffineMap();
  AffineExpr last = dims.pop_back_val();
  dims.append({last.floorDiv(2), last % 2});
  return AffineMap::get(unsigned(type.getRank()), 0, dims, context);
}

const char *nameOf(Layouts layouts) {
  static constexpr const char *kNames[] = {"row-major", "in the layouts it likes", "with dimensions reversed",
                                           "in tiles of two"};
  return kNames[size_t(layouts)];
}

/// The backend's layouts of the op's operands, then of its results, for their present types.
SmallVector<std::pair<Value, passes::LayoutProposal>> OpKernel::ask(passes::Backend &backend) {
  SmallVector<std::pair<Value, passes::LayoutProposal>> proposals;
  ir::DiagnosticText diagnostics(&test::getContext());
  passes::KernelView kernel(op());
  auto add = [&](Value value, bool isResult, unsigned number) {
    FailureOr<passes::LayoutProposal> proposal = backend.proposeLayout(kernel, isResult, number);
    expect(succeeded(proposal), "propose_layout fails: " + diagnostics.errors());
    proposals.emplace_back(value, *proposal);
  };
  for (OpOperand &operand : op()->getOpOperands())
    add(operand.get(), /*isResult=*/false, operand.getOperandNumber());
  for (OpResult result : op()->getResults())
    add(result, /*isResult=*/true, result.getResultNumber());
  return proposals;
}

// Queries twice, like the compiler: the layouts required by the second query are those that values are converted to.
void OpKernel::takeLayouts(passes::Backend &backend, Layouts choice) {
  for (auto &[value, proposal] : ask(backend)) {
    bool proposed = proposal.required || choice == Layouts::Preferred;
    AffineMap layout = proposed                      ? proposal.layout
                       : choice == Layouts::RowMajor ? AffineMap()
                                                     : layoutAs(choice, type(value));
    if (layout)
      value.setType(ir::withLayout(type(value), layout));
  }
  for (auto &[value, proposal] : ask(backend))
    if (proposal.required && !ir::liesAs(type(value), proposal.layout))
      value.setType(ir::withLayout(type(value), proposal.layout));
}

ir::KernelOp OpKernel::outline(StringRef name) {
  Operation *op = instance_.op;
  OpBuilder builder(op);
  OperationState state(op->getLoc(), ir::KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr(name));
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

} // namespace sluice::conformance
