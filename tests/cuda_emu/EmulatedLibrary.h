// CUDA C++ compiled for the CPU's emulated threads, with what calls it, and loaded.
#pragma once

#include <string>

namespace sluice::test {

class EmulatedLibrary {
public:
  EmulatedLibrary() = default;
  /// Compiles and loads `text`; a failure is a test's.
  void compile(const std::string &text);
  void *find(const std::string &name) const;

private:
  void *library = nullptr; // stays loaded
};

} // namespace sluice::test
