#include "runtime/plugins/Transports.h"

#include "runtime/base/Child.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plugins/BackendTables.h"

#include <dlfcn.h>
#include <filesystem>

namespace sluice::runtime {

/// Time limit of the trial of one file.
static constexpr std::chrono::milliseconds kTransportTrial{5000};

static sluice_transport_query_fn transportQueryIn(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<sluice_transport_query_fn>(dlsym(library, "sluice_transport_query")) : nullptr;
}

static void reportTransport(const std::string &path, const std::string &name, ChildReport &report) {
  report.step("loading");
  sluice_transport_query_fn query = transportQueryIn(path);
  if (!query)
    return report.say("reason", dlerror());
  report.step("its first call, sluice_transport_query");
  const sluice_transport_library *library = query();
  report.step("its table being read");
  std::string reason = whyUnsound(library);
  if (reason.empty() && library->name != name)
    reason = concat("its name is ", quote(library->name));
  if (!reason.empty())
    report.say("reason", reason);
}

/// The reason why the file is not a transport of this name; empty if it is.
static std::string tryTransport(const std::string &path, const std::string &name) {
  ChildResult result = runInChild([&](ChildReport &report) { reportTransport(path, name, report); }, kTransportTrial);
  if (!result.failure.empty())
    return result.failure;
  return result.said.empty() ? std::string() : result.said.front().second;
}

TransportSearch searchTransport(const std::string &name, const std::vector<std::string> &folders) {
  TransportSearch search;
  for (const std::string &folder : folders) {
    std::string path = concat(folder, "/", transportPrefix, name, ".so");
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      continue;
    std::string reason = tryTransport(path, name);
    sluice_transport_query_fn query = reason.empty() ? transportQueryIn(path) : nullptr;
    if (query) {
      search.found = query();
      return search;
    }
    search.refused += concat("; refused ", path, ": ", reason.empty() ? "it cannot be loaded again" : reason);
  }
  return search;
}

const sluice_transport_library &findTransport(const std::string &name, const std::vector<std::string> &folders) {
  TransportSearch search = searchTransport(name, folders);
  if (!search.found)
    failUnsupported(concat("there is no transport ", quote(name), " in ", listed(folders), search.refused));
  return *search.found;
}

} // namespace sluice::runtime
