// Which `%names` a module's text has defined where, as MLIR's parser sees them.
//
// A use before its definition is a mistake in every module of ours, whose values are in order and whose blocks are all
// alone in their regions. MLIR 19's parser lets a placeholder stand for it until the definition comes; if that lies in
// a region whose op does not parse in the end, the region goes and the use stays, pointing at freed memory.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

class ValueNames {
public:
  /// A region begins, with the arguments that were announced for it, or ends, and its names with it.
  void enter(bool takesArguments);
  void leave();

  void define(llvm::StringRef name);
  void announceArgument(llvm::StringRef name) { arguments.push_back(name); }

  /// Whether the name is defined here; remembers that it was used.
  bool use(llvm::StringRef name);

  /// Whether a definition would be the second one of a name in use. The results of an op are defined from where its
  /// text begins, a little early; a second definition before its end would be one that comes after its use.
  bool isUsed(llvm::StringRef name) const;

private:
  llvm::StringMap<llvm::SmallVector<bool, 1>> definitions; // whether each was used, innermost last
  llvm::SmallVector<llvm::SmallVector<llvm::StringRef>> regions{1};
  llvm::SmallVector<llvm::StringRef> arguments;
};

} // namespace sluice::ir
