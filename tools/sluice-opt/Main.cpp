// `sluice-opt`: runs passes of Sluice and MLIR on a file, for tests and for looking at one pass alone.
#include "ir/Dialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/sluice-opt/SluicePasses.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<sluice::ir::SluiceDialect>();
  mlir::registerAllPasses();
  sluice::tool::registerSluicePasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Sluice's passes\n", registry));
}
