// All op families, for one set of generated files.
include "ir/Contraction.td"
include "ir/Elementwise.td"
include "ir/Movement.td"
include "ir/Pool.td"
include "ir/Random.td"
include "ir/Reduction.td"
include "ir/Structure.td"
