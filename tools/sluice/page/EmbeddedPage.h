// HTML pages that work offline: one file with its style, its scripts and its data.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <utility>

namespace sluice::page {

/// The files of a page. `html` contains the placeholders `{{policy}}`, `{{style}}`, `{{script}}` and the names of its
/// data.
struct PageFiles {
  llvm::StringRef html, style, script;
};

/// The page with its data: JSON texts by name. The data is untrusted: its strings are only shown as text, and only the
/// page's own style and script can run.
std::string assemblePage(const PageFiles &files, llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> data);

} // namespace sluice::page
