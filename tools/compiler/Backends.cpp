#include "tools/compiler/Backends.h"

#include "backends/cpu/compiler/Plugin.h"
#include "backends/cuda/compiler/Plugin.h"
#include "runtime/base/Status.h"
#include "sluice/backend/host.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Installation.h"
#include "llvm/ADT/StringMap.h"
#include <mutex>

namespace sluice::compiler {

const sluice_backend_compile &hostBackend() { return *sluice_cpu_backend_compile(); }

llvm::ArrayRef<const sluice_backend_compile *> builtInBackends() {
  static const sluice_backend_compile *const all[] = {&hostBackend(), sluice_cuda_backend_compile()};
  return all;
}

static const sluice_compile_services &services() {
  static const sluice_compile_services services{sizeof(services), &hostBackend()};
  return services;
}

runtime::BackendDevice describeHost() {
  runtime::BackendDevice host;
  const sluice_backend_run &half = *sluice_host_backend()->run;
  sluice_run_options options{sizeof(options), nullptr, "", nullptr};
  sluice_run *run = nullptr;
  sluice_device_info info{};
  info.struct_size = sizeof(info);
  if (half.open(&options, &run) == SLUICE_OK && half.device_info(run, 0, &info) == SLUICE_OK)
    host = {info.name,     info.memory_bytes, info.free_bytes,      info.cores,
            info.clock_hz, info.peak_flops,   info.memory_bandwidth};
  if (run)
    half.close(run);
  return host;
}

std::vector<runtime::BackendFile> tryBackends() {
  return runtime::tryBackends(runtime::backendFolders(findBackendFolder()), {.services = &services()});
}

llvm::Expected<const sluice_backend_compile *> findBackend(llvm::StringRef name) {
  static std::mutex mutex;
  static llvm::StringMap<const sluice_backend_compile *> found;
  std::lock_guard lock(mutex);
  for (const sluice_backend_compile *builtIn : builtInBackends())
    found.try_emplace(builtIn->name, builtIn);
  const sluice_backend_compile *&backend = found[name];
  if (backend)
    return backend;
  runtime::Status status = runtime::guarded([&] {
    backend = &runtime::findCompileHalf(name.str(), runtime::backendFolders(findBackendFolder()), services());
  });
  if (status.ok())
    return backend;
  return makeError(ExitCode(status.code), status.message);
}

const runtime::BackendDevice *findDevice(llvm::ArrayRef<runtime::BackendFile> files, const ir::TargetDevice &device) {
  for (const runtime::BackendFile &file : files)
    if (file.accepted() && file.hasRun && file.name == device.backend && size_t(device.ordinal) < file.devices.size())
      return &file.devices[size_t(device.ordinal)];
  return nullptr;
}

llvm::Expected<passes::TargetDescription> describeTarget(const sluice_backend_compile &backend,
                                                         const CompileOptions &options) {
  return passes::describeTarget(backend, hostBackend(), options);
}

} // namespace sluice::compiler
