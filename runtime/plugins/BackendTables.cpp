#include "runtime/plugins/BackendTables.h"

#include "runtime/base/Text.h"
#include "sluice/backend/collectives.h"
#include "sluice/backend/compile.h"
#include "sluice/backend/host.h"
#include "sluice/backend/run.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace sluice::runtime {

static constexpr size_t mostTableBytes = 1 << 16;
static constexpr size_t mostNameBytes = 32;

// The sizes of each table by minor version; the last entry is the current version. To append a member in a new minor
// version, replace the last entry by the member's offset and append the table's new size.
static constexpr size_t backendSizes[] = {sizeof(sluice_backend), sizeof(sluice_backend), sizeof(sluice_backend),
                                          sizeof(sluice_backend), sizeof(sluice_backend), sizeof(sluice_backend),
                                          sizeof(sluice_backend), sizeof(sluice_backend), sizeof(sluice_backend)};
static constexpr size_t compileSizes[] = {offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          offsetof(sluice_backend_compile, lower_kernels),
                                          sizeof(sluice_backend_compile)};
static constexpr size_t runSizes[] = {offsetof(sluice_backend_run, capture_begin),
                                      offsetof(sluice_backend_run, group_create),
                                      offsetof(sluice_backend_run, note_times),
                                      offsetof(sluice_backend_run, note_times),
                                      offsetof(sluice_backend_run, note_times),
                                      offsetof(sluice_backend_run, signal),
                                      offsetof(sluice_backend_run, signal),
                                      offsetof(sluice_backend_run, clear),
                                      sizeof(sluice_backend_run)};
static constexpr size_t collectivesSizes[] = {0,
                                              0,
                                              offsetof(sluice_backend_collectives, no_tree_sums),
                                              offsetof(sluice_backend_collectives, no_tree_sums),
                                              sizeof(sluice_backend_collectives),
                                              sizeof(sluice_backend_collectives),
                                              sizeof(sluice_backend_collectives),
                                              sizeof(sluice_backend_collectives),
                                              sizeof(sluice_backend_collectives)};
static constexpr size_t transportSizes[] = {sizeof(sluice_transport_library)};
static_assert(std::size(transportSizes) == SLUICE_TRANSPORT_MINOR + 1);
static_assert(std::size(backendSizes) == SLUICE_BACKEND_MINOR + 1 &&
              std::size(compileSizes) == std::size(backendSizes) && std::size(runSizes) == std::size(backendSizes) &&
              std::size(collectivesSizes) == std::size(backendSizes));

std::string whyWrongSize(const TableHead &table, std::span<const size_t> sizes, uint32_t major) {
  if (table.major != major)
    return concat(table.name, " has version ", table.major, ".", table.minor, ", and this Sluice needs ", major, ".x");
  bool later = table.minor >= sizes.size();
  size_t expected = later ? sizes.back() : sizes[table.minor];
  if (later ? table.size < expected || table.size > mostTableBytes : table.size != expected)
    return concat(table.name, " says that it has ", table.size, " bytes, but in version ", table.major, ".",
                  table.minor, " it has ", later ? "at least " : "", expected);
  return "";
}

