// Prepares a program at its start so that it ends with the documented exit codes.
#pragma once

#include <cstddef>
#include <exception>

namespace sluice::files {

/// Occupies the descriptors 0 to 2 if they are closed. Otherwise a file opened later would receive one of them and the
/// terminal output written to it. Writing to a closed standard output remains an error. A file size limit becomes a
/// write error; by default it ends the process and leaves a partial file. Exhausted memory or threads end the process
/// by `endExhausted` if no caller handles the exception, for example in threads of libraries.
void prepareProcess();

/// Ends the process at once with exit code 5 and a message. Needs no memory.
[[noreturn]] void endExhausted(const char *message);

/// A message if the exception reports that memory or a thread is unavailable; else null.
const char *shortageIn(const std::exception &error);

/// Whether this much memory is available. Some libraries crash if it is not.
bool memoryIsLeft(size_t bytes);

} // namespace sluice::files
