#include "tests/e2e/replicas/Replicated.h"

#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/text/ParseGuard.h"
#include "runtime/plan/RowBlocks.h"
#include "tests/Worse.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>
#include <regex>

using namespace mlir;

namespace sluice::test {

static constexpr llvm::StringLiteral kLocalRows = "rows of this replica";

static OwningOpRef<ModuleOp> parseModel(const std::string &text, MLIRContext &context) {
  context.loadDialect<ir::SluiceDialect>();
  llvm::Expected<OwningOpRef<ModuleOp>> parsed = ir::parseModuleText(text, "test", context);
  if (!parsed)
    throw std::runtime_error(llvm::toString(parsed.takeError()));
  return std::move(*parsed);
}

static std::string textOf(ModuleOp module) {
  std::string result;
  llvm::raw_string_ostream out(result);
  module->print(out, OpPrintingFlags().enableDebugInfo());
  return result;
}

static void setReplicas(ModuleOp module, int64_t replicas, const std::string &devices, bool syncBatchNorm,
                        int64_t microbatches, int64_t shards) {
  ir::ModelOp model = ir::getModel(module);
  model.setReplicas(uint64_t(replicas));
  model.setMicrobatches(uint64_t(microbatches));
  if (shards)
    model.setLogicalShards(uint64_t(shards));
  model.setSyncBatchNorm(syncBatchNorm);
  if (!devices.empty())
    llvm::cantFail(llvm::cantFail(ir::Target::parse(devices)).shareAmong(replicas)).record(module);
}

std::string onReplicas(const std::string &text, int64_t replicas, const std::string &devices, bool syncBatchNorm,
                       int64_t microbatches, int64_t shards) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseModel(text, context);
  setReplicas(*module, replicas, devices, syncBatchNorm, microbatches, shards);
  return textOf(*module);
}

std::string onWire(const std::string &text, ir::Precision wire) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseModel(text, context);
  ir::getModel(*module).setWire(wire);
  return textOf(*module);
}

std::string withShards(const std::string &text) {
  static const std::regex kReplicas(" replicas \\d+( microbatches \\d+)?");
  return std::regex_replace(text, kReplicas, "$& zero 1", std::regex_constants::format_first_only);
}

Compiled onSimulators(const std::string &text, int64_t replicas, int64_t microbatches, int64_t shards) {
  CompileOptions options;
  options.dtype = sluice::f64;
  return {
      onReplicas(text, replicas, fmt::format("sim:0-{}", replicas - 1), /*syncBatchNorm=*/false, microbatches, shards),
      options,
      {.sim = "devices=4,seed=3"}};
}

void expectStatesOf(Compiled &actual, const Compiled &expected) {
  for (const runtime::State &state : expected.plan().states) {
    if (!state.isKept())
      continue;
    std::vector<std::byte> first(size_t(state.logicalBytes())), other = first;
    EXPECT_LT(largestDifference(actual.state(state.name), expected.state(state.name)), 1e-12) << state.name;
    actual.program().getState(actual.program().state(state.name), first);
    for (int64_t replica = 1; replica < actual.program().replicas(); ++replica) {
      actual.program().getState(actual.program().state(state.name), other, replica);
      EXPECT_EQ(other, first) << state.name << " of replica " << replica;
    }
  }
}

Replicated::Replicated(const std::string &text, size_t replicas, bool syncBatchNorm, const CompileOptions &options,
                       const std::string &phase, int64_t microbatches, int64_t shards)
    : states(replicas) {
  op = parseModel(text, context);
  setReplicas(*op, int64_t(replicas), /*devices=*/"", syncBatchNorm, microbatches, shards);
  passes::PipelineInputs inputs;
  inputs.compileTo = phase;
  if (failed(passes::runPipeline(*op, options, inputs)))
    throw std::runtime_error("the phases failed");
  for (ir::StateMap &map : states)
    for (auto state : op->getOps<ir::StateOp>())
      map[state.getSymName().str()] = ir::HostTensor(
          state.getKeptType().getShape(),
          state.getKind() == ir::StateKind::Accumulator ? state.getInit().getA().getValueAsDouble() : 0.0);
}

