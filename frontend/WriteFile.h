// Files that are whole or not there.
#pragma once

#include <string>

namespace sluice::detail {

/// Writes `text` beside `path` and renames it over; "-" is the standard output. Empty, or the system's reason for
/// failing.
std::string writeFile(const std::string &path, const std::string &text);

} // namespace sluice::detail
