// What a program does first, so that it ends with the exit codes that are promised.
#pragma once

#include <cstddef>
#include <exception>

namespace sluice::files {

/// Takes the descriptors 0 to 2 where they are closed, so that no file opened later gets one of them and with it what
/// is meant for the terminal; writing to a standard output that was closed stays an error. A limit to the size of
/// files becomes an error of writing, where it would have ended the process and left what was half written.
/// Memory or threads that cannot be had end the process by `endExhausted` where nobody catches that, as in threads of
/// libraries.
void prepareProcess();

/// Ends the process at once with exit code 5 and a message. Needs no memory.
[[noreturn]] void endExhausted(const char *message);

/// A message if the exception says that memory or a thread cannot be had; null if it says something else.
const char *shortageIn(const std::exception &error);

/// Whether this much memory can be had. Some libraries crash where it cannot.
bool memoryIsLeft(size_t bytes);

} // namespace sluice::files
