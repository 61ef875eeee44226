#include "ir/reference/Interpreter.h"

using namespace mlir;

namespace sluice::ir {

namespace {

class Interpreter {
public:
  Interpreter(StateMap &states, int64_t rows, const InterpreterOptions &options)
      : states(states), rows(rows), options(options) {}

  /// Runs a body whose arguments have these values; gives the operands of its terminator.
  FailureOr<SmallVector<HostTensor>> run(Block &body, ArrayRef<HostTensor> arguments) {
    for (auto [argument, value] : llvm::zip_equal(body.getArguments().take_front(arguments.size()), arguments))
      values[argument] = value;
    SmallVector<HostTensor> results;
    for (Operation &op : body)
      if (failed(runOp(op, results)))
        return failure();
    return results;
  }

  StateMap written;

private:
  /// Values alone: everything is done in order here, so that events tell nothing.
  SmallVector<HostTensor> operandsOf(Operation &op) {
    SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        operands.push_back(values.at(operand.getAsOpaquePointer()));
    return operands;
  }

  /// What a kernel or launch runs; null of other ops.
  static Region *bodyOf(Operation &op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return &kernel.getBody();
    auto launch = dyn_cast<LaunchOp>(op);
    return launch ? &launch.getCallee().getBody() : nullptr;
  }

  LogicalResult runOp(Operation &op, SmallVector<HostTensor> &results) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      results = operandsOf(op);
      return success();
    }
    if (auto get = dyn_cast<GetOp>(op)) {
      auto state = states.find(get.getState().str());
      if (state == states.end())
        return op.emitError("the state has no value: @") << get.getState();
      return define(op, {}, {state->second});
    }
    if (auto set = dyn_cast<SetOp>(op)) {
      written[set.getState().str()] = operandsOf(op)[0];
      return success();
    }
    if (isa<ReceiveOp>(op))
      return success();
    SmallVector<HostTensor> operands = operandsOf(op);
    if (Region *body = bodyOf(op)) {
      FailureOr<SmallVector<HostTensor>> outputs = run(body->front(), operands);
      return failed(outputs) ? failure() : define(op, operands, *outputs);
    }
    if (isa<TransferOp, ExchangeOp>(op))
      return define(op, operands, operands);
    if (auto loop = dyn_cast<LoopOp>(op)) {
      FailureOr<SmallVector<HostTensor>> last = runLoop(loop, operands);
      return failed(last) ? failure() : define(op, operands, *last);
    }
    if (auto reference = dyn_cast<ReferenceOp>(op))
      return define(op, operands, reference.evaluate(operands, rows));
    return op.emitError("has no reference function");
  }

  FailureOr<SmallVector<HostTensor>> runLoop(LoopOp loop, SmallVector<HostTensor> carried) {
    for (uint64_t i = 0; i < loop.getCount(); ++i) {
      FailureOr<SmallVector<HostTensor>> next = run(loop.getActions(), carried);
      if (failed(next))
        return failure();
      carried = std::move(*next);
    }
    return carried;
  }

  LogicalResult define(Operation &op, ArrayRef<HostTensor> operands, SmallVector<HostTensor> results) {
    ResultRange defined = op.getResults().take_front(results.size());
    for (auto [result, value] : llvm::zip_equal(defined, results)) {
      Type element = cast<RankedTensorType>(result.getType()).getElementType();
      if (options.roundToType || isa<IntegerType>(element) || isHalf(element))
        for (double &number : value.data)
          number = roundTo(element, number);
    }
    if (options.observer)
      options.observer(&op, operands, results);
    for (auto [result, value] : llvm::zip_equal(defined, results))
      values[result.getAsOpaquePointer()] = std::move(value);
    return success();
  }

  struct Values : std::map<void *, HostTensor> {
    HostTensor &operator[](Value value) { return std::map<void *, HostTensor>::operator[](value.getAsOpaquePointer()); }
    HostTensor &operator[](void *value) { return std::map<void *, HostTensor>::operator[](value); }
  } values;
  StateMap &states;
  int64_t rows;
  const InterpreterOptions &options;
};

} // namespace

FailureOr<SmallVector<HostTensor>> interpret(EntryOp entry, ArrayRef<HostTensor> inputs, StateMap &states, int64_t rows,
                                             const InterpreterOptions &options) {
  Block &body = entry.getBody().front();
  if (inputs.size() != entry.getInputs().size())
    return entry.emitError("takes ") << entry.getInputs().size() << " inputs; " << inputs.size() << " were given";
  Interpreter interpreter(states, rows, options);
  FailureOr<SmallVector<HostTensor>> results = interpreter.run(body, inputs);
  if (succeeded(results))
    for (auto &[name, value] : interpreter.written)
      states[name] = value;
  return results;
}

} // namespace sluice::ir
