#include "tools/compiler/Dot.h"

#include "ir/Dialect.h"
#include "ir/Target.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::compiler {

/// For use within double quotes.
static std::string escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

static std::string quoted(llvm::StringRef text) { return "\"" + escaped(text) + "\""; }

static std::string typeText(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << printShape(tensor.getShape()) << ' ' << tensor.getElementType();
  return text;
}

static bool crossesDevices(Operation *op) { return isa_and_nonnull<CopyOp, TransferOp, ExchangeOp>(op); }

/// A copy's reason, and the bytes that it moves if they are known.
static std::string copyLabel(CopyReason reason, int64_t fixed, int64_t perRow) {
  std::string label = ("copy (" + stringifyCopyReason(reason) + ")").str();
  if (fixed > 0)
    label += "\\n" + std::to_string(fixed) + " bytes";
  if (perRow > 0)
    label += "\\n" + std::to_string(perRow) + " bytes a row";
  return label;
}

/// The label of an op's node.
static std::string labelOf(Operation *op) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getName().str();
  if (auto launch = dyn_cast<LaunchOp>(op))
    return launch.getName().str();
  if (auto get = dyn_cast<GetOp>(op))
    return escaped(get.getState());
  if (auto set = dyn_cast<SetOp>(op))
    return "new " + escaped(set.getState());
  if (auto copy = dyn_cast<CopyOp>(op))
    return copyLabel(copy.getReason(), copy.getBytes().value_or(0), copy.getBytesPerRow().value_or(0));
  if (auto transfer = dyn_cast<TransferOp>(op))
    return copyLabel(transfer.getReason(), transfer.getBytes(), transfer.getBytesPerRow());
  if (auto exchange = dyn_cast<ExchangeOp>(op))
    return ("exchange (" + stringifyCopyReason(exchange.getReason()) + ")").str();
  if (auto communicate = dyn_cast<CommunicateOp>(op))
    return (stringifyCollectiveKind(communicate.getKind()) + " of " + escaped(communicate.getName())).str();
  if (auto collective = dyn_cast<CollectiveOp>(op))
    return stringifyCollectiveKind(collective.getKind()).str();
  if (auto loop = dyn_cast<LoopOp>(op))
    return (loop.getName() + ", " + llvm::Twine(loop.getCount()) + " times").str();
  return op->getName().stripDialect().str();
}

/// The device of an op's node; empty before placement and for crossings.
static std::string deviceOf(Operation *op) {
  if (crossesDevices(op) || isa<LoopOp>(op))
    return "";
  Type type = op->getNumResults() > 0 ? op->getResult(0).getType() : op->getOperand(0).getType();
  StringAttr device = getDevice(type);
  return device ? device.str() : "";
}

namespace {

class DotPrinter {
public:
  DotPrinter(llvm::raw_ostream &out, const Target &target) : out(out), target(target) {}

  void print(Block &block, ArrayAttr inputs, llvm::StringRef entry) {
    prefix = entry.str();
    std::map<std::string, std::vector<std::string>> boxes; // nodes of each device
    for (auto [argument, name] : llvm::zip(block.getArguments(), inputs.getAsValueRange<StringAttr>())) {
      StringAttr device = getDevice(argument.getType());
      boxes[device ? device.str() : ""].push_back(
          addNode(argument.getAsOpaquePointer(), escaped(name), "shape=ellipse"));
    }
    SmallVector<Operation *> drawn;
    addDrawn(block, drawn);
    for (Operation *op : drawn)
      boxes[deviceOf(op)].push_back(
          addNode(op, labelOf(op), crossesDevices(op) ? "shape=cds style=bold" : "shape=box"));
    out << "  subgraph " << quoted("cluster_" + prefix) << " {\n    label=" << quoted(prefix) << "\n";
    for (auto &[device, nodes] : boxes)
      printBox(device, nodes);
    out << "  }\n";
    for (Operation *op : drawn)
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          printEdge(operand, op);
  }

private:
  /// Whether an op is drawn: values and their producers are; the host's actions and events are not.
  static bool isDrawn(Operation &op) { return !isa<ReceiveOp>(op) && op.getNumOperands() + op.getNumResults() > 0; }

  /// Includes the bodies of loops.
  static void addDrawn(Block &block, SmallVector<Operation *> &drawn) {
    for (Operation &op : block) {
      if (isDrawn(op) && !isa<NextOp>(op))
        drawn.push_back(&op);
      if (auto loop = dyn_cast<LoopOp>(op))
        addDrawn(loop.getActions(), drawn);
    }
  }

  std::string addNode(void *key, const std::string &label, const char *style) {
    std::string name = quoted(prefix + std::to_string(names.size()));
    names[key] = name;
    return name + " [label=" + quotedLabel(label) + " " + style + "]";
  }

  /// A label may contain Graphviz's line breaks.
  static std::string quotedLabel(const std::string &label) { return "\"" + label + "\""; }

  /// "gpu(0) (sim:0)" for "acc0"
  std::string shown(const std::string &device) const {
    const TargetDevice *known = target.find(device);
    return runtime::shownDevice(device, known ? known->spelling() : device);
  }

  void printBox(const std::string &device, const std::vector<std::string> &nodes) {
    if (!device.empty())
      out << "    subgraph " << quoted("cluster_" + prefix + "_" + device) << " { label=" << quoted(shown(device))
          << " style=filled color=lightgrey\n";
    for (const std::string &node : nodes)
      out << "      " << node << "\n";
    if (!device.empty())
      out << "    }\n";
  }

  void printEdge(Value from, Operation *to) {
    Operation *def = from.getDefiningOp();
    if (!def && isa<LoopOp>(from.getParentBlock()->getParentOp())) // the loop's node represents its carried values
      def = from.getParentBlock()->getParentOp();
    void *key = def ? static_cast<void *>(def) : from.getAsOpaquePointer();
    bool crosses = crossesDevices(to) || crossesDevices(def);
    out << "  " << names.lookup(key) << " -> " << names.lookup(to) << " [label=" << quoted(typeText(from.getType()))
        << (crosses ? " style=bold" : "") << "]\n";
  }

  llvm::raw_ostream &out;
  const Target &target;
  std::string prefix; // of the current entry point
  DenseMap<void *, std::string> names;
};

} // namespace

std::string printDot(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "digraph sluice {\n  rankdir=TB\n  node [fontname=Helvetica fontsize=10]\n  edge [fontname=Helvetica "
         "fontsize=8]\n";
  FailureOr<Target> known = Target::of(module);
  Target target = succeeded(known) ? *known : Target();
  for (auto graph : module.getOps<GraphOp>())
    DotPrinter(out, target).print(graph.getBody().front(), graph.getInputs(), "graph");
  for (auto entry : module.getOps<EntryOp>())
    DotPrinter(out, target).print(entry.getBody().front(), entry.getInputs(), entry.getSymName());
  out << "}\n";
  return text;
}

} // namespace sluice::compiler
