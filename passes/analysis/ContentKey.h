// The content of a block as a key, for caches of results that depend on nothing else.
#pragma once

#include "mlir/IR/Block.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace sluice::passes {

/// The ops of a block and of its regions with their attributes, operands and types, as one byte string without
/// locations. `typeOf` maps each type. Within one context, equal types and attributes have equal addresses, so that
/// keys of one context may be compared.
std::string contentKey(mlir::Block &block, llvm::function_ref<mlir::Type(mlir::Type)> typeOf);

} // namespace sluice::passes
