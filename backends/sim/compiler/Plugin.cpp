// The simulator's compile half. Kernels are compiled for the host: every call is forwarded, with an unchanged view, to
// a session of the host's compile half, which the compiler provides as a service.
#include "sluice/backend/adapter.h"

using sluice::backend::Error;

namespace {

/// A session of the host, with errors as exceptions.
class HostSession {
public:
  explicit HostSession(const sluice_target_options &options)
      : host_(options.services ? options.services->host : nullptr) {
    if (!host_)
      throw Error(SLUICE_UNSUPPORTED,
                  "sim needs a compiler that passes the host's compile half: its kernels are compiled for the host");
    sluice_status status = host_->begin(&options, &session_);
    if (status == SLUICE_OK)
      return;
    std::string reason = session_ ? host_->last_error(session_) : "";
    if (session_)
      host_->end(session_);
    throw Error(status, reason);
  }
  HostSession(const HostSession &) = delete;
  ~HostSession() { host_->end(session_); }

  /// Calls a member of the host's table.
  template <typename... Parameters, typename... Arguments>
  void call(sluice_status (*sluice_backend_compile::*member)(sluice_session *, Parameters...), Arguments... arguments) {
    if (sluice_status status = (host_->*member)(session_, arguments...); status != SLUICE_OK)
      throw Error(status, host_->last_error(session_));
  }

private:
  const sluice_backend_compile *host_;
  sluice_session *session_ = nullptr;
};

class Session {
public:
  static constexpr const char *name = "sim";

  explicit Session(const sluice_target_options &options) : host_(options) {}

  void describe(sluice_target_info &info) {
    host_.call(&sluice_backend_compile::describe, &info);
    info.device_type = "sim";
    info.host_kernels = 1;
  }
  void supports(const sluice_kernel_view &op) { host_.call(&sluice_backend_compile::supports, &op); }
  void proposeLayout(const sluice_kernel_view &op, bool isResult, unsigned number, sluice_layout_proposal &proposal) {
    host_.call(&sluice_backend_compile::propose_layout, &op, isResult, number, &proposal);
  }
  void prepare(const sluice_kernel_view &kernel, sluice_launch_info &launch) {
    host_.call(&sluice_backend_compile::prepare, &kernel, &launch);
  }
  void lower(sluice_blob &blob) { host_.call(&sluice_backend_compile::lower, &blob); }
  void lowerKernels(std::span<const char *const> symbols, sluice_blob *const *blobs) {
    host_.call(&sluice_backend_compile::lower_kernels, symbols.data(), symbols.size(), blobs);
  }
  bool canFuse(const sluice_kernel_view &kernel) {
    int fuses = 0;
    host_.call(&sluice_backend_compile::can_fuse, &kernel, &fuses);
    return fuses != 0;
  }
  void cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate) {
    host_.call(&sluice_backend_compile::cost, &kernel, &estimate);
  }

private:
  HostSession host_;
};

} // namespace

extern "C" const sluice_backend *sluice_backend_query(void) {
  static constexpr sluice_backend backend =
      sluice::backend::backendTable("sim", "virtual accelerators whose kernels are compiled for the host",
                                    &sluice::backend::compileTable<Session>, nullptr);
  return &backend;
}
