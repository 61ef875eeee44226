// Temporary files that killed processes leave next to their targets.
#pragma once

#include <string>

namespace sluice::files {

/// The name of a temporary file for `target`. `number` distinguishes the temporary files of this process.
std::string temporaryNameOf(const std::string &target, unsigned number);

/// Locks an open temporary file until it is closed, to mark it as being written.
void holdTemporary(int descriptor);

/// Removes the temporary files of `name` in `folder` that dead processes left. A file is removed if its process ID is
/// unused on this machine or belongs to this process, and if no process holds its lock. The lock protects the files of
/// processes on other machines and in other containers, whose process IDs are unrelated.
void removeLeftovers(const std::string &folder, const std::string &name);

} // namespace sluice::files
