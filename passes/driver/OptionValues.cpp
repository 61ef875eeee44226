#include "passes/driver/OptionValues.h"

#include "passes/driver/OptionTable.h"
#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

std::optional<ir::Precision> precisionOf(std::optional<DType> dtype) {
  CompileOptions options;
  options.precision = dtype;
  return ir::symbolizePrecision(textOf(options, *findOption("precision")));
}

/// The number of the option's value among its words.
static unsigned numberOf(llvm::StringRef name, const std::string &value) {
  llvm::SmallVector<llvm::StringRef> words = findOption(name)->words();
  const llvm::StringRef *found = llvm::find(words, value);
  assert(found != words.end() && "the value must have been checked");
  return unsigned(found - words.begin());
}

BucketPolicy bucketPolicyOf(const CompileOptions &options) {
  static_assert(int(BucketPolicy::Auto) == 0 && int(BucketPolicy::Fewest) == 1 && int(BucketPolicy::Each) == 2);
  return BucketPolicy(numberOf("buckets", options.buckets));
}

sluice_math mathOf(const CompileOptions &options) {
  static_assert(SLUICE_MATH_STRICT == 0 && SLUICE_MATH_TF32_CONVOLUTIONS == 1 && SLUICE_MATH_TF32 == 2 &&
                SLUICE_MATH_FAST == 3);
  return sluice_math(numberOf("math", options.math));
}

std::string settingsOf(const CompileOptions &options, llvm::StringRef backend) {
  auto found = options.backends.find(backend.str());
  return found == options.backends.end() ? "" : found->second;
}

} // namespace sluice::passes
