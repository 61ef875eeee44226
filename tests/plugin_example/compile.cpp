// The compile half: which ops there are kernels for, and what each launch is told.
#include "abacus.h"

#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <string>

struct sluice_session {
  std::string error;
  std::deque<abacus::Parameters> parameters; // of the kernels prepared so far
};

namespace abacus {

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  *session = new (std::nothrow) sluice_session;
  if (!*session)
    return SLUICE_EXHAUSTED;
  if (!*options->settings)
    return SLUICE_OK;
  (*session)->error = std::string("abacus has no setting '").append(options->settings).append("'");
  return SLUICE_USAGE;
}

static void end(sluice_session *session) { delete session; }

static const char *lastError(sluice_session *session) { return session->error.c_str(); }

static sluice_status describe(sluice_session *, sluice_target_info *info) {
  info->device_type = "abacus";
  info->cpu = "beads";
  info->vector_bits = 32;
  return SLUICE_OK;
}

/// The equation of an einsum: the letters of both operands and of the result.
static std::string equationOf(const sluice_op_view &op) {
  for (size_t i = 0; i < op.num_attributes; ++i)
    if (const sluice_attribute_view &attribute = *sluice_op_attribute_at(&op, i);
        std::strcmp(attribute.name, "equation") == 0 && attribute.kind == SLUICE_ATTRIBUTE_WORD)
      return attribute.word;
  return "";
}

/// Why a value cannot be read or written; empty if it can: row-major f32 with the rows, if any, in dimension 0.
static std::string reasonAgainst(const sluice_type_view &type) {
  if (type.dtype != SLUICE_DTYPE_f32)
    return "abacus counts in f32 alone";
  if (type.num_layout > 0)
    return "abacus reads row-major tensors only";
  for (size_t i = 1; i < type.rank; ++i)
    if (type.shape[i] < 0)
      return "abacus wants the rows in dimension 0";
  return "";
}

/// The kernel and its parameters for an op, or the reason why there is none.
static std::optional<Parameters> match(const sluice_kernel_view &view, std::string &name, std::string &reason) {
  const sluice_op_view &op = *sluice_kernel_op_at(&view, 0);
  name = op.name + std::strlen("sluice.");
  if (view.num_ops != 1 || !findKernel(name.c_str())) {
    reason = std::string("abacus can add, relu and einsum, but not ") + op.name;
    return std::nullopt;
  }
  for (size_t i = 0; i < view.num_values && reason.empty(); ++i)
    reason = reasonAgainst(*sluice_kernel_value_at(&view, i));
  if (!reason.empty())
    return std::nullopt;

  Parameters parameters;
  if (name == "einsum") {
    const sluice_type_view &a = *sluice_kernel_value_at(&view, op.operands[0]);
    const sluice_type_view &b = *sluice_kernel_value_at(&view, op.operands[1]);
    std::string equation = equationOf(op); // each product has one
    parameters.transposedB = equation == "ab,cb->ac";
    if ((equation != "ab,bc->ac" && !parameters.transposedB) || b.shape[0] < 0) {
      reason = "abacus multiplies by 'ab,bc->ac' and 'ab,cb->ac', where the second matrix has no rows, not by '" +
               equation + "'";
      return std::nullopt;
    }
    parameters.m = a.shape[0];
    parameters.k = a.shape[1];
    parameters.n = b.shape[parameters.transposedB ? 0 : 1];
    return parameters;
  }
  const sluice_type_view &result = *sluice_kernel_value_at(&view, view.results[0]);
  bool hasRows = result.rank > 0 && result.shape[0] < 0;
  int64_t elements = 1;
  for (size_t i = hasRows ? 1 : 0; i < result.rank; ++i)
    elements *= result.shape[i];
  (hasRows ? parameters.elementsPerRow : parameters.elements) = elements;
  return parameters;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *op) {
  std::string name;
  session->error.clear();
  return match(*op, name, session->error) ? SLUICE_OK : SLUICE_UNSUPPORTED;
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
  std::string name;
  session->error.clear();
  std::optional<Parameters> parameters = match(*kernel, name, session->error);
  if (!parameters)
    return SLUICE_UNSUPPORTED;
  launch->function = name == "add" ? "add" : name == "relu" ? "relu" : "einsum";
  launch->parameters = &session->parameters.emplace_back(*parameters);
  launch->parameters_bytes = sizeof(Parameters);
  launch->cost.lanes = 1;
  int64_t products = 2 * parameters->k * parameters->n;
  if (parameters->m < 0)
    launch->cost.flops_per_row = products;
  else
    launch->cost.flops = products * parameters->m;
  return SLUICE_OK;
}

static sluice_backend_compile makeCompileHalf() {
  sluice_backend_compile half{};
  half.struct_size = sizeof(half);
  half.major_version = SLUICE_BACKEND_MAJOR;
  half.minor_version = SLUICE_BACKEND_MINOR;
  half.name = "abacus";
  half.begin = begin;
  half.end = end;
  half.last_error = lastError;
  half.describe = describe;
  half.supports = supports;
  half.prepare = prepare;
  return half;
}

const sluice_backend_compile compileHalf = makeCompileHalf();

} // namespace abacus
