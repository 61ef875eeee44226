/* The compile half of the backend ABI: how the compiler asks a backend what it can do and has kernels made by it.
 *
 * Rules of every table: `struct_size` first; the major version must match; a minor version only appends; what is absent is
 * NULL. No exception and no allocation crosses: strings and arrays that a backend returns live until its session ends. */
#ifndef SLUICE_BACKEND_COMPILE_H
#define SLUICE_BACKEND_COMPILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_BACKEND_MAJOR 1
#define SLUICE_BACKEND_MINOR 0

typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_INVALID = 3,     /* the input is wrong */
  SLUICE_UNSUPPORTED = 4, /* the backend cannot do this; last_error says why */
  SLUICE_INTERNAL = 70
} sluice_status;

typedef struct sluice_target_options {
  uint32_t struct_size;
  const char *cpu;        /* "native" or a CPU's name; other backends: their own spelling */
  int64_t capacity;       /* rows that a dimension `?` may have */
} sluice_target_options;

typedef struct sluice_target_info {
  uint32_t struct_size;
  const char *device_type; /* "cpu" */
  const char *cpu;         /* the CPU's name in full */
  uint32_t vector_bits;
} sluice_target_info;

/* One launch as the compiler sees it: a sluice.kernel, alone in a module. */
typedef struct sluice_kernel_view {
  uint32_t struct_size;
  const char *name;
  const char *bytecode;    /* MLIR bytecode of the kernel, for backends that set wants_bytecode; NULL otherwise */
  size_t bytecode_size;
  void *operation;         /* mlir::Operation * of the kernel, for backends whose native_abi equals the compiler's; else NULL */
} sluice_kernel_view;

typedef struct sluice_stage_info {
  const char *symbol;      /* of the function in the blob */
  int64_t tasks;
  int64_t rows_per_task;   /* tasks * ceil(rows / rows_per_task); 0: tasks alone */
} sluice_stage_info;

typedef struct sluice_cost {
  int64_t flops, flops_per_row; /* multiply-adds times two, of products and convolutions */
  int64_t bytes, bytes_per_row; /* that must move at least: operands and results once */
  double lanes;                 /* share of the vector lanes that the shape can fill */
} sluice_cost;

/* How a kernel is launched: its stages in order; its buffers are operands, results and, if it asked for one, workspace. */
typedef struct sluice_launch_info {
  uint32_t struct_size;
  const sluice_stage_info *stages;
  size_t num_stages;
  int64_t workspace_bytes;
  sluice_cost cost;
} sluice_launch_info;

typedef struct sluice_session sluice_session;

typedef struct sluice_backend_compile {
  uint32_t struct_size;
  uint32_t major_version, minor_version;
  const char *name;
  const char *native_abi;  /* the MLIR that it was built with, or NULL for a backend without MLIR */
  int wants_bytecode;

  sluice_status (*begin)(const sluice_target_options *options, sluice_session **session);
  void (*end)(sluice_session *session);
  const char *(*last_error)(sluice_session *session);
  sluice_status (*describe)(sluice_session *session, sluice_target_info *info);

  /* Whether the backend can run this op at all; last_error gives the reason if not. */
  sluice_status (*supports)(sluice_session *session, const sluice_kernel_view *kernel);

  /* The layout in which the op likes operand or result `number` best, as an affine map's text; "" for row-major, NULL if it
   * does not care. `required` is set if it takes no other. */
  sluice_status (*propose_layout)(sluice_session *session, const sluice_kernel_view *op, int is_result, unsigned number, const char **layout, int *required);

  /* Makes the kernel and says how to launch it; lowering may not exceed the workspace named here. */
  sluice_status (*prepare)(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch);

  /* All prepared kernels as one object file in which the stages' symbols are defined. */
  sluice_status (*lower)(sluice_session *session, const char **blob, size_t *size);
} sluice_backend_compile;

#ifdef __cplusplus
}
#endif

#endif
