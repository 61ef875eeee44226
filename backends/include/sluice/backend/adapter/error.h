// Errors of plugins in C++: the exception that their classes throw, and how a C table reports it.
#pragma once

#if __cplusplus < 202002L
#error "Sluice needs C++20: compile with -std=c++20 or a later standard"
#endif

#include "sluice/backend/status.h"

#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace sluice::backend {

/// Why a call fails: its status, and the text of last_error.
class Error : public std::runtime_error {
public:
  Error(sluice_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  sluice_status status() const noexcept { return status_; }

private:
  sluice_status status_;
};

/// The text of last_error. Storing it allocates no memory, so that a lack of memory can be reported: an exception keeps
/// its text, and other texts are stored here.
class LastError {
public:
  /// `name` of the backend is the prefix of texts that do not come from an exception.
  explicit LastError(const char *name) noexcept : name_(name) {}
  LastError(const LastError &) = delete;

  const char *text() const noexcept { return text_; }

  /// Stores the exception that is being handled, and returns its status.
  [[gnu::cold, gnu::noinline]] sluice_status store() noexcept {
    try {
      throw;
    } catch (const Error &error) {
      return keep(error.status(), error);
    } catch (const std::bad_alloc &) {
      return write(SLUICE_EXHAUSTED, "the host is out of memory");
    } catch (const std::exception &error) {
      return keep(SLUICE_INTERNAL, error);
    } catch (...) {
      return write(SLUICE_INTERNAL, "an exception of an unknown type");
    }
  }

private:
  sluice_status keep(sluice_status status, const std::exception &error) noexcept {
    kept_ = std::current_exception();
    text_ = error.what();
    return status;
  }
  sluice_status write(sluice_status status, const char *what) noexcept {
    std::snprintf(written_, sizeof written_, "%s: %s", name_, what);
    text_ = written_;
    return status;
  }

  const char *name_, *text_ = "";
  std::exception_ptr kept_; // owns the text, unless the text is in `written_`
  char written_[80];
};

/// Calls `body`. Returns SLUICE_OK, or the status of the exception that it threw, whose text is stored in `error`.
/// Inlined into the functions of a table, so that success costs no further call.
template <typename Body> [[gnu::always_inline]] inline sluice_status guarded(LastError &error, Body &&body) noexcept {
  try {
    body();
    return SLUICE_OK;
  } catch (...) {
    return error.store();
  }
}

/// The target of the handle of a context, a session or a transport.
template <typename Object> struct Opened {
  LastError error{Object::name};
  std::optional<Object> object; // empty: it could not be opened, and `error` has the reason

  template <typename Handle> static Opened &of(Handle *handle) noexcept { return *reinterpret_cast<Opened *>(handle); }

  template <typename Handle, typename... Arguments>
  static sluice_status open(Handle **handle, const Arguments &...arguments) noexcept {
    auto *opened = new (std::nothrow) Opened;
    *handle = reinterpret_cast<Handle *>(opened);
    return opened ? guarded(opened->error, [&] { opened->object.emplace(arguments...); }) : SLUICE_EXHAUSTED;
  }

  /// Calls `body` with the object.
  template <typename Handle, typename Body> static sluice_status call(Handle *handle, Body &&body) noexcept {
    return guarded(of(handle).error, [&] { body(*of(handle).object); });
  }

  template <typename Handle> static const char *lastError(Handle *handle) noexcept { return of(handle).error.text(); }
  template <typename Handle> static void close(Handle *handle) noexcept { delete &of(handle); }
};

} // namespace sluice::backend
