// DLPack: arrays that share memory with PyTorch, NumPy and other libraries.
//
//     DLManagedTensor *managed = to_dlpack(x);   // for a capsule called "dltensor"
//     Array y = from_dlpack(managed);            // takes it over
//
//   Memory        `to_dlpack` copies nothing, unless another array has the same memory, such as the result of a reshape.
//                 The memory lives until the deleter of the managed tensor was called and the array is gone, in any
//                 order. `from_dlpack` copies nothing if the elements are compact, row-major and aligned for the device:
//                 to their size on the host, and to 256 bytes on CUDA devices.
//                 Otherwise it copies them once, and on an accelerator, elements that are not compact pass through the
//                 host. Strides may be 0 or negative.
//   Writes        With shared memory, each side sees the writes of the other: methods that change the array in place
//                 write the shared memory. Results of calls never share it, and an array imported read-only has new
//                 memory after its first write. `backward` throws Error if this process changed an operand after its call.
//   Order         `to_dlpack` waits until no work uses the memory, so that a consumer may use any stream. Later, wait()
//                 before the other side reads what this process wrote, and wait_all() before it writes. The memory given
//                 to `from_dlpack` must be complete: a producer in Python gets the stream -1 or None, and CUDA work of
//                 other streams is synchronized first.
//   Devices       The host is kDLCPU. A device of the CUDA backend is kDLCUDA with its number. Other accelerators are
//                 kDLExtDev with their number, which only this library imports.
//   Dtypes        All of Sluice. A bool has 8 bits, 0 or 1.
#pragma once

#include "sluice/array.h"
#include "sluice/dlpack_structs.h"

namespace sluice {

/// The elements of an array for another library, which must call `deleter` once. The shape and strides are those of a
/// compact row-major array. Changes the array: needs exclusive access. An array in read-only memory is copied, because a
/// tensor without flags may be written. Throws Error (code 5 if memory is exhausted).
DLManagedTensor *to_dlpack(const Array &array, std::source_location where = std::source_location::current());
/// The same with version 1.1 and flags: read-only memory stays shared, and has its flag.
DLManagedTensorVersioned *to_dlpack_versioned(const Array &array,
                                              std::source_location where = std::source_location::current());

/// An array of the elements, which calls the deleter when the memory is not needed any more, from any thread. Throws
/// Error and leaves the tensor to the caller: code 2 for a null pointer, a damaged struct, another major version, a type
/// of elements that Sluice lacks, more than 64 dimensions or 2^40 elements, or a bool other than 0 and 1 in memory of
/// the host; code 4 for memory of a device that this process does not have (set_devices); code 5 if memory is exhausted.
Array from_dlpack(DLManagedTensor *managed, std::source_location where = std::source_location::current());
Array from_dlpack(DLManagedTensorVersioned *managed, std::source_location where = std::source_location::current());

} // namespace sluice
