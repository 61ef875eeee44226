// `bench --outputs`: when a call returns, and the cost of reading its outputs.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/instance/Instance.h"
#include "runtime/runner/processes/Processes.h"

namespace sluice::runtime {

/// Milliseconds per call of `entry`. For a call alone: until it returns (`returned_ms`) and until its work completes
/// (`done_ms`). For one of many calls: without reading outputs (`unread_ms`), with the scalars read on the host before
/// the next call (`read_ms`), or with the scalars kept on the device and read after the last call (`kept_ms`). All
/// processes call it.
Json benchOutputs(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes);

} // namespace sluice::runtime
