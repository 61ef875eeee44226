// Virtual accelerators that take the kernels' time but compute nothing.
#pragma once

#include "sluice/backend/run.h"

namespace sluice::test {

const sluice_backend_run &idleSimulator();

} // namespace sluice::test
