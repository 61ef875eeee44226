#include "tools/sluice/page/EmbeddedPage.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace sluice::page {

/// JSON inside an element of HTML: without `<` there is no `</script>` and no `<!--`.
static std::string embed(StringRef json) {
  std::string text;
  for (char c : json)
    c == '<' ? text.append("\\u003c") : text.append(1, c);
  return text;
}

/// The hash source of an inline script or style for a content security policy.
static std::string hashSource(StringRef text) {
  return "'sha256-" + encodeBase64(SHA256::hash(arrayRefFromStringRef(text))) + "'";
}

std::string assemblePage(const PageFiles &files, ArrayRef<std::pair<StringRef, std::string>> data) {
  auto part = [&](StringRef name) -> std::string {
    if (name == "policy") // this script and style only; no network access
      return "default-src 'none'; script-src " + hashSource(files.script) + "; style-src " + hashSource(files.style);
    if (name == "style")
      return files.style.str();
    if (name == "script")
      return files.script.str();
    const auto *known = find_if(data, [&](const auto &item) { return item.first == name; });
    assert(known != data.end() && "page.html asks for an unknown part");
    return embed(known->second);
  };
  std::string page;
  for (StringRef rest = files.html; !rest.empty();) {
    auto [text, after] = rest.split("{{");
    page += text;
    if (after.empty())
      break;
    auto [name, tail] = after.split("}}");
    page += part(name);
    rest = tail;
  }
  return page;
}

} // namespace sluice::page
