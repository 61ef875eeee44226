// NumPy's files as data: an .npy file or a folder of them, a column each, and the members of an .npz archive.
#pragma once

#include "runtime/data/tables/Table.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// One column, named as the file is; it is read where it lies.
Table npyTable(const std::string &path);

/// A column for each of these files of a folder that ends in .npy.
Table npyFolderTable(const std::string &folder, const std::vector<std::string> &files);

/// A column for each member that ends in .npy. Stored ones are read where they lie, deflated ones unpacked; `load` checks the
/// CRC-32 of either.
Table npzTable(const std::string &path);

} // namespace sluice::runtime
