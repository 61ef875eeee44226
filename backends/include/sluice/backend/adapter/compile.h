// compileTable<Session>: a compile half from a C++ class, whose object is a session. The class needs
//
//   static constexpr const char *name;                             of the backend
//   explicit Session(const sluice_target_options &options);
//   void describe(sluice_target_info &info);
//   void supports(const sluice_kernel_view &op);                   throws SLUICE_UNSUPPORTED with the reason
//   void prepare(const sluice_kernel_view &kernel, sluice_launch_info &launch);
//
// Optional:
//
//   static constexpr const char *nativeAbi;
//   static constexpr bool wantsBytecode;
//   void proposeLayout(const sluice_kernel_view &op, bool isResult, unsigned number, sluice_layout_proposal &proposal);
//   void lower(sluice_blob &blob);
//   void lowerKernels(std::span<const char *const> symbols, sluice_blob *const *blobs);
//   bool canFuse(const sluice_kernel_view &kernel);
//   void cost(const sluice_kernel_view &kernel, sluice_cost_estimate &estimate);
#pragma once

#include "sluice/backend/adapter/error.h"
#include "sluice/backend/compile.h"

#include <span>

namespace sluice::backend {

template <typename Session> class CompileCalls {
public:
  static constexpr sluice_backend_compile table() {
    sluice_backend_compile table{};
    table.struct_size = sizeof table;
    table.major_version = SLUICE_BACKEND_MAJOR;
    table.minor_version = SLUICE_BACKEND_MINOR;
    table.name = Session::name;
    if constexpr (requires { Session::nativeAbi; })
      table.native_abi = Session::nativeAbi;
    table.wants_bytecode = requires { requires Session::wantsBytecode; };
    table.begin = begin;
    table.end = Its::template close<sluice_session>;
    table.last_error = Its::template lastError<sluice_session>;
    table.describe = describe;
    table.supports = supports;
    table.prepare = prepare;
    if constexpr (requires { &Session::proposeLayout; })
      table.propose_layout = proposeLayout;
    if constexpr (requires { &Session::lower; })
      table.lower = lower;
    if constexpr (requires { &Session::canFuse; })
      table.can_fuse = canFuse;
    if constexpr (requires { &Session::cost; })
      table.cost = cost;
    if constexpr (requires { &Session::lowerKernels; })
      table.lower_kernels = lowerKernels;
    return table;
  }

private:
  using Its = Opened<Session>;

  static sluice_status begin(const sluice_target_options *options, sluice_session **session) noexcept {
    return Its::open(session, *options);
  }
  static sluice_status describe(sluice_session *session, sluice_target_info *info) noexcept {
    return Its::call(session, [&](Session &its) { its.describe(*info); });
  }
  static sluice_status supports(sluice_session *session, const sluice_kernel_view *op) noexcept {
    return Its::call(session, [&](Session &its) { its.supports(*op); });
  }
  static sluice_status proposeLayout(sluice_session *session, const sluice_kernel_view *op, int isResult,
                                     unsigned number, sluice_layout_proposal *proposal) noexcept {
    return Its::call(session, [&](Session &its) { its.proposeLayout(*op, isResult != 0, number, *proposal); });
  }
  static sluice_status prepare(sluice_session *session, const sluice_kernel_view *kernel,
                               sluice_launch_info *launch) noexcept {
    return Its::call(session, [&](Session &its) { its.prepare(*kernel, *launch); });
  }
  static sluice_status lower(sluice_session *session, sluice_blob *blob) noexcept {
    return Its::call(session, [&](Session &its) { its.lower(*blob); });
  }
  static sluice_status canFuse(sluice_session *session, const sluice_kernel_view *kernel, int *fuses) noexcept {
    return Its::call(session, [&](Session &its) { *fuses = its.canFuse(*kernel); });
  }
  static sluice_status cost(sluice_session *session, const sluice_kernel_view *kernel,
                            sluice_cost_estimate *estimate) noexcept {
    return Its::call(session, [&](Session &its) { its.cost(*kernel, *estimate); });
  }
  static sluice_status lowerKernels(sluice_session *session, const char *const *symbols, size_t count,
                                    sluice_blob *const *blobs) noexcept {
    return Its::call(session, [&](Session &its) { its.lowerKernels({symbols, count}, blobs); });
  }
};

template <typename Session> inline constexpr sluice_backend_compile compileTable = CompileCalls<Session>::table();

} // namespace sluice::backend