static std::string whyWrongName(const char *name) {
  size_t length = name ? strnlen(name, mostNameBytes + 1) : 0;
  if (length == 0 || length > mostNameBytes || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
    return concat("its name must be 1 to ", mostNameBytes, " lower-case letters, digits and underscores");
  const char *host = sluice_host_backend()->name;
  return strcmp(name, host) == 0 ? concat("its name is ", quote(host), ", which is the host's") : "";
}

/// The reason "TABLE lacks MEMBER" for the first missing member; empty if all are present.
static std::string whyIncomplete(const char *table, std::initializer_list<std::pair<const char *, bool>> members) {
  for (auto [name, present] : members)
    if (!present)
      return concat(table, " lacks ", name);
  return "";
}

#define MEMBER(half, name) {#name, (half).name != nullptr}

static std::string whyUnsoundCompile(const sluice_backend_compile &half, const char *backendName) {
  const char *table = "its compile half";
  std::string reason = whyWrongSize({table, half.struct_size, half.major_version, half.minor_version}, compileSizes);
  if (reason.empty() && (!half.name || strcmp(half.name, backendName) != 0))
    reason = concat(table, " has another name than the backend, ", quote(backendName));
  if (!reason.empty())
    return reason;
  return whyIncomplete(table, {MEMBER(half, begin), MEMBER(half, end), MEMBER(half, last_error), MEMBER(half, describe),
                               MEMBER(half, supports), MEMBER(half, prepare)});
}

/// The same for members that a backend implements together or not at all.
static std::string whyHalved(const char *table, std::initializer_list<std::pair<const char *, bool>> members) {
  auto isThere = [](const auto &member) { return member.second; };
  bool some = std::any_of(members.begin(), members.end(), isThere);
  return some ? whyIncomplete(table, members) : "";
}

/// `half` is the run half that contains the table.
static std::string whyUnsoundCollectives(const sluice_backend_collectives &given, const sluice_backend_run &half) {
  const char *table = "its table of collectives";
  if (half.minor_version < 2)
    return concat("its run half has collectives, which version ", SLUICE_BACKEND_MAJOR, ".", half.minor_version,
                  " does not know");
  std::string reason =
      whyWrongSize({table, given.struct_size, half.major_version, half.minor_version}, collectivesSizes);
  if (!reason.empty())
    return reason;
  return whyIncomplete(table, {MEMBER(given, unique_id), MEMBER(given, init), MEMBER(given, exchange),
                               MEMBER(given, begin), MEMBER(given, end), MEMBER(given, error), MEMBER(given, abort),
                               MEMBER(given, destroy), MEMBER(given, order)});
}

static std::string whyUnsoundRun(const sluice_backend_run &given) {
  const char *table = "its run half";
  std::string reason = whyWrongSize({table, given.struct_size, given.major_version, given.minor_version}, runSizes);
  if (!reason.empty())
    return reason;
  sluice_backend_run half = wholeRunHalf(given);
  reason = whyHalved(table, {MEMBER(half, capture_begin), MEMBER(half, capture_end), MEMBER(half, replay),
                             MEMBER(half, sequence_destroy)});
  if (reason.empty())
    reason = whyHalved(table, {MEMBER(half, host_allocate), MEMBER(half, host_release)});
  if (reason.empty())
    reason = whyHalved(table, {MEMBER(half, group_create), MEMBER(half, group_destroy)});
  if (reason.empty() && half.wait_for_signal)
    reason = whyIncomplete(table, {MEMBER(half, host_allocate)});
  if (reason.empty() && half.note_times)
    reason = whyIncomplete(table, {MEMBER(half, event_times)});
  if (reason.empty() && half.collectives)
    reason = whyUnsoundCollectives(*half.collectives, given);
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
  std::string reason = whyWrongSize(
      {"sluice_backend", backend->struct_size, backend->major_version, backend->minor_version}, backendSizes);
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

std::string whyUnsound(const sluice_transport_library *library) {
  if (!library)
    return "sluice_transport_query returned nothing";
  const char *table = "its table";
  std::string reason = whyWrongSize({table, library->struct_size, library->major_version, library->minor_version},
                                    transportSizes, SLUICE_TRANSPORT_MAJOR);
  if (reason.empty())
    reason = whyWrongName(library->name);
  if (!reason.empty())
    return reason;
  return whyIncomplete(table, {MEMBER(*library, open), MEMBER(*library, close), MEMBER(*library, last_error),
                               MEMBER(*library, send), MEMBER(*library, receive), MEMBER(*library, test),
                               MEMBER(*library, abort)});
}

ExitCode exitCodeOf(sluice_status status) {
  switch (status) {
  case SLUICE_USAGE:
  case SLUICE_INVALID:
  case SLUICE_UNSUPPORTED:
  case SLUICE_EXHAUSTED:
  case SLUICE_DEADLINE:
  case SLUICE_PEER_LOST:
    return static_cast<ExitCode>(status);
  default:
    return ExitCode::internal;
  }
}

} // namespace sluice::runtime
