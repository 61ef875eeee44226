// Reads whole files. Rejects devices, which may have no end, and files larger than the reader's limit. Uses neither
// LLVM nor exceptions.
#pragma once

#include "runtime/files/OutputFile.h"

#include <cstdint>
#include <string>

namespace sluice::files {

/// Accepted file types: a pipe has no size and may block its reader.
enum class Source { regular, regularOrPipe };

/// Opens `path` and returns its size, which is 0 for a pipe. A pipe without a writer is empty.
Failure openForReading(const std::string &path, Source source, int &descriptor, uint64_t &bytes);

/// Whether `openForReading` would succeed, for files that other libraries open.
Failure checkReadable(const std::string &path, Source source);

/// Reads up to `bytes` bytes, fewer only at the end of the file.
Failure readFrom(int descriptor, void *to, uint64_t bytes, uint64_t &got);

/// The content of `path`; fails above `limit` bytes.
Failure readFile(const std::string &path, Source source, uint64_t limit, std::string &contents);

} // namespace sluice::files
