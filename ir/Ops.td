// All op families, for one set of generated files.
include "ir/ops/Contraction.td"
include "ir/ops/Elementwise.td"
include "ir/ops/Movement.td"
include "ir/ops/Pool.td"
include "ir/ops/Random.td"
include "ir/ops/Reduction.td"
include "ir/ops/Schedule.td"
include "ir/ops/Structure.td"
