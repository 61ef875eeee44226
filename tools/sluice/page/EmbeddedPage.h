// Pages that a browser shows without a network: one file of HTML with its style, its scripts and its data.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <utility>

namespace sluice::page {

/// The files of a page. `html` has `{{policy}}`, `{{style}}`, `{{script}}` and the names of its data where these go.
struct PageFiles {
  llvm::StringRef html, style, script;
};

/// The page with its data: JSON texts by name. Data comes from files that nobody vouches for: whatever its strings hold stays text,
/// and nothing but the page's own style and script may take effect.
std::string assemblePage(const PageFiles &files, llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> data);

} // namespace sluice::page
