// The text form shared by actions: the awaited events, and a line for each buffer, with its location once memory is
// planned:
//   in %x : tensor<2xf32, #acc0> at acc0.transient[0]
//   out tensor<2xf32, #acc0> at acc0.transient[128]
//   last_use acc0.transient[0] : 8
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Prints the lines after an action's own text.
class ActionPrinter {
public:
  ActionPrinter(mlir::OpAsmPrinter &printer, ActionOp action);

  /// All parts.
  void print();

  void printAfter();
  /// The next slot, if memory is planned.
  void printSlot();
  void printLastUses();
  void beginLine(llvm::StringRef word);

private:
  mlir::OpAsmPrinter &printer;
  ActionOp action;
  llvm::ArrayRef<mlir::Attribute> slots;
};

/// Parses those lines.
class ActionParser {
public:
  ActionParser(mlir::OpAsmParser &parser, mlir::OperationState &result) : parser(parser), result(result) {}

  mlir::ParseResult parse();
  /// Resolves values and events, in this order, and adds the results: `outputTypes`, and the completion event if the
  /// action is scheduled.
  mlir::ParseResult resolve(bool isScheduled = true);

  mlir::ParseResult parseAfter();
  mlir::ParseResult parseSlot();
  mlir::ParseResult parseLastUses();
  /// Sets `operandSegmentSizes`: the numbers of values and of events.
  void addSegments();

  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands, after;
  llvm::SmallVector<mlir::Type> operandTypes, outputTypes;
  int64_t workspace = 0;

private:
  mlir::OpAsmParser &parser;
  mlir::OperationState &result;
  llvm::SmallVector<mlir::Attribute> slots, lastUses;
};

/// The names in an attribute `on`; none if it is null.
llvm::SmallVector<mlir::StringAttr> queuesOf(mlir::ArrayAttr on);

/// `on "acc0", "acc1.in"`, if there are any.
void printQueues(mlir::OpAsmPrinter &printer, mlir::ArrayAttr queues);
/// Adds the attribute `on`; returns whether it is present.
mlir::FailureOr<bool> parseQueues(mlir::OpAsmParser &parser, mlir::OperationState &result);

/// Verifies that there are no slots, or one per buffer.
mlir::LogicalResult verifySlots(ActionOp action, size_t buffers);

/// Verifies that an action with queues has a completion event after its values, and an action without queues has none.
mlir::LogicalResult verifyDone(ActionOp action, mlir::ArrayAttr queues, size_t values);

} // namespace sluice::ir
