#include "runtime/device/BackendTables.h"

#include "runtime/base/Text.h"
#include "sluice/backend/compile.h"
#include "sluice/backend/host.h"
#include "sluice/backend/run.h"

#include <cstring>
#include <initializer_list>
#include <utility>

namespace sluice::runtime {

static constexpr size_t mostTableBytes = 1 << 16;
static constexpr size_t mostNameBytes = 32;

/// The sizes of a table in this minor version and in 1.0.
struct TableSizes {
  size_t ours, first;
};

/// A table of this minor version has exactly our size; one of a later version at least that, one of 1.0 that of 1.0.
static std::string whyWrongSize(const char *table, uint32_t size, uint32_t major, uint32_t minor, TableSizes sizes) {
  if (major != SLUICE_BACKEND_MAJOR)
    return concat(table, " has version ", major, ".", minor, ", and this Sluice needs ", SLUICE_BACKEND_MAJOR, ".x");
  bool later = minor > SLUICE_BACKEND_MINOR;
  size_t expected = minor < SLUICE_BACKEND_MINOR ? sizes.first : sizes.ours;
  if (later ? size < expected || size > mostTableBytes : size != expected)
    return concat(table, " says that it has ", size, " bytes, but in version ", major, ".", minor, " it has ",
                  later ? "at least " : "", expected);
  return "";
}

static std::string whyWrongName(const char *name) {
  size_t length = name ? strnlen(name, mostNameBytes + 1) : 0;
  if (length == 0 || length > mostNameBytes || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
    return concat("its name must be 1 to ", mostNameBytes, " lower-case letters, digits and underscores");
  const char *host = sluice_host_backend()->name;
  return strcmp(name, host) == 0 ? concat("its name is ", quote(host), ", which is the host's") : "";
}

/// The first member that is missing.
static std::string whyIncomplete(const char *table, std::initializer_list<std::pair<const char *, bool>> members) {
  for (auto [name, present] : members)
    if (!present)
      return concat(table, " lacks ", name);
  return "";
}

#define MEMBER(half, name) {#name, (half).name != nullptr}

static std::string whyUnsoundCompile(const sluice_backend_compile &half, const char *backendName) {
  const char *table = "its compile half";
  std::string reason = whyWrongSize(table, half.struct_size, half.major_version, half.minor_version,
                                    {sizeof(half), offsetof(sluice_backend_compile, cost)});
  if (reason.empty() && (!half.name || strcmp(half.name, backendName) != 0))
    reason = concat(table, " has another name than the backend, ", quote(backendName));
  if (!reason.empty())
    return reason;
  return whyIncomplete(table, {MEMBER(half, begin), MEMBER(half, end), MEMBER(half, last_error), MEMBER(half, describe),
                               MEMBER(half, supports), MEMBER(half, prepare)});
}

static std::string whyUnsoundRun(const sluice_backend_run &half) {
  const char *table = "its run half";
  std::string reason =
      whyWrongSize(table, half.struct_size, half.major_version, half.minor_version, {sizeof(half), sizeof(half)});
  if (!reason.empty())
    return reason;
  return whyIncomplete(table, {MEMBER(half, open), MEMBER(half, close), MEMBER(half, last_error),
                               MEMBER(half, device_count), MEMBER(half, device_info), MEMBER(half, allocate),
                               MEMBER(half, release), MEMBER(half, queue_create), MEMBER(half, queue_destroy),
                               MEMBER(half, event_create), MEMBER(half, event_destroy), MEMBER(half, record),
                               MEMBER(half, wait), MEMBER(half, synchronize), MEMBER(half, synchronize_queue),
                               MEMBER(half, copy), MEMBER(half, launch)});
}

std::string whyUnsound(const sluice_backend *backend) {
  if (!backend)
    return "sluice_backend_query returned nothing";
  std::string reason = whyWrongSize("sluice_backend", backend->struct_size, backend->major_version,
                                    backend->minor_version, {sizeof(*backend), sizeof(*backend)});
  if (reason.empty())
    reason = whyWrongName(backend->name);
  if (reason.empty() && !backend->compile && !backend->run)
    reason = "it has neither a compile half nor a run half";
  if (reason.empty() && backend->compile)
    reason = whyUnsoundCompile(*backend->compile, backend->name);
  if (reason.empty() && backend->run)
    reason = whyUnsoundRun(*backend->run);
  return reason;
}

} // namespace sluice::runtime
