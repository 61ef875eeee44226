// Faults of kernels, which otherwise are the host's: some write nothing, take more rows than there are, or need what nothing can
// have; their code depends on more than their contents; or the backend supports no op.
#include "tests/conformance/faulty/Faulty.h"

#include <deque>
#include <string>
#include <vector>

struct sluice_session {
  const sluice_backend_compile *host;
  sluice_session *inner = nullptr; // of the host
  std::deque<std::vector<sluice_stage_info>> stages;
  std::deque<std::string> objects;
};

namespace sluice::faulty {

static int64_t capacity;

static sluice_status begin(const sluice_target_options *options, sluice_session **session) {
  capacity = options->capacity;
  *session = new sluice_session{options->services->host, nullptr, {}, {}};
  return (*session)->host->begin(options, &(*session)->inner);
}

static void end(sluice_session *session) {
  session->host->end(session->inner);
  delete session;
}

static const char *lastError(sluice_session *session) {
  return kFault == "supports_nothing" ? "there is no op for it" : session->host->last_error(session->inner);
}

static sluice_status describe(sluice_session *session, sluice_target_info *info) {
  sluice_status status = session->host->describe(session->inner, info);
  if (kFault == "rare_addresses")
    info->alignment = 4096;
  return status;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *op) {
  return kFault == "supports_nothing" ? SLUICE_UNSUPPORTED : session->host->supports(session->inner, op);
}

static sluice_status proposeLayout(sluice_session *session, const sluice_kernel_view *op, int isResult, unsigned number,
                                   sluice_layout_proposal *proposal) {
  return session->host->propose_layout(session->inner, op, isResult, number, proposal);
}

static sluice_status canFuse(sluice_session *session, const sluice_kernel_view *kernel, int *fuses) {
  return session->host->can_fuse(session->inner, kernel, fuses);
}

static bool holds(const sluice_kernel_view &kernel, std::string_view op) {
  for (size_t i = 0; i < kernel.num_ops; ++i)
    if (sluice_kernel_op_at(&kernel, i)->name == op)
      return true;
  return false;
}

static bool writesNothing(const sluice_kernel_view &kernel) {
  return (kFault == "empty_fused_kernels" && kernel.num_ops > 1) ||
         (kFault == "empty_input_gradients" && holds(kernel, "sluice.conv2d_input_grad")) ||
         (kFault == "empty_weight_gradients" && holds(kernel, "sluice.conv2d_weight_grad")) ||
         (kFault == "empty_comparisons" && holds(kernel, "sluice.compare")) ||
         (kFault == "empty_single_kernels" && kernel.symbol);
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch) {
  sluice_kernel_view view = *kernel;
  if (kFault == "unmarked_stages" && view.symbol)
    view.symbol = "kernel";
  sluice_status status = session->host->prepare(session->inner, &view, launch);
  if (status != SLUICE_OK || !writesNothing(*kernel))
    return status;
  std::vector<sluice_stage_info> &stages = session->stages.emplace_back();
  for (size_t number = 0; number < launch->num_stages; ++number) {
    stages.push_back(*sluice_launch_info_stage_at(launch, number));
    stages.back().tasks = 0;
  }
  launch->stages = stages.data();
  launch->stage_size = sizeof(sluice_stage_info);
  return status;
}

static sluice_status lower(sluice_session *session, sluice_blob *blob) {
  sluice_status status = session->host->lower(session->inner, blob);
  static const sluice_function_needs nameless{nullptr, "here", 1, 0, 0, 0}, negative{"f", "here", -1, 0, 0, 0};
  if (kFault == "nameless_functions" || kFault == "negative_needs") {
    blob->functions = kFault == "nameless_functions" ? &nameless : &negative;
    blob->num_functions = 1;
    blob->function_size = sizeof nameless;
  }
  return status;
}

static sluice_status lowerKernels(sluice_session *session, const char *const *symbols, size_t count,
                                  sluice_blob *const *blobs) {
  static size_t lowered = 0;
  sluice_status status = SLUICE_OK;
  if (kFault == "objects_of_all") {
    status = session->host->lower(session->inner, blobs[0]);
    for (size_t number = 1; number < count; ++number)
      *blobs[number] = *blobs[0];
    return status;
  }
  status = session->host->lower_kernels(session->inner, symbols, count, blobs);
  for (size_t number = 0; kFault == "counted_objects" && status == SLUICE_OK && number < count; ++number) {
    sluice_blob &blob = *blobs[number];
    std::string &object = session->objects.emplace_back(static_cast<const char *>(blob.data), blob.bytes);
    object += std::to_string(++lowered); // after the sections
    blob.data = object.data();
    blob.bytes = object.size();
  }
  return status;
}

static sluice_backend_run sound; // with the rows of the call

static sluice_status launchAllRows(sluice_queue *queue, const sluice_launch *launch) {
  sluice_call all = *launch->call;
  all.rows = capacity;
  sluice_launch more = *launch;
  more.call = &all;
  return sound.launch(queue, &more);
}

static const char *refusal = nullptr; // what last_error says, if the sound half has nothing to say

static sluice_status refuseNoRows(sluice_queue *queue, const sluice_launch *launch) {
  refusal = launch->call->rows == 0 ? "there are no rows" : nullptr;
  return refusal ? SLUICE_INVALID : sound.launch(queue, launch);
}

static const char *lastRunError(sluice_run *run) { return refusal ? refusal : sound.last_error(run); }

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  if (kFault == "ignored_rows")
    run.launch = launchAllRows;
  if (kFault == "refused_no_rows") {
    run.launch = refuseNoRows;
    run.last_error = lastRunError;
  }
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
  half.lower = lower;
  half.can_fuse = canFuse;
  if (kFault == "empty_single_kernels" || kFault == "counted_objects" || kFault == "unmarked_stages" ||
      kFault == "objects_of_all")
    half.lower_kernels = lowerKernels;
  return &half;
}

} // namespace sluice::faulty