/// `count` rows of an input from row `first` on; rows are outermost. Inputs without rows are returned whole.
static ir::HostTensor rowsOf(Type type, const std::vector<double> &values, int64_t first, int64_t count) {
  ir::HostTensor tensor(ir::runtimeShape(type, count));
  size_t skipped =
      cast<RankedTensorType>(type).hasStaticShape() ? 0 : ir::HostTensor(ir::runtimeShape(type, first)).data.size();
  auto begin = values.begin() + std::ptrdiff_t(skipped);
  tensor.data.assign(begin, begin + std::ptrdiff_t(tensor.data.size()));
  return tensor;
}

void Replicated::runRows(ir::EntryOp entry, const Values &inputs, const Rows &rows, int64_t all,
                         std::vector<Values> &outputs) {
  SmallVector<ir::ReplicaShare> given;
  for (size_t i = 0; i < states.size(); ++i) {
    states[i][kLocalRows.str()] = ir::HostTensor({}, double(rows.counts[i]));
    ir::ReplicaShare share{{}, states[i], rows.counts[i], rows.firsts[i]};
    for (auto [name, argument] :
         llvm::zip_equal(entry.getInputs().getAsValueRange<StringAttr>(), entry.getInputArguments()))
      share.inputs.push_back(rowsOf(argument.getType(), inputs.at(name.str()), rows.firsts[i], rows.counts[i]));
    given.push_back(std::move(share));
  }
  ir::InterpreterOptions options;
  options.allRows = all;
  auto results = ir::interpretReplicas(entry, given, options);
  if (failed(results))
    throw std::runtime_error("the interpreter failed");
  for (auto [number, name] : llvm::enumerate(entry.getOutputs().getAsValueRange<StringAttr>()))
    for (size_t i = 0; i < states.size(); ++i) {
      std::vector<double> &into = outputs[i][name.str()];
      if (cast<RankedTensorType>(entry.getReturn().getValues()[number].getType()).hasStaticShape())
        into.clear();
      else
        withRows.insert(name.str());
      const std::vector<double> &result = (*results)[i][number].data;
      into.insert(into.end(), result.begin(), result.end());
    }
}

/// Uses of the number of all rows, after a cast, and uses of sums over replicas.
SmallVector<OpOperand *> Replicated::findCounts() {
  SmallVector<OpOperand *> places;
  auto readsRows = [](Operation *reader) {
    auto get = reader->getOperand(0).getDefiningOp<ir::GetOp>();
    return get && get.getState() == ir::kGlobalRows;
  };
  auto add = [&](Value value) {
    for (OpOperand &use : value.getUses())
      if (!isa<ir::CastOp>(use.getOwner()) || !readsRows(use.getOwner())) // otherwise the uses of the cast
        places.push_back(&use);
  };
  op->walk([&](Operation *reader) {
    auto get = dyn_cast<ir::GetOp>(reader);
    if (get && get.getState() == ir::kGlobalRows)
      add(get.getValue());
    if (isa<ir::AllReduceOp>(reader) || (isa<ir::CastOp>(reader) && readsRows(reader)))
      add(reader->getResult(0));
  });
  return places;
}

size_t Replicated::counts() { return findCounts().size(); }

std::string Replicated::takeLocal(size_t place) {
  OpOperand &use = *findCounts()[place];
  std::string where = use.getOwner()->getName().getStringRef().str() + " in " +
                      use.getOwner()->getParentOfType<ir::EntryOp>().getSymName().str();
  Operation *maker = use.get().getDefiningOp();
  if (isa<ir::AllReduceOp>(maker)) {
    use.set(maker->getOperand(0));
    return where + " reads a sum";
  }
  OpBuilder builder(use.getOwner());
  auto type = cast<RankedTensorType>(use.get().getType());
  Value local = builder.create<ir::GetOp>(maker->getLoc(), ir::withElement(type, builder.getI64Type()),
                                          FlatSymbolRefAttr::get(builder.getContext(), kLocalRows));
  use.set(builder.create<ir::CastOp>(maker->getLoc(), local, type.getElementType()));
  return where + " reads the number of rows";
}

