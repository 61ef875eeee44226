// DLPack: arrays that share memory with PyTorch, NumPy and other libraries.
//
//     DLManagedTensor *managed = to_dlpack(x);   // for a capsule called "dltensor"
//     Array y = from_dlpack(managed);            // takes ownership
//
//   Memory        `to_dlpack` shares the memory of the array. It copies once if other arrays use the same memory, such
//                 as the result of a reshape. The memory is freed after the deleter was called and the array was
//                 destroyed, in either order. `from_dlpack` shares the memory if the elements are compact, row-major
//                 and aligned: to the element size on the host, to 256 bytes on CUDA devices. Otherwise it copies them;
//                 on an accelerator, strided elements are copied through the host. Strides may be 0 or negative.
//   Writes        Methods that change the array in place write the shared memory, and each side sees the other's
//                 writes. Results of calls never share memory with another library. The first write to a read-only
//                 import moves the array to new memory. `backward` throws Error if this process changed an operand
//                 after its call.
//   Order         `to_dlpack` waits until no work uses the memory, so that a consumer may use any stream. Later, call
//                 wait() before the other side reads what this process wrote, and wait_all() before it writes. Memory
//                 given to `from_dlpack` must be complete: synchronize the producer's CUDA streams first, and in Python
//                 call `__dlpack__` with the stream -1 or None.
//   Devices       The host is kDLCPU. A device of the CUDA backend is kDLCUDA with its number. Other accelerators are
//                 kDLExtDev with their number, which only this library imports.
//   Dtypes        All dtypes of Sluice. A bool has 8 bits, 0 or 1.
#pragma once

#include "sluice/array.h"
#include "sluice/dlpack_structs.h"

namespace sluice {

/// The elements of an array for another library, which must call `deleter` once. The shape and strides are those of a
/// compact row-major array. Needs exclusive access to the array, in spite of `const`. Copies an array in read-only
/// memory, because consumers may write an unversioned tensor. Throws Error (code 5 if memory is exhausted).
DLManagedTensor *to_dlpack(const Array &array, std::source_location where = std::source_location::current());
/// The same as a versioned tensor (1.1). Read-only memory stays shared, with the read-only flag.
DLManagedTensorVersioned *to_dlpack_versioned(const Array &array,
                                              std::source_location where = std::source_location::current());

/// An array of the elements. Takes ownership: calls the deleter once, from any thread, when the memory is no longer
/// used. On an error, the caller keeps the tensor. Throws Error with code 2 for a null pointer, a damaged struct,
/// another major version, an unsupported element type, more than 64 dimensions or 2^40 elements, or a bool other than 0
/// and 1 in host memory; with code 4 for memory of a device that is not in the list (set_devices); with code 5 if
/// memory is exhausted.
Array from_dlpack(DLManagedTensor *managed, std::source_location where = std::source_location::current());
Array from_dlpack(DLManagedTensorVersioned *managed, std::source_location where = std::source_location::current());

} // namespace sluice
