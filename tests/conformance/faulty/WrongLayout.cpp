// A product that asks for its second factor transposed in memory and reads it so ("right_layout", which is sound), or
// as if it were row-major; or asks for a layout that is none, takes views to be as large as it knows them, or settings to
// be nothing.
#include "tests/conformance/faulty/Faulty.h"

#include <cstring>
#include <deque>
#include <string>

namespace sluice::faulty {

namespace {

struct Sizes {
  int64_t m, k, n; // m is -1 for the rows of the call
};

} // namespace

} // namespace sluice::faulty

struct sluice_session {
  std::deque<sluice::faulty::Sizes> sizes;
  std::string unknownSetting;
};

namespace sluice::faulty {

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  bool hasSetting = *options->settings && kFault != "ignored_settings";
  *session = new sluice_session{{}, hasSetting ? options->settings : ""};
  return hasSetting ? SLUICE_USAGE : SLUICE_OK;
}

static void end(sluice_session *session) { delete session; }
static const char *lastError(sluice_session *session) {
  return session->unknownSetting.empty() ? "there is a plain product of two f32 matrices, and nothing else"
                                         : session->unknownSetting.c_str();
}
static sluice_status describe(sluice_session *, sluice_target_info *info) {
  info->device_type = info->cpu = CONFORMANCE_FAULT;
  return SLUICE_OK;
}

static const sluice_type_view &valueAt(const sluice_kernel_view *view, size_t number) {
  return kFault == "fixed_sizes" ? view->values[number] : *sluice_kernel_value_at(view, number);
}

static sluice_status supports(sluice_session *, const sluice_kernel_view *view) {
  const sluice_op_view &op = *sluice_kernel_op_at(view, 0);
  if (std::strcmp(op.name, "sluice.einsum") != 0 || std::strcmp(sluice_op_attribute_at(&op, 0)->word, "ab,bc->ac") != 0)
    return SLUICE_UNSUPPORTED;
  const sluice_type_view &a = valueAt(view, op.operands[0]), &b = valueAt(view, op.operands[1]);
  // What fixed_sizes takes for the second type is no type at all, with no address to go to.
  bool isPlain = a.dtype == SLUICE_DTYPE_f32 && a.rank == 2 && b.dtype == SLUICE_DTYPE_f32 && b.shape[0] > 0;
  return isPlain ? SLUICE_OK : SLUICE_UNSUPPORTED;
}

static sluice_status proposeLayout(sluice_session *, const sluice_kernel_view *, int isResult, unsigned number,
                                   sluice_layout_proposal *proposal) {
  static constexpr sluice_layout_dim transposed[] = {{1, SLUICE_LAYOUT_WHOLE, 0}, {0, SLUICE_LAYOUT_WHOLE, 0}};
  static constexpr sluice_layout_dim twice[] = {{1, SLUICE_LAYOUT_WHOLE, 0}, {1, SLUICE_LAYOUT_WHOLE, 0}};
  proposal->cares = proposal->required = 1;
  if (isResult || number != 1)
    return SLUICE_OK;
  proposal->layout = kFault == "no_layout" ? twice : transposed;
  proposal->num_layout = 2;
  return SLUICE_OK;
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *view, sluice_launch_info *launch) {
  if (supports(session, view) != SLUICE_OK)
    return SLUICE_UNSUPPORTED;
  const sluice_op_view &op = *sluice_kernel_op_at(view, 0);
  const sluice_type_view &a = valueAt(view, op.operands[0]), &b = valueAt(view, op.operands[1]);
  launch->function = "einsum";
  launch->parameters = &session->sizes.emplace_back(Sizes{a.shape[0], a.shape[1], b.shape[1]});
  launch->parameters_bytes = sizeof(Sizes);
  return SLUICE_OK;
}

static sluice_backend_run sound; // has no kernels

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  if (std::strcmp(launch->function, "einsum") != 0)
    return sound.launch(queue, launch);
  Sizes sizes;
  std::memcpy(&sizes, launch->parameters, sizeof sizes);
  const auto *a = static_cast<const float *>(launch->addresses[0]),
             *b = static_cast<const float *>(launch->addresses[1]);
  auto *y = static_cast<float *>(launch->addresses[2]);
  for (int64_t i = 0; i < (sizes.m < 0 ? launch->call->rows : sizes.m); ++i)
    for (int64_t j = 0; j < sizes.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < sizes.k; ++l)
        sum += a[i * sizes.k + l] * (kFault == "right_layout" ? b[j * sizes.k + l] : b[l * sizes.n + j]);
      y[i * sizes.n + j] = sum;
    }
  return SLUICE_OK;
}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  sound = run;
  run.launch = launch;
  static sluice_backend_compile half{};
  half.struct_size = sizeof(half);
  half.major_version = SLUICE_BACKEND_MAJOR;
  half.minor_version = SLUICE_BACKEND_MINOR;
  half.name = CONFORMANCE_FAULT;
  half.begin = begin;
  half.end = end;
  half.last_error = lastError;
  half.describe = describe;
  half.supports = supports;
  half.propose_layout = proposeLayout;
  half.prepare = prepare;
  return &half;
}

} // namespace sluice::faulty
