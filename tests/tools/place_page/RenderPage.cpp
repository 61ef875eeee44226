// Prints the page of a report, as `sluice place --html` writes it: render_page REPORT.json [MEASURED.json]
#include "tools/sluice/place/Page.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static std::string read(const char *path) {
  ExitOnError orDie("render_page: ");
  return orDie(errorOrToExpected(MemoryBuffer::getFile(path)))->getBuffer().str();
}

int main(int argc, char **argv) {
  if (argc < 2) {
    errs() << "usage: render_page REPORT.json [MEASURED.json]\n";
    return 2;
  }
  outs() << sluice::place::placementPage(read(argv[1]), argc > 2 ? read(argv[2]) : "null");
}
