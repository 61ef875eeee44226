// sluice devices
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Commands.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

/// One backend as a line for people or an object for scripts; `out` is null where the other is wanted.
static json::Object describe(const sluice_backend_compile &backend, llvm::raw_ostream *out) {
  auto target = describeTarget(backend, "native");
  if (!target) {
    std::string reason = takeFailure(target.takeError()).text;
    if (out)
      *out << fmt::format("{:<8}absent: {}\n", backend.name, reason);
    return json::Object{{"backend", backend.name}, {"available", false}, {"reason", reason}};
  }
  if (out)
    *out << fmt::format("{:<8}{}, {}-bit vectors; built in, backend ABI {}.{}\n", backend.name, target->cpu,
                        target->vectorBits, backend.major_version, backend.minor_version);
  return json::Object{{"backend", backend.name},
                      {"available", true},
                      {"device_type", target->deviceType},
                      {"name", target->cpu},
                      {"vector_bits", int64_t(target->vectorBits)}};
}

static llvm::Error listDevices(const Talk &talk) {
  json::Array devices;
  for (const sluice_backend_compile *backend : builtInBackends())
    devices.push_back(describe(*backend, talk.json ? nullptr : &llvm::outs()));
  if (talk.json)
    llvm::outs() << json::Value(json::Object{{"devices", std::move(devices)}}) << '\n';
  return llvm::Error::success();
}

Command addDevices(CLI::App &app) {
  CLI::App *command = app.add_subcommand("devices", "List the devices that models can be compiled for");
  command->footer("Examples:\n  sluice devices\n  sluice devices --json");
  return {command, listDevices};
}

} // namespace sluice::tool
