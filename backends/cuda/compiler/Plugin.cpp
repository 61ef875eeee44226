#include "backends/cuda/compiler/Plugin.h"

#include "backends/cuda/compiler/Session.h"
#include "backends/loops/FusionRules.h"
#include "ir/Work.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>
#include <optional>

using namespace mlir;
using namespace sluice;

struct sluice_session {
  std::optional<cuda::Session> session; // none if it did not begin
  std::string error;
  std::string architectures; // as description
  std::deque<std::string> names; // of functions, which earlier answers point to
  std::string image;

  sluice_status fail(sluice_status status, std::string why) {
    error = std::move(why);
    return status;
  }
};

static Operation *operationOf(const sluice_kernel_view *view) { return static_cast<Operation *>(view->operation); }

static sluice_status begin(const sluice_target_options *options, sluice_session **result) {
  auto *its = *result = new sluice_session;
  auto fail = [&](llvm::Error failure) {
    std::error_code code;
    llvm::handleAllErrors(std::move(failure), [&](const llvm::StringError &error) {
      code = error.convertToErrorCode();
      its->error = error.getMessage();
    });
    return code == std::errc::not_supported ? SLUICE_UNSUPPORTED : SLUICE_USAGE;
  };
  auto architectures = cuda::readArchitectures(options->settings);
  if (!architectures)
    return fail(architectures.takeError());
  auto session = cuda::Session::begin(std::move(*architectures), options->capacity);
  if (!session)
    return fail(session.takeError());
  its->session.emplace(std::move(*session));
  its->architectures = llvm::join(its->session->architectures(), ", ");
  return SLUICE_OK;
}

static void end(sluice_session *session) { delete session; }

static const char *lastError(sluice_session *session) { return session->error.c_str(); }

static sluice_status describe(sluice_session *session, sluice_target_info *info) {
  info->device_type = "cuda";
  info->cpu = session->architectures.c_str();
  return SLUICE_OK;
}

static sluice_status supports(sluice_session *session, const sluice_kernel_view *view) {
  Operation *op = operationOf(view);
  std::string name = op->getName().getStringRef().str();
  if (!ir::isCompute(op))
    return session->fail(SLUICE_UNSUPPORTED, "CUDA devices have no code for " + name);
  if (auto product = dyn_cast<ir::ContractionOp>(op); product && product.getGroups() == 1)
    return session->fail(SLUICE_UNSUPPORTED, "the CUDA backend has no kernels for products, such as " + name);
  return SLUICE_OK;
}

// Loops take any layout.
static sluice_status proposeLayout(sluice_session *, const sluice_kernel_view *, int, unsigned,
                                   sluice_layout_proposal *) {
  return SLUICE_OK;
}

static sluice_status prepare(sluice_session *session, const sluice_kernel_view *view, sluice_launch_info *launch) {
  auto kernel = cast<ir::KernelOp>(operationOf(view));
  session->error.clear();
  ScopedDiagnosticHandler handler(kernel.getContext(), [&](Diagnostic &diagnostic) {
    session->error += (session->error.empty() ? "" : "; ") + diagnostic.str();
  });
  FailureOr<cuda::Session::Prepared> prepared = session->session->prepare(kernel);
  if (failed(prepared))
    return SLUICE_UNSUPPORTED;
  launch->function = session->names.emplace_back(std::move(prepared->function)).c_str();
  launch->workspace_bytes = prepared->workspaceBytes;
  SmallVector<Operation *> ops(llvm::make_pointer_range(kernel.getBody().front().without_terminator()));
  ir::Work work = ir::workOf(ops, kernel.getOperands(), kernel.getResults(), session->session->capacity());
  launch->cost = {work.flops, work.flopsPerRow, work.bytes, work.bytesPerRow, /*lanes=*/1};
  return SLUICE_OK;
}

static sluice_status lower(sluice_session *session, sluice_blob *blob) {
  if (session->names.empty())
    return SLUICE_OK;
  llvm::Expected<std::string> image = session->session->lower();
  if (!image)
    return session->fail(SLUICE_INTERNAL, llvm::toString(image.takeError()));
  session->image = std::move(*image);
  blob->kind = SLUICE_BLOB_DEVICE;
  blob->data = session->image.data();
  blob->bytes = session->image.size();
  return SLUICE_OK;
}

static sluice_status canFuse(sluice_session *, const sluice_kernel_view *kernel, int *fuses) {
  *fuses = loops::lastOpJoins(*kernel);
  return SLUICE_OK;
}

extern "C" const sluice_backend_compile *sluice_cuda_backend_compile(void) {
  static const sluice_backend_compile table = {sizeof(table),
                                               SLUICE_BACKEND_MAJOR,
                                               SLUICE_BACKEND_MINOR,
                                               "cuda",
                                               LLVM_VERSION_STRING,
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
                                               /*cost=*/nullptr};
  return &table;
}