/// Like the runtime: as many microbatches as the replica with the most rows has, or all of its logical shards.
int64_t Replicated::microbatchesFor(const Rows &rows) {
  int64_t most = *std::max_element(rows.counts.begin(), rows.counts.end());
  return ir::getLogicalShards(*op) ? ir::getMicrobatches(*op)
                                   : std::max<int64_t>(1, int64_t(llvm::divideCeil(most, ir::getCapacity(*op))));
}

Replicated::Rows Replicated::microbatchOf(const Rows &rows, int64_t number, int64_t all) {
  Rows result = rows;
  for (auto [replica, its] : llvm::enumerate(llvm::zip_equal(result.counts, result.firsts))) {
    auto [count, first] = its;
    runtime::RowShare share{count, first, all};
    int64_t microbatches = ir::getMicrobatches(*op), shards = ir::getLogicalShards(*op);
    share = shards ? runtime::shareOf(all, shards, int64_t(replica) * microbatches + number)
                   : runtime::microbatchOf(share, number, ir::getCapacity(*op));
    count = share.rows;
    first = share.first;
  }
  return result;
}

void Replicated::runParts(ir::PartsOp whole, const Values &inputs, const Rows &rows, int64_t all,
                          std::vector<Values> &outputs) {
  for (auto [part, isEach] : llvm::zip_equal(whole.getEntries(), whole.getEach()))
    for (int64_t number = 0; number < (isEach ? microbatchesFor(rows) : 1); ++number)
      runRows(part, inputs, microbatchOf(rows, number, all), all, outputs);
}

Values Replicated::run(const std::string &name, const Values &inputs, const std::vector<int64_t> &shares,
                       size_t replica) {
  Rows rows{shares, {}};
  int64_t all = 0;
  for (int64_t share : shares) {
    rows.firsts.push_back(all);
    all += share;
  }
  std::vector<Values> given(shares.size());
  if (auto whole = op->lookupSymbol<ir::PartsOp>(name))
    runParts(whole, inputs, rows, all, given);
  else
    runRows(op->lookupSymbol<ir::EntryOp>(name), inputs, rows, all, given);
  Values outputs = given[replica];
  for (auto &[output, joined] : outputs) {
    if (!withRows.contains(output))
      continue;
    joined.clear();
    for (const Values &of : given)
      joined.insert(joined.end(), of.at(output).begin(), of.at(output).end());
  }
  return outputs;
}

void expectAsOneDevice(const std::string &text, const Values &inputs, const std::vector<int64_t> &shares,
                       int64_t microbatches, int steps) {
  size_t replicas = shares.size();
  int64_t rows = std::accumulate(shares.begin(), shares.end(), int64_t(0));
  Interpreted one(text);
  Replicated several(text, replicas, /*syncBatchNorm=*/true, {}, "parallel", microbatches);
  one.init(3);
  several.run("init", {{"key", {0, 3}}}, std::vector<int64_t>(replicas, 1));
  for (auto &states : several.states)
    states.at("lr").data = {0.1};
  one.setState("lr", {0.1});
  for (int step = 0; step < steps; ++step)
    EXPECT_LT(largestDifference(several.run("train_step", inputs, shares).at("loss"),
                                one.run("train_step", inputs, rows).at("loss")),
              1e-12);
  for (const auto &[name, value] : one.states)
    for (auto &states : several.states)
      EXPECT_LT(largestDifference(states.at(name).data, value.data), 1e-12) << name << " of " << replicas;
}

} // namespace sluice::test
