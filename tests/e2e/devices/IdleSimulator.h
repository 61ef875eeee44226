// The virtual accelerators without their kernels: they take the time that kernels would take, and compute nothing.
#pragma once

#include "sluice/backend/run.h"

namespace sluice::test {

const sluice_backend_run &idleSimulator();

} // namespace sluice::test
