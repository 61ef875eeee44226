#include "passes/artifact/ForecastReplicas.h"

#include "passes/assign/search/Evaluation.h"

namespace sluice::passes {

void forecastReplicas(Compilation &c) {
  const TargetCosts &costs = *c.result.costs;
  const runtime::Plan &plan = c.result.plan;
  auto runsHere = [&](size_t queue) { return costs.hostRunsHere && plan.queues[queue].device == 0; };
  for (const runtime::Entry &entry : plan.entries) {
    if (!entry.isCallable())
      continue;
    runtime::CallModel model(plan, entry, plan.microbatches, runsHere);
    runtime::CommunicationForecast forecast =
        runtime::forecastCommunication(plan, model, workSeconds(entry, plan, costs.model));
    if (forecast.collectives.empty())
      continue;
    const runtime::Slot &sent = forecast.collectives.front().collective->send.slot;
    const std::string &device = plan.devices[plan.deviceOf(sent)].name;
    c.result.replicaLink = costs.model.link(device, device);
    c.result.communication.push_back({entry.name, std::move(forecast)});
  }
}

} // namespace sluice::passes
