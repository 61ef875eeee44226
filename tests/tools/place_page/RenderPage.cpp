// Prints the page of a report, as `sluice place --html` writes it: render_page REPORT.json [MEASURED.json]
#include "tools/sluice/place/Page.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static json::Value readJson(const char *path) {
  ExitOnError orDie("render_page: ");
  return orDie(json::parse(orDie(errorOrToExpected(MemoryBuffer::getFile(path)))->getBuffer()));
}

int main(int argc, char **argv) {
  if (argc < 2) {
    errs() << "usage: render_page REPORT.json [MEASURED.json]\n";
    return 2;
  }
  std::optional<json::Value> measured;
  if (argc > 2)
    measured = readJson(argv[2]);
  outs() << sluice::place::placementPage(readJson(argv[1]), measured);
}
