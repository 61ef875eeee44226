// How every file of Sluice is read whole: with an end. Devices, which may have none, are refused, and so is what is
// larger than its reader can use. Needs neither LLVM nor exceptions.
#pragma once

#include "runtime/files/OutputFile.h"

#include <cstdint>
#include <string>

namespace sluice::files {

/// What may be read: a pipe has no size and may keep its reader waiting.
enum class Source { regular, regularOrPipe };

/// Opens `path` and tells its size, which is 0 for a pipe. A pipe that nobody writes to is empty.
Failure openForReading(const std::string &path, Source source, int &descriptor, uint64_t &bytes);

/// Whether `openForReading` would succeed, for files that others open.
Failure checkReadable(const std::string &path, Source source);

/// Reads up to `bytes` bytes, fewer only at the end of the file.
Failure readFrom(int descriptor, void *to, uint64_t bytes, uint64_t &got);

/// The whole of `path`, if that is at most `limit` bytes.
Failure readFile(const std::string &path, Source source, uint64_t limit, std::string &contents);

} // namespace sluice::files
