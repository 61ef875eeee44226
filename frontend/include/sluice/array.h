// Array: elements in the memory of a device, known now: torch.Tensor. The functions of <sluice/ops.h> and
// <sluice/formulas.h> work on arrays under the same names (array/ops.h).
//
//     set_devices("cpu,sim:0");
//     Array x = ones({2, 3}, f32, try_gpu()), y = x * 2.0 + 1.0;
//     std::cout << y << '\n';     // (2, 3) gpu(0) float32, and the elements: one copy to the host
//
//   Compilation   The first call of a function with these shapes, dtypes and devices compiles it; later calls only launch
//                 its kernels.
//   Devices       All operands of a call are on one device, and so is the result. Elements move only in `to`, `copy_to`,
//                 `copy_`, `cpu` and `cuda`, and when the host reads them: in `str`, `item`, `to_vector` and files. Each
//                 counts as one copy (`transfers`), unless the array is on the host already.
//   Asynchrony    On accelerators, a call returns when its work is enqueued. Reading an array waits for this array only.
//                 An error of the work is thrown by the read, with the function and the line of its call. On the host, a
//                 call returns when its work is done.
//   Threads       Each thread has its own queues. Several threads may read one array; methods that write it (`fill_`,
//                 `+=`, ...) need exclusive access, as for std::vector.
//   Errors        Error, at the line of the call (error.h).
#pragma once

#include "sluice/array/core.h"
#include "sluice/array/data_parallel.h"
#include "sluice/array/dynamic.h"
#include "sluice/array/jit.h"
#include "sluice/array/ops.h"
#include "sluice/array/random.h"
#include "sluice/array/tape.h"
