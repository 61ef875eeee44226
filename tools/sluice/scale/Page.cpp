#include "tools/sluice/scale/Page.h"
#include "tools/sluice/page/EmbeddedPage.h"
#include "tools/sluice/scale/PageParts.inc" // kPage, kStyle and kScript: the files of page/
#include "llvm/Support/FormatVariadic.h"

namespace sluice::scale {

std::string scalingPage(const llvm::json::Value &report) {
  return page::assemblePage({kPage, kStyle, kScript}, {{"report", llvm::formatv("{0}", report)}});
}

} // namespace sluice::scale
