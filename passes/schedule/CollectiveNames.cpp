#include "passes/schedule/CollectiveNames.h"

#include "ir/Module.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The producer of the value of a collective without a known subject.
static StringRef nameOfMaker(Value value) {
  if (auto launch = value.getDefiningOp<LaunchOp>())
    return launch.getName();
  auto get = value.getDefiningOp<GetOp>();
  return get ? get.getState() : "values";
}

/// "a", "a and b", "a to c".
static std::string listEnds(ArrayRef<StringRef> names) {
  if (names.size() == 1)
    return names.front().str();
  return (names.front() + (names.size() == 2 ? " and " : " to ") + names.back()).str();
}

/// "gradients of fc2.bias to conv1.weight (6)", "parameter fc2.bias": `one` and `several` are the prefixes.
static std::string nameParameters(StringRef one, StringRef several, ArrayRef<StringRef> parameters) {
  std::string text = (parameters.size() == 1 ? one : several).str() + listEnds(parameters);
  return parameters.size() > 2 ? text + " (" + std::to_string(parameters.size()) + ")" : text;
}

/// "statistics of bn1 to bn7": of several, only the modules.
static std::string nameStatistics(ArrayRef<StringRef> states) {
  if (states.size() == 1)
    return "statistic of " + states.front().str();
  SmallVector<StringRef> modules;
  for (StringRef state : states)
    if (StringRef module = state.contains('.') ? state.rsplit('.').first : state; !llvm::is_contained(modules, module))
      modules.push_back(module);
  return "statistics of " + listEnds(modules);
}

std::string nameOf(ArrayRef<CollectiveOp> bucket) {
  llvm::MapVector<SubjectKind, SmallVector<StringRef>, std::map<SubjectKind, unsigned>> names;
  for (CollectiveOp op : bucket) {
    SubjectAttr subject = getSubject(op);
    if (!subject)
      names[SubjectKind::Output].push_back(nameOfMaker(op->getOperand(0)));
    else
      llvm::append_range(names[subject.getKind()],
                         llvm::map_range(subject.getNames(), [](StringAttr name) { return name.getValue(); }));
  }
  SmallVector<std::string> phrases;
  for (const auto &[kind, list] : names)
    phrases.push_back(kind == SubjectKind::Gradient    ? nameParameters("gradient of ", "gradients of ", list)
                      : kind == SubjectKind::Parameter ? nameParameters("parameter ", "parameters ", list)
                      : kind == SubjectKind::Statistic ? nameStatistics(list)
                                                       : listEnds(list));
  return llvm::join(phrases, " and ");
}

} // namespace sluice::passes
