#include "runtime/instance/SizedEntries.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <iterator>

namespace sluice::runtime {

std::vector<const Entry *> entriesFor(const Plan &plan, std::string_view name) {
  if (const Entry *entry = plan.findEntry(name))
    return {entry};
  std::vector<const Entry *> entries;
  for (const Entry &entry : plan.entries)
    if (entry.isCallable() && entry.name.starts_with(concat(name, "-")))
      entries.push_back(&entry);
  return entries;
}

/// "predict-T64 (x: f32[1, 64])"
static std::string signatureOf(const Entry &entry) {
  std::string inputs;
  for (const Value &input : entry.inputs)
    inputs += concat(inputs.empty() ? "" : ", ", input.name, ": ", typeText(input.dtype, input.shape));
  return concat(entry.name, " (", inputs, ")");
}

const Entry &entryThatFits(const std::vector<const Entry *> &entries, std::string_view name, const std::string &given,
                           const std::function<bool(const Entry &)> &fits) {
  std::vector<const Entry *> found;
  std::ranges::copy_if(entries, std::back_inserter(found), [&](const Entry *entry) { return fits(*entry); });
  if (found.size() == 1)
    return *found.front();
  std::vector<std::string> known;
  for (const Entry *entry : found.empty() ? entries : found)
    known.push_back(signatureOf(*entry));
  if (found.empty())
    failUsage(concat("no size of ", quote(name), " takes ", given, "; it has: ", listed(known)));
  failUsage(concat("several sizes of ", quote(name), " take ", given, ": ", listed(known), "; give the name of one"));
}

} // namespace sluice::runtime
