// Options of a compilation as the values that passes use. The texts must be valid (OptionTable.h, invalidValue).
#pragma once

#include "ir/Dialect.h"
#include "passes/schedule/BucketCollectives.h"
#include "sluice/backend/compile.h"
#include "sluice/compile_options.h"

namespace sluice::passes {

/// None for a data type that is no precision.
std::optional<ir::Precision> precisionOf(std::optional<DType> dtype);
BucketPolicy bucketPolicyOf(const CompileOptions &options);
sluice_math mathOf(const CompileOptions &options);
/// Whether f32 is replaced by f64 in the whole model.
inline bool promotesToF64(const CompileOptions &options) { return options.dtype == DType::f64; }
/// The value of `--weights-type` for weights in blocks of bytes.
inline constexpr llvm::StringLiteral kQ8 = "q8_0";
/// The settings of one backend; empty if it has none.
std::string settingsOf(const CompileOptions &options, llvm::StringRef backend);

} // namespace sluice::passes
