// The simulator's compile half: its kernels are the host's. Every question goes on to a session of the compiler's host
// service, with the view as it came.
#include "sluice/backend/compile.h"

#include <new>
#include <string>

struct sluice_session {
  const sluice_backend_compile *host = nullptr;
  sluice_session *inner = nullptr; // of the host
  std::string error;               // why there is none
};

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  *session = new (std::nothrow) sluice_session;
  if (!*session)
    return SLUICE_EXHAUSTED;
  if (!options->services || !options->services->host) {
    (*session)->error = "this compiler offers no service that compiles for the host, which runs sim's kernels";
    return SLUICE_UNSUPPORTED;
  }
  (*session)->host = options->services->host;
  return (*session)->host->begin(options, &(*session)->inner);
}

static void end(sluice_session *session) {
  if (session->inner)
    session->host->end(session->inner);
  delete session;
}

static const char *lastError(sluice_session *session) {
  return session->inner ? session->host->last_error(session->inner) : session->error.c_str();
}

static sluice_status describe(sluice_session *session, sluice_target_info *info) {
  sluice_status status = session->host->describe(session->inner, info);
  info->device_type = "sim";
  info->host_kernels = 1;
  return status;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *op) {
  return session->host->supports(session->inner, op);
}

static sluice_status proposeLayout(sluice_session *session, const sluice_kernel_view *op, int isResult, unsigned number,
                                   sluice_layout_proposal *proposal) {
  return session->host->propose_layout(session->inner, op, isResult, number, proposal);
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
  return session->host->prepare(session->inner, kernel, launch);
}

static sluice_status lower(sluice_session *session, sluice_blob *blob) {
  return session->host->lower(session->inner, blob);
}

static sluice_status canFuse(sluice_session *session, const sluice_kernel_view *kernel, int *fuses) {
  return session->host->can_fuse(session->inner, kernel, fuses);
}

static sluice_status cost(sluice_session *session, const sluice_kernel_view *kernel, sluice_cost_estimate *estimate) {
  return session->host->cost(session->inner, kernel, estimate);
}

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend_compile compile = {sizeof(compile),
                                                 SLUICE_BACKEND_MAJOR,
                                                 SLUICE_BACKEND_MINOR,
                                                 "sim",
                                                 /*native_abi=*/nullptr,
                                                 /*wants_bytecode=*/0,
                                                 begin,
                                                 end,
                                                 lastError,
                                                 describe,
                                                 supports,
                                                 proposeLayout,
                                                 prepare,
                                                 lower,
                                                 canFuse,
                                                 cost};
  static const sluice_backend backend = {sizeof(backend),
                                         SLUICE_BACKEND_MAJOR,
                                         SLUICE_BACKEND_MINOR,
                                         "sim",
                                         "virtual accelerators whose kernels are compiled for the host",
                                         &compile,
                                         nullptr};
  return &backend;
}
