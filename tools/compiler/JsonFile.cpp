#include "tools/compiler/JsonFile.h"

#include "runtime/base/Status.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "llvm/Support/JSON.h"

namespace sluice::compiler {

llvm::Error readingJson(llvm::function_ref<void()> read) {
  runtime::Status status = runtime::guarded(read);
  return status.ok() ? llvm::Error::success() : makeError(ExitCode(status.code), status.message);
}

llvm::Expected<runtime::Json> readJsonFile(const std::string &path) {
  auto text = readText(path);
  if (!text)
    return text.takeError();
  runtime::Json parsed;
  if (llvm::Error error = readingJson([&] { parsed = runtime::parseJson(*text, path); }))
    return std::move(error);
  return parsed;
}

std::string quoteJson(const runtime::Json &value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump();
  return text.size() <= kMost ? text : llvm::json::fixUTF8(llvm::StringRef(text).take_front(kMost)) + "...";
}

} // namespace sluice::compiler
