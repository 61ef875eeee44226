// Prepares a program at its start so that it ends with the documented exit codes.
#pragma once

#include <cstddef>
#include <exception>

namespace sluice::files {

/// Changes three defaults of the system:
/// - Closed descriptors 0 to 2 are occupied. Otherwise a file opened later could get such a number, and terminal output
///   would be written into that file. Writing to a closed standard output remains an error.
/// - A file size limit is a write error. By default it ends the process and leaves a partial file.
/// - Exhausted memory or threads end the process by `endExhausted` if no caller handles the exception, for example in
///   threads of libraries.
void prepareProcess();

/// Ends the process at once with exit code 5 and a message. Needs no memory.
[[noreturn]] void endExhausted(const char *message);

/// A message if the exception reports that memory or a thread is unavailable; else null.
const char *shortageIn(const std::exception &error);

/// Whether the address space has room for this many bytes, for example under `ulimit -v`. Does not check physical
/// memory. Some libraries crash without this room.
bool memoryIsLeft(size_t bytes);

} // namespace sluice::files
