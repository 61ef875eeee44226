// Note: what the page reads
// =========================
// Times are milliseconds from the start of a step, bytes are plain numbers; a null or absent time or number is shown as
// unknown, or as infeasible in "alternatives" and impossible in a group's "ms".
//
//   report: model, entry, rows, predicted_ms, gap (a fraction), objective
//     devices     [{name, spelling, costs, cap_bytes}], the host first
//     links       [{from, to, bytes_per_second, latency_s, source}]
//     alternatives {name: ms}
//     peak_bytes  {device: bytes}
//     groups      [{name, kernel (its name where it ran), kind, device, reason, ops, source, ms: {device: ms},
//                   reads: [indices of groups], start_ms, end_ms}]
//     copies      [{value, from, to, bytes, reason, when, source, predicted_ms, hidden, start_ms, end_ms}], and if known
//                   queue, producer (index of a group) and consumers (indices of groups), to which arrows are drawn
//     memory      {device: {state_bytes, steps: [[ms, bytes]]}}: from each time on so many bytes beside the state
//   measured: measured_ms, clock
//     work        [{name, queue, start_ms, end_ms}], a group's name or a copy's value
#include "tools/sluice/place/Page.h"
#include "tools/sluice/place/PageParts.inc" // kPage, kStyle and kScript: the files of page/
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace sluice::place {

/// JSON inside an element of HTML: without `<` there is no `</script>` and no `<!--`.
static std::string embed(const json::Value &value) {
  std::string json;
  raw_string_ostream(json) << value;
  std::string text;
  for (char c : json)
    c == '<' ? text.append("\\u003c") : text.append(1, c);
  return text;
}

/// How a content security policy names the text of an element that may take effect.
static std::string hashSource(StringRef text) {
  return "'sha256-" + encodeBase64(SHA256::hash(arrayRefFromStringRef(text))) + "'";
}

std::string placementPage(const json::Value &report, const std::optional<json::Value> &measured) {
  auto part = [&](StringRef name) -> std::string {
    if (name == "policy") // our script and style, and nothing else: no network either
      return "default-src 'none'; script-src " + hashSource(kScript) + "; style-src " + hashSource(kStyle);
    if (name == "style")
      return kStyle;
    if (name == "script")
      return kScript;
    if (name == "report")
      return embed(report);
    assert(name == "measured" && "page.html asks for an unknown part");
    return embed(measured.value_or(nullptr));
  };
  std::string page;
  for (StringRef rest = kPage; !rest.empty();) {
    auto [text, after] = rest.split("{{");
    page += text;
    if (after.empty())
      break;
    auto [name, tail] = after.split("}}");
    page += part(name);
    rest = tail;
  }
  return page;
}

} // namespace sluice::place
