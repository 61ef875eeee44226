// Array: elements in the memory of a device, like torch.Tensor. The functions of <sluice/ops.h> and <sluice/formulas.h>
// work on arrays under the same names (array/ops.h).
//
//     set_devices("cpu,sim:0");
//     Array x = ones({2, 3}, f32, try_gpu()), y = x * 2.0 + 1.0;
//     std::cout << y << '\n';     // prints "(2, 3) gpu(0) float32" and the elements; one copy to the host
//
//   Compilation   The first call of a function with given shapes, dtypes and devices compiles it; later calls only
//                 launch its kernels.
//   Devices       All operands of a call are on one device, and so is the result. Functions never move elements between
//                 devices by themselves. Copies happen in `to`, `copy_to`, `copy_`, `cpu`, `cuda` and `array(values,
//                 device)`, in files and DLPack, and when the host reads elements: `str`, `item`, `to_vector`,
//                 `allclose` and array/dynamic.h. `transfers` counts copies between two devices.
//   Asynchrony    On accelerators, a call returns when its work is enqueued. Reading an array waits for the work that
//                 computes it. The read throws the error of that work, with the function and the line of its call. On
//                 the host, a call returns when its work is done.
//   Threads       Each thread has its own queues. Several threads may read one array. Methods that change it (`fill_`,
//                 `+=`, `attach_grad`, ...) and `to_dlpack` need exclusive access, as for std::vector; `backward` needs
//                 it to the arrays with gradients.
//   Errors        Error (error.h) at the line of the call; for a function by `jit`, at the line of `jit`. Wrong
//                 arguments and operands without elements: code 2. A missing device: 4. Exhausted memory or a lost
//                 device: 5. A defect or a failed kernel: 70.
//   Indices       Indices on the host that are out of range throw Error (code 3). Those on accelerators are clamped,
//                 because a check would copy them to the host.
#pragma once

#include "sluice/array/core.h"
#include "sluice/array/data_parallel.h"
#include "sluice/array/dynamic.h"
#include "sluice/array/jit.h"
#include "sluice/array/ops.h"
#include "sluice/array/random.h"
#include "sluice/array/tape.h"
