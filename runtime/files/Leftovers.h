// Temporary files that killed processes leave next to their targets.
#pragma once

#include <string>

namespace sluice::files {

/// The name of a temporary file for `target`. `number` distinguishes the temporary files of this process.
std::string temporaryNameOf(const std::string &target, unsigned number);

/// Locks an open temporary file until it is closed, to mark it as being written.
void holdTemporary(int descriptor);

/// Removes the temporary files of `name` in `folder` that dead processes left. A file is removed if
/// - no other process on this machine has the process ID in its name, and
/// - nobody holds its lock. The lock protects files of this process, and of processes on other machines and in other
///   containers, whose process IDs are unrelated.
void removeLeftovers(const std::string &folder, const std::string &name);

} // namespace sluice::files
