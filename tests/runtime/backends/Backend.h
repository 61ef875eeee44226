// A minimal backend that is accepted, as the base of plugins with one fault each.
#pragma once

#include "sluice/backend/compile.h"

namespace sluice::test {

inline sluice_status begin(const sluice_target_options *, sluice_session **session) {
  *session = nullptr;
  return SLUICE_UNSUPPORTED;
}
inline void end(sluice_session *) {}
inline const char *lastError(sluice_session *) { return ""; }
inline sluice_status describe(sluice_session *, sluice_target_info *) { return SLUICE_OK; }
inline sluice_status supports(sluice_session *, const sluice_kernel_view *) { return SLUICE_UNSUPPORTED; }
inline sluice_status prepare(sluice_session *, const sluice_kernel_view *, sluice_launch_info *) {
  return SLUICE_UNSUPPORTED;
}

inline sluice_backend_compile soundCompileHalf() {
  return {sizeof(sluice_backend_compile),
          SLUICE_BACKEND_MAJOR,
          SLUICE_BACKEND_MINOR,
          "testing",
          nullptr,
          0,
          begin,
          end,
          lastError,
          describe,
          supports,
          nullptr,
          prepare,
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

inline sluice_backend_compile compileHalf = soundCompileHalf();

inline sluice_backend sound() {
  return {sizeof(sluice_backend),
          SLUICE_BACKEND_MAJOR,
          SLUICE_BACKEND_MINOR,
          "testing",
          "for tests",
          &compileHalf,
          nullptr};
}

} // namespace sluice::test
