// The graph API: include this for all of it but the in-process compiler (<sluice/compile.h>).
#pragma once

#include "sluice/data_parallel.h"
#include "sluice/device.h"
#include "sluice/dtype.h"
#include "sluice/error.h"
#include "sluice/formulas.h"
#include "sluice/graph.h"
#include "sluice/init.h"
#include "sluice/language.h"
#include "sluice/layers.h"
#include "sluice/module.h"
#include "sluice/ops.h"
#include "sluice/optim.h"
#include "sluice/process.h"
#include "sluice/random.h"
#include "sluice/shape.h"
#include "sluice/tensor.h"
