// The layers of torch.nn, with its argument names, defaults and initial values.
#pragma once

#include "sluice/layers/activations.h"
#include "sluice/layers/attention.h"
#include "sluice/layers/convolution.h"
#include "sluice/layers/linear.h"
#include "sluice/layers/norms.h"
#include "sluice/layers/pools.h"
#include "sluice/layers/recurrent.h"
#include "sluice/layers/sequential.h"
