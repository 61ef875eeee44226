// The inverse error function for random numbers, with the polynomials of Giles, "Approximating the erfinv function"
// (2010).
#pragma once

#include "ir/build/Lane.h"

namespace sluice::ir {

/// The polynomials for single and for double precision.
enum class ErfInv { Single, Double };

/// erfinv(x), where x is within (-1, 1). The overload on doubles is the reference; the one on lanes rounds alike on
/// every device.
double erfinv(double x, ErfInv precision);
Lane erfinv(Lane x, ErfInv precision);

} // namespace sluice::ir
