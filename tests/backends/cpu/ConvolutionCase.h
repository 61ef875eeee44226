// A convolution of a test, and its images.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"

#include <ostream>

namespace sluice::cpu::testing {

struct ConvolutionCase {
  const char *name;
  int64_t rows, call; // capacity, and images in the call
  int64_t c, o;       // input and output channels
  Convolution::Axis h, w;
  int64_t l2 = 0; // of the target; 0: its own
};

inline void PrintTo(const ConvolutionCase &c, std::ostream *os) { *os << c.name; }

// The same axis along height and width.
inline ConvolutionCase square(const char *name, int64_t rows, int64_t call, int64_t c, int64_t o,
                              Convolution::Axis both) {
  return {name, rows, call, c, o, both, both};
}

} // namespace sluice::cpu::testing
