#include "frontend/graph/ContextLease.h"

#include "ir/Dialect.h"
#include <mutex>
#include <vector>

using namespace mlir;

namespace sluice::detail {

/// Types and attributes live as long as their context, so a context is destroyed after this many graphs.
static constexpr int kMostGraphs = 32;
static constexpr size_t kMostIdle = 4;

namespace {

struct IdleContexts {
  std::mutex mutex;
  std::vector<ContextLease::Context> contexts;
};

} // namespace

static IdleContexts &idle() {
  static IdleContexts contexts;
  return contexts;
}

static ContextLease::Context takeIdle() {
  std::lock_guard lock(idle().mutex);
  if (idle().contexts.empty())
    return {};
  ContextLease::Context taken = std::move(idle().contexts.back());
  idle().contexts.pop_back();
  return taken;
}

ContextLease::ContextLease() : leased(takeIdle()) {
  if (!leased.context) {
    // Failure to create a thread would end the process.
    leased.context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
    leased.context->loadDialect<ir::SluiceDialect>();
  }
  ++leased.graphs;
}

ContextLease::~ContextLease() {
  if (leased.graphs >= kMostGraphs)
    return;
  std::lock_guard lock(idle().mutex);
  if (idle().contexts.size() < kMostIdle)
    idle().contexts.push_back(std::move(leased));
}

} // namespace sluice::detail
