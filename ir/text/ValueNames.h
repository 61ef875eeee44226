// Tracks the scopes of the `%names` in a module's text, as MLIR's parser does.
//
// Valid modules never use a value before its definition: values are ordered, and every region has a single block. MLIR
// 19's parser creates a placeholder until the definition follows. If that definition is in a region whose op fails to
// parse, the region is freed and the use refers to freed memory.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

class ValueNames {
public:
  /// Begins a region. With `takesArguments`, defines the announced arguments in it.
  void enter(bool takesArguments);
  /// Ends the region, and the scope of the names that it defines.
  void leave();

  void define(llvm::StringRef name);
  /// Records an argument of the next region.
  void announceArgument(llvm::StringRef name) { arguments.push_back(name); }

  /// Whether the name is defined here; records the use.
  bool use(llvm::StringRef name);

  /// Whether a definition would redefine a name in use. Results count as defined from the start of the op's text,
  /// slightly early: a redefinition before the op's end would be one after a use.
  bool isUsed(llvm::StringRef name) const;

private:
  llvm::StringMap<llvm::SmallVector<bool, 1>> definitions; // whether each was used, innermost last
  llvm::SmallVector<llvm::SmallVector<llvm::StringRef>> regions{1};
  llvm::SmallVector<llvm::StringRef> arguments;
};

} // namespace sluice::ir
