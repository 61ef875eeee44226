// Setup of programs that write models.
#pragma once

#include "sluice/language.h"

namespace sluice {

/// Call this first in main(). It opens the file descriptors 0 to 2 if they are closed, so that no file opened later
/// receives output meant for the terminal. It also turns SIGXFSZ, the signal of the file size limit, into a write
/// error.
void prepare_process();

} // namespace sluice
