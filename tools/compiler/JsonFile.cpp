#include "tools/compiler/JsonFile.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

namespace json = llvm::json;
namespace fs = llvm::sys::fs;

namespace sluice::compiler {

static constexpr uint64_t kMostBytes = uint64_t(1) << 28;
static constexpr int kMostNesting = 64;

/// The parser recurses on each bracket, and so does who walks or frees what it built.
static bool isTooDeep(llvm::StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kMostNesting)
      return true;
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

llvm::Expected<json::Value> readJsonFile(const std::string &path) {
  auto invalid = [&](const llvm::Twine &what) { return makeError(ExitCode::Invalid, path + ": " + what); };
  fs::file_status status;
  if (std::error_code error = fs::status(path, status))
    return invalid(error.message());
  if (status.type() == fs::file_type::directory_file)
    return invalid(std::make_error_code(std::errc::is_a_directory).message());
  if (status.type() != fs::file_type::regular_file)
    return invalid("is no regular file");
  if (status.getSize() > kMostBytes)
    return invalid("has " + llvm::Twine(status.getSize()) + " bytes; at most " + llvm::Twine(kMostBytes) + " are read");
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return invalid(buffer.getError().message());
  if (isTooDeep((*buffer)->getBuffer()))
    return invalid("nested more than " + llvm::Twine(kMostNesting) + " deep");
  auto parsed = json::parse((*buffer)->getBuffer());
  if (!parsed)
    return invalid(llvm::toString(parsed.takeError()));
  return std::move(*parsed);
}

} // namespace sluice::compiler
