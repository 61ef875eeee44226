/* The structs of DLPack 1.1, https://dmlc.github.io/dlpack, in C: the names, values and layouts of the specification.
 * Programs that include <dlpack/dlpack.h> of the specification must include it first; its structs are used then. */
#pragma once

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

/* The kind of memory that `data` refers to. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3, /* pinned memory of the host */
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11, /* pinned memory of the host */
  kDLExtDev = 12,   /* any other device, which only its library can access */
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id; /* the number among the devices of this kind; 0 for the host */
} DLDevice;

/* Type codes. The codes of 8-bit and narrower floats are omitted; Sluice does not support them. */
typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
} DLDataTypeCode;

typedef struct {
  uint8_t code;   /* a DLDataTypeCode */
  uint8_t bits;   /* of one number */
  uint16_t lanes; /* numbers of an element, 1 except for vectors */
} DLDataType;

/* A tensor in memory of its owner. */
typedef struct {
  void *data; /* NULL if there are no elements */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;       /* `ndim` sizes */
  int64_t *strides;     /* `ndim` distances in elements; NULL: compact and row-major */
  uint64_t byte_offset; /* from `data` to the first element */
} DLTensor;

/* A tensor and its owner, without a version. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;                             /* of the owner */
  void (*deleter)(struct DLManagedTensor *self); /* also frees `self`; NULL: nothing to free */
} DLManagedTensor;

#endif

#ifndef DLPACK_MAJOR_VERSION
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

/* Another major version has another layout after `flags`. Another minor version has more constants. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* The consumer must not write the memory. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
/* The producer made a copy, so that the consumer owns the memory. */
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

/* A tensor and its owner. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;                                      /* of the owner */
  void (*deleter)(struct DLManagedTensorVersioned *self); /* also frees `self`; NULL: nothing to free */
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
