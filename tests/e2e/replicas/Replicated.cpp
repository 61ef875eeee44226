#include "tests/e2e/replicas/Replicated.h"

#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/text/ParseGuard.h"

#include <numeric>

using namespace mlir;

namespace sluice::test {

static OwningOpRef<ModuleOp> parseModel(const std::string &text, MLIRContext &context) {
  context.loadDialect<ir::SluiceDialect>();
  llvm::Expected<OwningOpRef<ModuleOp>> parsed = ir::parseModuleText(text, "test", context);
  if (!parsed)
    throw std::runtime_error(llvm::toString(parsed.takeError()));
  return std::move(*parsed);
}

static void setReplicas(ModuleOp module, int64_t replicas, const std::string &devices, bool syncBatchNorm) {
  ir::ModelOp model = ir::getModel(module);
  model.setReplicas(uint64_t(replicas));
  model.setSyncBatchNorm(syncBatchNorm);
  if (!devices.empty())
    llvm::cantFail(llvm::cantFail(ir::Target::parse(devices)).shareAmong(replicas)).record(module);
}

std::string onReplicas(const std::string &text, int64_t replicas, const std::string &devices, bool syncBatchNorm) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseModel(text, context);
  setReplicas(*module, replicas, devices, syncBatchNorm);
  std::string result;
  llvm::raw_string_ostream out(result);
  module->getOperation()->print(out, OpPrintingFlags().enableDebugInfo());
  return result;
}

Replicated::Replicated(const std::string &text, size_t replicas, bool syncBatchNorm, passes::PipelineOptions options,
                       const std::string &phase)
    : states(replicas) {
  op = parseModel(text, context);
  setReplicas(*op, int64_t(replicas), /*devices=*/"", syncBatchNorm);
  options.compileTo = phase;
  if (failed(passes::runPipeline(*op, options)))
    throw std::runtime_error("the phases failed");
  for (ir::StateMap &map : states)
    for (auto state : op->getOps<ir::StateOp>())
      map[state.getSymName().str()] = ir::HostTensor(state.getTensorType().getShape());
}

Values Replicated::run(const std::string &name, const Values &inputs, const std::vector<int64_t> &shares,
                       size_t replica) {
  auto entry = op->lookupSymbol<ir::EntryOp>(name);
  SmallVector<ir::ReplicaShare> given;
  std::vector<size_t> taken(entry.getInputs().size(), 0);
  for (auto [i, rows] : llvm::enumerate(shares)) {
    ir::ReplicaShare share{{}, states[i], rows};
    for (auto [number, input] : llvm::enumerate(entry.getInputs().getAsValueRange<StringAttr>())) {
      Type type = entry.getInputArguments()[number].getType();
      ir::HostTensor tensor(ir::runtimeShape(type, rows));
      auto begin = inputs.at(input.str()).begin() + std::ptrdiff_t(taken[number]); // rows are outermost
      tensor.data.assign(begin, begin + std::ptrdiff_t(tensor.data.size()));
      if (!cast<RankedTensorType>(type).hasStaticShape())
        taken[number] += tensor.data.size();
      share.inputs.push_back(std::move(tensor));
    }
    given.push_back(std::move(share));
  }
  auto results = ir::interpretReplicas(entry, given);
  if (failed(results))
    throw std::runtime_error("the interpreter failed");
  Values outputs;
  for (auto [number, output] : llvm::enumerate(entry.getOutputs().getAsValueRange<StringAttr>())) {
    std::vector<double> &joined = outputs[output.str()];
    if (cast<RankedTensorType>(entry.getReturn().getValues()[number].getType()).hasStaticShape())
      joined = (*results)[replica][number].data;
    else
      for (const SmallVector<ir::HostTensor> &of : *results)
        joined.insert(joined.end(), of[number].data.begin(), of[number].data.end());
  }
  return outputs;
}

} // namespace sluice::test
