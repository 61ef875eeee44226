// The compile half: writes a kernel's ops down as they are seen in the C view.
#include "tests/backends/scroll/Scroll.h"

#include <cstring>
#include <deque>
#include <sstream>
#include <string>

struct sluice_session {
  std::string error;
  std::deque<std::string> names; // of the kernels prepared so far
  std::string blob;
};

namespace sluice::scroll {

static constexpr const char *kBegin = "scroll\n";

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  *session = new sluice_session{"", {}, kBegin};
  if (*options->settings)
    (*session)->error = std::string("scroll has no setting '").append(options->settings).append("'");
  return *options->settings ? SLUICE_USAGE : SLUICE_OK;
}

static void end(sluice_session *session) { delete session; }
static const char *lastError(sluice_session *session) { return session->error.c_str(); }

static sluice_status describe(sluice_session *, sluice_target_info *info) {
  info->device_type = info->cpu = "scroll";
  return SLUICE_OK;
}

static sluice_status refuse(sluice_session *session, const std::string &why) {
  session->error = why;
  return SLUICE_UNSUPPORTED;
}

static bool isKnown(const std::string &op) { return op == "sluice.add" || op == "sluice.mul" || op == "sluice.relu"; }

static sluice_status supports(sluice_session *session, const sluice_kernel_view *view) {
  for (size_t i = 0; i < view->num_ops; ++i)
    if (const char *name = sluice_kernel_op_at(view, i)->name; !isKnown(name))
      return refuse(session, std::string("scroll adds, multiplies and rectifies, but has no ") + name);
  for (size_t i = 0; i < view->num_values; ++i) {
    const sluice_type_view &type = *sluice_kernel_value_at(view, i);
    for (size_t dim = 1; dim < type.rank; ++dim)
      if (type.shape[dim] < 0)
        return refuse(session, "scroll has the rows outermost");
    if (type.dtype != SLUICE_DTYPE_f32 || type.num_layout > 0)
      return refuse(session, "scroll has row-major f32 only");
  }
  return SLUICE_OK;
}

static sluice_status canFuse(sluice_session *session, const sluice_kernel_view *view, int *fuses) {
  *fuses = supports(session, view) == SLUICE_OK;
  return SLUICE_OK;
}

/// Elements that a value always has, and those of each row; all values of a kernel are alike.
static std::string countElements(const sluice_type_view &type) {
  bool hasRows = type.rank > 0 && type.shape[0] < 0;
  int64_t elements = 1;
  for (size_t dim = hasRows; dim < type.rank; ++dim)
    elements *= type.shape[dim];
  return (hasRows ? "0 " : "") + std::to_string(elements) + (hasRows ? "" : " 0");
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *view, sluice_launch_info *launch) {
  if (supports(session, view) != SLUICE_OK)
    return SLUICE_UNSUPPORTED;
  if (!view->bytecode || view->bytecode_size == 0) {
    session->error = "scroll asked for bytecode and got none";
    return SLUICE_INTERNAL;
  }
  std::ostringstream text;
  text << "kernel " << view->name << " " << view->num_operands << " elements "
       << countElements(*sluice_kernel_value_at(view, view->num_operands)) << " results";
  for (size_t i = 0; i < view->num_results; ++i)
    text << " " << view->results[i];
  text << " bytecode " << view->bytecode_size << "\n";
  for (size_t i = 0; i < view->num_ops; ++i) {
    const sluice_op_view &op = *sluice_kernel_op_at(view, i);
    text << op.name + std::strlen("sluice.");
    for (size_t operand = 0; operand < op.num_operands; ++operand)
      text << " " << op.operands[operand];
    text << "\n";
  }
  text << "end\n";
  session->blob += text.str() + std::string(view->bytecode, view->bytecode_size) + "\n";
  launch->function = session->names.emplace_back(view->name).c_str();
  launch->cost.lanes = 1;
  return SLUICE_OK;
}

static sluice_status lower(sluice_session *session, sluice_blob *blob) {
  if (session->names.empty())
    return SLUICE_OK;
  blob->kind = SLUICE_BLOB_DEVICE;
  blob->data = session->blob.data();
  blob->bytes = session->blob.size();
  return SLUICE_OK;
}

const sluice_backend_compile compileHalf = [] {
  sluice_backend_compile half{};
  half.struct_size = sizeof(half);
  half.major_version = SLUICE_BACKEND_MAJOR;
  half.minor_version = SLUICE_BACKEND_MINOR;
  half.name = "scroll";
  half.wants_bytecode = 1;
  half.begin = begin;
  half.end = end;
  half.last_error = lastError;
  half.describe = describe;
  half.supports = supports;
  half.prepare = prepare;
  half.lower = lower;
  half.can_fuse = canFuse;
  return half;
}();

} // namespace sluice::scroll
