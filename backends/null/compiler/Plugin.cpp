// The template of a compile half; `tools/new backend NAME` copies it.
//
// The compiler calls this half. It supports no op and reports the reason. Fill in:
//   1. supports   Look at the name and the attributes of sluice_kernel_op_at(op, 0), and at the dtypes and shapes of
//                 the values; say yes where you have a kernel. Whatever you refuse, the user must put on another
//                 device, so let the reason say why.
//   2. prepare    Say how the kernel is launched. `function` names a function of your run half, and `parameters` are
//                 the bytes that it gets with every launch: sizes, strides, whatever the view says and your function needs.
//   3. lower      Only if you generate code: a blob of device code, which the run half loads as a module.
// A member that is left out is NULL, and backend.h says what that means: without propose_layout every tensor is
// row-major, without can_fuse every op is a launch of its own.
#include "sluice/backend/compile.h"

#include <new>
#include <string>

struct sluice_session {
  std::string error; // why the last call failed
};

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  *session = new (std::nothrow) sluice_session;
  if (!*session)
    return SLUICE_EXHAUSTED;
  if (!*options->settings)
    return SLUICE_OK;
  (*session)->error = std::string("there is no setting '").append(options->settings).append("'");
  return SLUICE_USAGE;
}

static void end(sluice_session *session) { delete session; }

static const char *lastError(sluice_session *session) { return session->error.c_str(); }

static sluice_status describe(sluice_session *, sluice_target_info *info) {
  info->device_type = "null";
  info->cpu = "none";
  info->vector_bits = 0;
  return SLUICE_OK;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *op) {
  session->error = std::string("null has memory but no kernels, so it cannot run ") +
                   (op->num_ops > 0 ? sluice_kernel_op_at(op, 0)->name : "this op");
  return SLUICE_UNSUPPORTED;
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *) {
  return supports(session, kernel);
}

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend_compile compile = [] {
    sluice_backend_compile half{};
    half.struct_size = sizeof(half);
    half.major_version = SLUICE_BACKEND_MAJOR;
    half.minor_version = SLUICE_BACKEND_MINOR;
    half.name = "null";
    half.begin = begin;
    half.end = end;
    half.last_error = lastError;
    half.describe = describe;
    half.supports = supports;
    half.prepare = prepare;
    return half;
  }();
  static const sluice_backend backend = {sizeof(backend),
                                         SLUICE_BACKEND_MAJOR,
                                         SLUICE_BACKEND_MINOR,
                                         "null",
                                         "the template: memory and copies, no kernels",
                                         &compile,
                                         nullptr};
  return &backend;
}
