#include "ir/text/ValueNames.h"

namespace sluice::ir {

void ValueNames::enter(bool takesArguments) {
  regions.emplace_back();
  if (!takesArguments)
    return;
  for (llvm::StringRef name : arguments)
    define(name);
  arguments.clear();
}

void ValueNames::leave() {
  for (llvm::StringRef name : regions.pop_back_val())
    definitions[name].pop_back();
}

void ValueNames::define(llvm::StringRef name) {
  definitions[name].push_back(false);
  regions.back().push_back(name);
}

bool ValueNames::use(llvm::StringRef name) {
  auto found = definitions.find(name);
  if (found == definitions.end() || found->second.empty())
    return false;
  found->second.back() = true;
  return true;
}

bool ValueNames::isUsed(llvm::StringRef name) const {
  auto found = definitions.find(name);
  return found != definitions.end() && !found->second.empty() && found->second.back();
}

} // namespace sluice::ir
