#include "tools/compiler/JsonFile.h"

#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"

namespace json = llvm::json;

namespace sluice::compiler {

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
  auto text = readText(path);
  if (!text)
    return text.takeError();
  if (isTooDeep(*text))
    return invalid("nested more than " + llvm::Twine(kMostNesting) + " deep");
  auto parsed = json::parse(*text);
  if (!parsed)
    return invalid(llvm::toString(parsed.takeError()));
  return std::move(*parsed);
}

} // namespace sluice::compiler
