// Entry points for several sizes of one function (Graph::sizes): "predict-T64" and "predict-T128" for "predict".
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// The entry points that a call of `name` may run: the entry point of this name; without one, all whose names begin with
/// it and '-'. Empty if there are none.
std::vector<const Entry *> entriesFor(const Plan &plan, std::string_view name);

/// The only one of several entry points that `fits`. If there is none, or several, throws an error with `given`, the
/// given inputs, and with the inputs of each entry point.
const Entry &entryThatFits(const std::vector<const Entry *> &entries, std::string_view name, const std::string &given,
                           const std::function<bool(const Entry &)> &fits);

} // namespace sluice::runtime
