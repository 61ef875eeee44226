// A substitute for a compiled model with its own runner: uses the C++ runtime, including exceptions, and returns 7.
#include "sluice/runtime/artifact.h"

#include <iostream>
#include <stdexcept>
#include <string>

extern "C" const sluice_artifact *sluice_artifact_query() { return nullptr; }

void neverCalled() { std::cout << "dropped by the linker"; }

int main(int argc, char **argv) {
  try {
    throw std::runtime_error(argc > 1 ? argv[1] : "nothing");
  } catch (const std::exception &error) {
    std::cout << "caught " << error.what() << std::endl;
  }
  return 7;
}
