#include "passes/schedule/Dependences.h"

#include "llvm/ADT/STLExtras.h"

namespace sluice::passes {

namespace {

/// The actions that access one value.
struct Touching {
  llvm::SmallVector<unsigned, 1> makers;
  llvm::SmallVector<unsigned, 4> readers;
};

} // namespace

static std::vector<Touching> findTouching(llvm::ArrayRef<ActionUses> actions) {
  std::vector<Touching> values;
  auto touching = [&](unsigned value) -> Touching & {
    if (value >= values.size())
      values.resize(value + 1);
    return values[value];
  };
  for (auto [i, action] : llvm::enumerate(actions)) {
    for (unsigned value : action.makes)
      touching(value).makers.push_back(i);
    for (unsigned value : action.reads)
      touching(value).readers.push_back(i);
    for (unsigned value : llvm::concat<const unsigned>(action.reuses, action.replaces))
      touching(value);
  }
  return values;
}

template <typename List> static void sortUnique(List &list) {
  llvm::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

Dependences findDependences(llvm::ArrayRef<ActionUses> actions) {
  std::vector<Touching> values = findTouching(actions);
  Dependences result;
  result.before.resize(actions.size());
  result.carried.resize(actions.size());
  for (auto [i, action] : llvm::enumerate(actions)) {
    for (unsigned value : action.reads)
      llvm::append_range(result.before[i], values[value].makers);
    for (unsigned value : action.reuses)
      for (unsigned reader : values[value].readers)
        if (reader < i)
          result.before[i].push_back(reader);
    for (unsigned value : action.replaces)
      for (unsigned reader : values[value].readers) {
        result.before[i].push_back(reader);
        result.carried[reader].push_back(i);
      }
  }
  for (auto [i, before] : llvm::enumerate(result.before)) {
    llvm::erase(before, i);
    sortUnique(before);
  }
  llvm::for_each(result.carried, [](auto &list) { sortUnique(list); });
  return result;
}

} // namespace sluice::passes
