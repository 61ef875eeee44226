// For programs that write models.
#pragma once

#include "sluice/language.h"

namespace sluice {

/// For the start of main(): takes the descriptors 0 to 2 where they are closed, so that no file is opened in their
/// place, and makes a limit to the size of files (SIGXFSZ) an error of writing.
void prepare_process();

} // namespace sluice
