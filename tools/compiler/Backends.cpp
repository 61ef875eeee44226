#include "tools/compiler/Backends.h"

#include "backends/cpu/compiler/Plugin.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace sluice::compiler {

llvm::ArrayRef<const sluice_backend_compile *> builtInBackends() {
  static const std::vector<const sluice_backend_compile *> backends = {sluice_cpu_backend_compile()};
  return backends;
}

llvm::Expected<const sluice_backend_compile *> findBackend(llvm::StringRef name) {
  std::vector<llvm::StringRef> names;
  for (const sluice_backend_compile *backend : builtInBackends()) {
    if (backend->name == name)
      return backend;
    names.emplace_back(backend->name);
  }
  return makeError(ExitCode::Unsupported, "there is no backend '" + name + "'; this compiler has " +
                                              (names.empty() ? "none" : llvm::join(names, ", ")));
}

llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend, const std::string &cpu) {
  sluice_target_options options{sizeof(options), cpu.c_str(), 0, nullptr};
  sluice_session *session = nullptr;
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  sluice_status status = backend.begin(&options, &session);
  if (status == SLUICE_OK)
    status = backend.describe(session, &info);
  TargetDescription description;
  std::string reason;
  if (status == SLUICE_OK)
    description = {info.device_type, info.cpu, info.vector_bits};
  else
    reason = session ? backend.last_error(session) : "it gives no reason";
  if (session)
    backend.end(session);
  if (status == SLUICE_OK)
    return description;
  return makeError(ExitCode::Unsupported,
                   llvm::Twine("backend '") + backend.name + "' refuses the target '" + cpu + "': " + reason);
}

} // namespace sluice::compiler
