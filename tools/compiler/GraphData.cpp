#include "tools/compiler/GraphData.h"

#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include <mutex>
#include <new>

namespace sluice::compiler {

GraphData::~GraphData() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

void GraphData::write(const Graph &graph, std::source_location where) {
  detail::GraphImpl &impl = *detail::Access::graph(graph);
  if (!impl.hasData())
    return;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("sluice", folder))
    throw Error("compile: cannot create a temporary folder: " + error.message(), where, {}, int(ExitCode::Invalid));
  impl.writeData(file(), where);
}

void GraphData::locate(mlir::ModuleOp module) const {
  if (!folder.empty())
    ir::getModel(module).setValues(llvm::StringRef(file()));
}

void throwWhenExhausted() {
  static std::once_flag once;
  std::call_once(
      once, [] { llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { throw std::bad_alloc(); }); });
}

} // namespace sluice::compiler
