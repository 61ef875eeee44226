// CUDA C++ compiled for the CPU's emulated threads. With CUDA_EMU_SANITIZE=thread, address or undefined it is compiled to be
// watched by that sanitizer of g++, whose runtime has to be in LD_PRELOAD.
#pragma once

#include <string>

namespace sluice::test {

/// For texts that run once, and for those that run often.
enum class Effort { Least, Some };

/// The bytes of a shared object; empty if the text does not compile, with the compiler's messages in `log`.
std::string compileForHost(const std::string &text, Effort effort, std::string &log);

/// Loads such an object, for good; null with `log` set if it cannot be loaded.
void *loadForHost(const std::string &object, std::string &log);

} // namespace sluice::test
