#include "sluice/process.h"
#include "runtime/files/Process.h"

namespace sluice {

void prepare_process() { files::prepareProcess(); }

} // namespace sluice
