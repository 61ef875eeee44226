// Files that killed processes have left half written beside their targets.
#pragma once

#include <string>

namespace sluice::files {

/// The name that a file for `target` has while it is written: `number` tells the files of this process apart.
std::string temporaryNameOf(const std::string &target, unsigned number);

/// Marks an open file as being written by this process, until it is closed.
void holdTemporary(int descriptor);

/// Removes the temporary files of `name` in `folder` that dead processes have left. A file is left if no process of its
/// number runs here, or that number is now this process's own, and nothing holds it: a process on another machine or in
/// another container, where numbers are others, holds what it writes.
void removeLeftovers(const std::string &folder, const std::string &name);

} // namespace sluice::files
