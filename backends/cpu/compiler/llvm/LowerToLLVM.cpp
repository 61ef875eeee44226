#include "backends/cpu/compiler/llvm/LowerToLLVM.h"

#include "backends/cpu/compiler/llvm/MathFunctions.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sluice::cpu {

using namespace mlir;

/// Ops without an LLVM counterpart: polynomials, minima that propagate NaN, rounding divisions, slices of vectors.
static FrozenRewritePatternSet expansionPatterns(MLIRContext &context, bool polynomialMath) {
  RewritePatternSet patterns(&context);
  if (polynomialMath)
    populateMathFunctionPatterns(patterns);
  arith::populateArithExpandOpsPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  return patterns;
}

/// Loops become branches. Math functions without an LLVM intrinsic become calls of libm. They must be lowered here: the
/// conversion to LLVM would lower log1p to log(1 + x) and expm1 to exp(x) - 1, which lose accuracy near 0.
static FrozenRewritePatternSet structurePatterns(MLIRContext &context) {
  RewritePatternSet patterns(&context);
  populateSCFToControlFlowConversionPatterns(patterns);
  populateMathToLibmConversionPatterns(patterns);
  return patterns;
}

static FrozenRewritePatternSet conversionPatterns(MLIRContext &context, LLVMTypeConverter &types) {
  RewritePatternSet patterns(&context);
  populateMathToLLVMConversionPatterns(types, patterns);
  populateVectorToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  return patterns;
}

struct LowerToLLVM::Patterns {
  Patterns(MLIRContext &context, bool polynomialMath)
      : types(&context), expansions(expansionPatterns(context, polynomialMath)), structure(structurePatterns(context)),
        conversions(conversionPatterns(context, types)) {}

  LLVMTypeConverter types;
  FrozenRewritePatternSet expansions, structure, conversions;
};

static MLIRContext &withDialects(MLIRContext &context) {
  context.loadDialect<cf::ControlFlowDialect, LLVM::LLVMDialect, vector::VectorDialect>();
  return context;
}

LowerToLLVM::LowerToLLVM(MLIRContext &context, bool polynomialMath)
    : patterns(std::make_unique<Patterns>(withDialects(context), polynomialMath)) {}

LowerToLLVM::~LowerToLLVM() = default;

static bool mayExpand(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) ||
         isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, vector::BroadcastOp, vector::ExtractStridedSliceOp,
             vector::InsertStridedSliceOp>(op);
}

static LogicalResult expand(ModuleOp module, const FrozenRewritePatternSet &patterns) {
  GreedyRewriteConfig config;
  config.strictMode = GreedyRewriteStrictness::ExistingAndNewOps;
  for (auto function : module.getOps<func::FuncOp>()) {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (mayExpand(op))
        ops.push_back(op);
    });
    if (failed(applyOpPatternsAndFold(ops, patterns, config)))
      return failure();
  }
  return success();
}

static LogicalResult lowerStructure(ModuleOp module, const FrozenRewritePatternSet &patterns) {
  ConversionTarget target(*module.getContext());
  target.markUnknownOpDynamicallyLegal([](Operation *op) {
    return !isa<scf::SCFDialect>(op->getDialect()) &&
           !isa<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::AtanOp, math::AtanhOp, math::CoshOp,
                math::ErfOp, math::ExpM1Op, math::Log1pOp, math::SinhOp, math::TanhOp>(op);
  });
  return applyFullConversion(module, target, patterns);
}

static LogicalResult convert(ModuleOp module, const FrozenRewritePatternSet &patterns) {
  LLVMConversionTarget target(*module.getContext());
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, patterns);
}

/// The generators repeat constants and addresses for each vector of a tile, half of all ops. It is faster to merge them
/// here than to lower and translate them first.
static void mergeEqualOps(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  DominanceInfo dominance(module);
  eliminateCommonSubExpressions(rewriter, dominance, module);
}

LogicalResult LowerToLLVM::run(ModuleOp module) const {
  outlineMarkedFunctions(module);
  mergeEqualOps(module);
  return success(succeeded(expand(module, patterns->expansions)) &&
                 succeeded(lowerStructure(module, patterns->structure)) &&
                 succeeded(convert(module, patterns->conversions)));
}

} // namespace sluice::cpu
