#include "runtime/base/Status.h"

#include "runtime/files/Process.h"

namespace sluice::runtime {

Status guarded(const std::function<void()> &body) noexcept {
  // Copying a message may itself run out of memory. Only the code can be returned then.
  try {
    try {
      body();
      return {};
    } catch (const Error &error) {
      return {error.code(), error.what()};
    } catch (const std::exception &error) {
      if (const char *shortage = files::shortageIn(error))
        return {ExitCode::exhausted, shortage};
      return {ExitCode::internal, std::string("internal error: ") + error.what()};
    } catch (...) {
      return {ExitCode::internal, "internal error"};
    }
  } catch (...) {
    return {ExitCode::exhausted, {}};
  }
}

void failUsage(const std::string &message) { throw Error(ExitCode::usage, message); }
void failInvalid(const std::string &message) { throw Error(ExitCode::invalid, message); }
void failUnsupported(const std::string &message) { throw Error(ExitCode::unsupported, message); }
void failExhausted(const std::string &message) { throw Error(ExitCode::exhausted, message); }

} // namespace sluice::runtime
