#include "tools/compiler/InitialData.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Types.h"
#include "ir/text/DiagnosticText.h"
#include "runtime/base/Status.h"
#include "runtime/io/TensorSource.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace sluice::compiler {

namespace {
/// A state and its initial data.
struct StateData {
  ir::StateOp state;
  runtime::TensorSource source;
};
} // namespace

void locateValues(ModuleOp module, llvm::StringRef path) {
  ir::ModelOp model = ir::findModel(module);
  if (!model || !model.getValues())
    return;
  llvm::SmallString<256> file(llvm::sys::path::parent_path(path));
  if (llvm::sys::path::is_absolute(*model.getValues()))
    file.clear();
  llvm::sys::path::append(file, *model.getValues());
  llvm::sys::fs::make_absolute(file);
  model.setValues(file.str());
}

/// " (model.cpp:12:3)", or nothing.
static std::string lineOf(ir::StateOp state) {
  std::string line = ir::printLocation(state.getLoc());
  return line.empty() ? "" : " (" + line + ")";
}

static runtime::DType typeOf(ir::StateOp state, bool promoteF64) {
  auto type = runtime::DType(*ir::dtypeOf(state.getTensorType().getElementType()));
  return promoteF64 && type == runtime::DType::f32 ? runtime::DType::f64 : type;
}

static StateData readState(ir::StateOp state, const std::shared_ptr<const runtime::SafetensorsFile> &file,
                           const std::string &path) {
  llvm::StringRef name = state.getLike().value_or(state.getSymName()); // a mirror uses the data of its state
  runtime::TensorSource source = runtime::sourceIn(file, path, name.str());
  source.as(typeOf(state, false), state.getTensorType().getShape().vec()); // throws on a mismatch
  if (source.crc32() != uint32_t(state.getInit().getCrc32().getInt()))
    runtime::failInvalid(source.what + " is not what the graph was written with: its checksum differs");
  return {state, source};
}

/// The initial data of all states of the module.
static llvm::Expected<std::vector<StateData>> readAll(ModuleOp module) {
  std::vector<StateData> all;
  std::shared_ptr<const runtime::SafetensorsFile> file;
  for (auto state : module.getOps<ir::StateOp>()) {
    if (!state.getInit().isData())
      continue;
    ir::ModelOp model = ir::findModel(module);
    if (!model || !model.getValues())
      return makeError(ExitCode::Invalid, "'" + state.getSymName() +
                                              "' begins with data, and the graph names no file of it" + lineOf(state));
    std::string path = model.getValues()->str();
    runtime::Status status = runtime::guarded([&] {
      if (!file)
        file = std::make_shared<const runtime::SafetensorsFile>(path);
      all.push_back(readState(state, file, path));
    });
    if (!status.ok())
      return makeError(ExitCode(int(status.code)),
                       status.message + "; '" + state.getSymName() + "' begins with it" + lineOf(state));
  }
  return all;
}

/// Appends the elements at an offset aligned for any type.
static runtime::InitialData embed(const runtime::TensorSource &source, std::string &constants) {
  constants.resize(llvm::alignTo(constants.size(), 64));
  runtime::InitialData data{source.crc32(), int64_t(constants.size())};
  source.give([&](std::span<const std::byte> piece) {
    constants.append(reinterpret_cast<const char *>(piece.data()), piece.size());
  });
  return data;
}

llvm::Expected<passes::InitialValues> readInitialData(ModuleOp module, llvm::StringRef file, bool promoteF64) {
  auto all = readAll(module);
  if (!all)
    return all.takeError();
  uint64_t bytes = 0;
  for (const StateData &data : *all)
    bytes += data.source.bytes();
  bool isSmall = bytes <= kMostEmbedded;
  passes::InitialValues values;
  if (!isSmall)
    values.file = file.empty() ? ir::findModel(module).getValues()->str() : file.str();
  if (!llvm::json::isUTF8(values.file))
    return makeError(ExitCode::Usage, "cannot name the file of initial values '" + values.file +
                                          "': it is not UTF-8, as plans require; choose another --output");
  llvm::Error error = guardRuntime([&] {
    for (StateData &data : *all) {
      runtime::InitialData &its = values.of[data.state.getSymName().str()];
      its.crc32 = uint32_t(data.state.getInit().getCrc32().getInt());
      if (isSmall)
        its = embed(data.source.as(typeOf(data.state, promoteF64), data.source.shape), values.constants);
    }
    return llvm::Error::success();
  });
  if (error)
    return error;
  return values;
}

llvm::Error writeInitialData(ModuleOp module, const passes::InitialValues &values, const std::string &path) {
  if (values.file.empty())
    return llvm::Error::success();
  auto all = readAll(module);
  if (!all)
    return all.takeError();
  std::vector<runtime::NamedSource> sources;
  for (StateData &data : *all)
    sources.push_back({data.state.getSymName().str(), data.source});
  return guardRuntime([&] {
    runtime::writeSources(path, sources);
    return llvm::Error::success();
  });
}

} // namespace sluice::compiler
