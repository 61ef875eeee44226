// A transport that is never opened, with the fault selected at compile time.
#include "sluice/backend/transport.h"

#include <cstdlib>
#include <string_view>

static sluice_status openNothing(const sluice_transport_options *, sluice_transport **) { return SLUICE_UNSUPPORTED; }
static void closeNothing(sluice_transport *) {}
static const char *noError(sluice_transport *) { return ""; }
static sluice_status sendNothing(sluice_transport *, int32_t, const void *, size_t, sluice_transfer **) {
  return SLUICE_UNSUPPORTED;
}
static sluice_status receiveNothing(sluice_transport *, int32_t, void *, size_t, sluice_transfer **) {
  return SLUICE_UNSUPPORTED;
}
static sluice_status testNothing(sluice_transport *, sluice_transfer *, int *) { return SLUICE_UNSUPPORTED; }

#ifdef HAS_NO_SYMBOL
#define sluice_transport_query sluice_test_query
extern "C" const sluice_transport_library *sluice_test_query();
#endif

extern "C" const sluice_transport_library *sluice_transport_query() {
  static constexpr std::string_view fault = TRANSPORT_FAULT;
  static sluice_transport_library library = {sizeof library,
                                             SLUICE_TRANSPORT_MAJOR,
                                             SLUICE_TRANSPORT_MINOR,
                                             "test",
                                             openNothing,
                                             closeNothing,
                                             noError,
                                             sendNothing,
                                             receiveNothing,
                                             testNothing,
                                             closeNothing};
  if (fault == "Crash")
    std::abort();
  if (fault == "Nothing")
    return nullptr;
  if (fault == "WrongMajor")
    library.major_version = 9;
  if (fault == "ShortTable")
    library.struct_size -= 8;
  if (fault == "OtherName")
    library.name = "other";
  if (fault == "NoSend")
    library.send = nullptr;
  return &library;
}
