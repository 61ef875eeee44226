#include "ir/text/Names.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::ir {

/// U+0000 to U+001F and U+007F to U+009F, in UTF-8.
static bool hasControlCharacter(llvm::StringRef text) {
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    bool isSecondSet = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f || isSecondSet)
      return true;
  }
  return false;
}

std::string problemOfName(llvm::StringRef text) {
  if (text.empty())
    return "a name is not empty";
  if (!llvm::json::isUTF8(text))
    return "a name is UTF-8";
  return hasControlCharacter(text) ? "a name has no control characters" : "";
}

std::string problemOfGivenName(llvm::StringRef text) {
  if (text.size() > kMostNameBytes)
    return "a name has at most " + std::to_string(kMostNameBytes) + " bytes, not " + std::to_string(text.size());
  return problemOfName(text);
}

std::string quoteName(llvm::StringRef text) {
  constexpr size_t most = 100;
  std::string quoted = "'";
  llvm::raw_string_ostream out(quoted);
  llvm::printEscapedString(text.take_front(most), out);
  out << (text.size() > most ? "...'" : "'");
  return quoted;
}

} // namespace sluice::ir
