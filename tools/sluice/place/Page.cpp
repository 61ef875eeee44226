// Note: input of the page
// =======================
// Times are milliseconds from the start of a step, bytes are plain numbers; a null or absent time or number is shown as
// unknown, or as infeasible in "alternatives" and impossible in a group's "ms".
//
//   report: model, entry, rows, predicted_ms, gap (a fraction), objective
//     devices     [{name, spelling, costs, architecture (of published costs), cap_bytes}], the host first; everything
//                 else refers to a device by its spelling
//     links       [{from, to, bytes_per_second, latency_s, source}]
//     alternatives {name: ms}
//     peak_bytes  {device: bytes}
//     groups      [{name, kernel (its name where it ran), kind, device, reason, ops, source, ms: {device: ms},
//                   reads: [indices of groups], start_ms, end_ms}]
//     copies      [{value, from, to, bytes, reason, when, source, predicted_ms, hidden, start_ms, end_ms}], and if known
//                   queue, producer (index of a group) and consumers (indices of groups), to which arrows are drawn
//     memory      {device: {state_bytes, steps: [[ms, bytes]]}}: the bytes without the state, from each time on
//   measured: measured_ms, clock
//     work        [{name, queue, start_ms, end_ms}], a group's name or a copy's value
#include "tools/sluice/place/Page.h"
#include "tools/sluice/page/EmbeddedPage.h"
#include "tools/sluice/place/PageParts.inc" // kPage, kStyle and kScript: the files of page/

namespace sluice::place {

std::string placementPage(const std::string &report, const std::string &measured) {
  return page::assemblePage({kPage, kStyle, kScript}, {{"report", report}, {"measured", measured}});
}

} // namespace sluice::place
