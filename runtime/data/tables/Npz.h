// NumPy files as data. A column is an .npy file, a file of a folder of .npy files, or a member of an .npz archive.
#pragma once

#include "runtime/data/tables/Table.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// One memory-mapped column with the name of the file.
Table npyTable(const std::string &path);

/// One column for each of these files of a folder with the extension .npy.
Table npyFolderTable(const std::string &folder, const std::vector<std::string> &files);

/// One column for each member with the extension .npy. Stored members are mapped, deflated members unpacked; `load`
/// verifies the CRC-32 of both.
Table npzTable(const std::string &path);

} // namespace sluice::runtime
