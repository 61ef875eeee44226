// `bench --outputs`: when a call returns, and what it costs to look at what each gives.
#pragma once

#include "runtime/base/Json.h"
#include "runtime/instance/Instance.h"
#include "runtime/runner/processes/Processes.h"

namespace sluice::runtime {

/// Of calls of `entry`, in milliseconds: of one alone, until it returns (`returned`), and until its work is done (`done`); of
/// one among many, where none is looked at (`unread`), where each one's scalars are read on the host before the next one
/// (`read`), and where they are kept where they are made and read behind the last (`kept`). All processes call it.
Json benchOutputs(Instance &instance, const Entry &entry, int64_t rows, double seconds, Processes &processes);

} // namespace sluice::runtime
