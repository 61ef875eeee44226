/* The compile half of the backend ABI: the compiler queries the capabilities of a backend and has it compile kernels.
 * The rules of backend.h hold.
 *
 * Lifetimes. Arguments (options, views and everything that they point to) live until the call returns; the table of the
 * host in the services lives on. Results of a backend live until its session ends, the text of last_error until the
 * next call of the session.
 *
 * Threads. One thread at a time uses a session.
 *
 * Errors. After a failed call, last_error has the reason and the results are undefined. The session continues. After a
 * failure of prepare, lower or lower_kernels, only last_error and end are called.
 *
 * Rows. A size of -1 is the batch dimension, in shapes and attributes; a type has at most one. A kernel is compiled
 * once for `capacity` rows and launched with 0 to `capacity` rows. run.h states the guarantees that a kernel must give
 * for these. */
#pragma once

#include "sluice/backend/backend.h"
#include "sluice/backend/dtypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Services of the compiler for backends. */
typedef struct sluice_compile_services {
  uint32_t struct_size;
  const sluice_backend_compile *host; /* compiles for the host's CPU; a backend may pass views to a session of it */
} sluice_compile_services;

/* The arithmetic of f32. Each value permits more than the one before it. A backend that uses less is correct. */
typedef enum sluice_math {
  SLUICE_MATH_STRICT = 0,            /* every operand and sum is an f32 */
  SLUICE_MATH_TF32_CONVOLUTIONS = 1, /* operands of convolutions may be rounded to 11 bits of significand, as TF32 */
  SLUICE_MATH_TF32 = 2,              /* and operands of other products */
  SLUICE_MATH_FAST = 3               /* and sums may be reordered, or computed by Winograd's algorithm */
} sluice_math;

/* Options of a session. */
typedef struct sluice_target_options {
  uint32_t struct_size;
  const char *cpu;        /* "native" or the name of a CPU, with its caches if known: "haswell:l1=32K,l2=256K" */
  int64_t capacity;       /* the largest number of rows; 0 if the session only describes its target */
  const sluice_compile_services *services; /* never NULL */
  /* Settings of the backend, such as "arch=sm_90,library=all"; "" for none. An unknown one is SLUICE_USAGE, with its name
   * in last_error. */
  const char *settings;
  /* Since 2.6: a folder for readable texts of kernels; it exists when lower or lower_kernels is called. NULL: none are
   * wanted. Both write a file NAME.KIND for each text of the kernel whose view has this name, for example relu.ll.
   * NAME.txt has facts about the kernel, one per line, for example "tile: 6 x 32". */
  const char *temporaries;
  sluice_math math;       /* since 2.8 */
} sluice_target_options;

/* The published peak rates of devices of an architecture; the lowest, if such devices differ. */
typedef struct sluice_peak {
  const char *architecture;             /* "sm_90": the setting "arch=sm_90" compiles for it alone */
  int32_t compute_major, compute_minor; /* its version, as in sluice_device_info */
  const char *kind_ending;              /* "": launches of every kind; "_bf16": launches whose kind has this suffix */
  double flops, memory_bandwidth;       /* operations and bytes per second */
} sluice_peak;

/* The target of a session. */
typedef struct sluice_target_info {
  uint32_t struct_size;
  const char *device_type; /* "cpu" */
  const char *cpu;         /* the full name of the CPU */
  uint32_t vector_bits;    /* of host code */
  /* The instruction set extensions of host code, such as "avx2,fma", all of which it requires. NULL: there is no host
   * code. Backends with equal extensions give equal bits. */
  const char *instructions;
  /* Nonzero: prepare, cost and lower_kernels give the results of a session of the host with the same options. */
  int host_kernels;
  /* Since 2.4. */
  const char *no_tree_sums; /* why the collectives of the run half refuse SLUICE_TREE_SUM; NULL: accepted, or unknown */
  /* Since 2.6: the peaks of the architectures that code is compiled for, if known. Each architecture has exactly one
   * entry with the kind_ending "". A device uses the entries of its version, or the slowest ones if there are none. */
  const sluice_peak *peaks;
  size_t num_peaks, peak_size; /* peak_size: of an element, set by the backend */
  /* Since 2.7: the alignment of buffers on its devices in bytes, a power of two from 64 to 4096; 0: 64. The run half
   * must allocate with this alignment, and reports it in sluice_device_info. */
  size_t alignment;
  /* Since 2.8: what else of the CPU the code of kernels depends on, such as the sizes of its caches. NULL: nothing. */
  const char *tuning;
} sluice_target_info;

/* Element `number` of `peaks`. */
static inline const sluice_peak *sluice_target_peak_at(const sluice_target_info *target, size_t number) {
  return (const sluice_peak *)((const char *)target->peaks + number * target->peak_size);
}

/* The part of a logical dimension that a physical dimension is: all of it, the tile's number, or the position in the
 * tile. */
typedef enum sluice_layout_part { SLUICE_LAYOUT_WHOLE = 0, SLUICE_LAYOUT_TILE_NUMBER = 1, SLUICE_LAYOUT_PLACE_IN_TILE = 2 } sluice_layout_part;

/* One physical dimension of a layout; this struct will not grow. A layout has each logical dimension once: whole, or as
 * a tile number and a position in the tile, both with the same tile size. */
typedef struct sluice_layout_dim {
  uint32_t dimension;      /* the logical dimension, from 0 */
  sluice_layout_part part;
  int64_t tile;            /* elements of a tile, 2 to 65536; 0 for a whole dimension */
} sluice_layout_dim;

/* A tensor type. */
typedef struct sluice_type_view {
  sluice_dtype dtype;
  const int64_t *shape;    /* logical sizes, outermost first; -1 is the batch dimension */
  size_t rank;             /* the number of sizes */
  const sluice_layout_dim *layout; /* physical dimensions, outermost first */
  size_t num_layout;       /* 0: row-major */
} sluice_type_view;

/* The member of sluice_attribute_view that holds the value. */
typedef enum sluice_attribute_kind {
  SLUICE_ATTRIBUTE_INTEGERS = 0,
  SLUICE_ATTRIBUTE_REALS = 1,
  SLUICE_ATTRIBUTE_WORD = 2,
  SLUICE_ATTRIBUTE_TYPE = 3
} sluice_attribute_kind;

/* An attribute of an op. It is a list of integers or reals, with one element for a scalar; booleans are 0 and 1, and
 * the size of the batch dimension is -1. Or it is a word: an enumerator of the op, a name, or the equation of a
 * product. Or it is a type: its dtype, and its sizes as integers, none for an element type. Members of other kinds are
 * 0. */
typedef struct sluice_attribute_view {
  const char *name;            /* as in the reference of ops */
  sluice_attribute_kind kind;
  const int64_t *integers;     /* INTEGERS, and the sizes of TYPE */
  const double *reals;         /* REALS */
  size_t count;                /* the number of integers or reals */
  const char *word;            /* WORD */
  sluice_dtype dtype;          /* TYPE */
} sluice_attribute_view;

/* One op of a kernel. Values have numbers: first the operands of the kernel, then the results of its ops in order. */
typedef struct sluice_op_view {
  const char *name;        /* "sluice.add" */
  const size_t *operands;  /* value numbers */
  size_t num_operands;
  size_t num_results;      /* their values have the next numbers */
  const sluice_attribute_view *attributes; /* in any order */
  size_t num_attributes, attribute_size;   /* attribute_size: of an element */
  void *operation;         /* mlir::Operation * of the op: see sluice_kernel_view */
} sluice_op_view;

/* One launch: a sluice.kernel. A query about a single op passes a kernel of this op. */
typedef struct sluice_kernel_view {
  uint32_t struct_size;
  /* For messages, traces and files. It consists of letters, digits, '_' and '-'. A session prepares one kernel of this
   * name. */
  const char *name;
  const char *bytecode;    /* MLIR bytecode of the kernel, if the backend sets wants_bytecode; otherwise NULL */
  size_t bytecode_size;    /* bytes */
  void *operation;         /* mlir::Operation * of the kernel or of a single op; NULL for several ops. Only a backend
                            * whose native_abi equals the compiler's may dereference it. Others pass the view on
                            * unchanged, to a session of services->host */
  const sluice_type_view *values; /* by value number */
  size_t num_values, value_size;  /* value_size: of an element */
  size_t num_operands;            /* of the kernel */
  const sluice_op_view *ops;      /* in an order in which they can run */
  size_t num_ops, op_size;        /* op_size: of an element */
  const size_t *results;   /* value numbers that the kernel returns */
  size_t num_results;
  /* Since 2.8: for a kernel that lower_kernels will lower, the prefix of its symbols; otherwise NULL. It consists of
   * letters, digits and '_'. Kernels with one symbol are equal except in names, in all programs, and are prepared by
   * one backend for equal targets. A session prepares one kernel of this symbol. */
  const char *symbol;
} sluice_kernel_view;

/* Elements of the arrays of a view, whose structs may have more or fewer members than in these headers. */
static inline const sluice_type_view *sluice_kernel_value_at(const sluice_kernel_view *kernel, size_t number) {
  return (const sluice_type_view *)((const char *)kernel->values + number * kernel->value_size);
}
static inline const sluice_op_view *sluice_kernel_op_at(const sluice_kernel_view *kernel, size_t number) {
  return (const sluice_op_view *)((const char *)kernel->ops + number * kernel->op_size);
}
static inline const sluice_attribute_view *sluice_op_attribute_at(const sluice_op_view *op, size_t number) {
  return (const sluice_attribute_view *)((const char *)op->attributes + number * op->attribute_size);
}

/* The layout that a backend prefers for an operand or result. */
typedef struct sluice_layout_proposal {
  uint32_t struct_size;
  int cares;               /* 0 (the compiler's value): any layout, and the other members are ignored */
  int required;            /* no other layout works; the positions of dimensions of size 1 are ignored */
  const sluice_layout_dim *layout; /* as in sluice_type_view */
  size_t num_layout;
} sluice_layout_proposal;

/* One parallel stage of host code. */
typedef struct sluice_stage_info {
  const char *symbol;      /* of the function in the object that lower returns */
  int64_t tasks;           /* the number of tasks, or a factor of it: see rows_per_task */
  int64_t rows_per_task;   /* the number is tasks * ceil(rows / rows_per_task); 0: `tasks` for any number of rows */
} sluice_stage_info;

/* The work of a launch; this struct will not grow. */
typedef struct sluice_cost {
  int64_t flops, flops_per_row; /* twice the multiply-adds of products and convolutions: fixed part, and per row */
  int64_t bytes, bytes_per_row; /* the least traffic: operands and results once */
  double lanes;                 /* the share of vector lanes that the shape can fill, from 0 to 1 */
} sluice_cost;

/* How a kernel is launched: as host code in stages, or as a function of the blob or of the run half. Its buffers are
 * operands, results and, if workspace_bytes is not 0, workspace. */
typedef struct sluice_launch_info {
  uint32_t struct_size;
  const sluice_stage_info *stages; /* of host code, which run one after another */
  size_t num_stages, stage_size; /* stage_size: of an element, set by the backend */
  int64_t workspace_bytes; /* of each launch */
  sluice_cost cost;        /* of a launch */
  const char *function;    /* NULL for host code */
  const void *parameters;  /* passed to the run half at each launch; at most 64 KiB */
  size_t parameters_bytes; /* their size */
} sluice_launch_info;

/* Element `number` of `stages`. */
static inline const sluice_stage_info *sluice_launch_info_stage_at(const sluice_launch_info *launch, size_t number) {
  return (const sluice_stage_info *)((const char *)launch->stages + number * launch->stage_size);
}

/* The estimated cost of a launch before it is compiled. The compiler fills it from the semantics of the ops; a backend
 * overwrites better estimates. */
typedef struct sluice_cost_estimate {
  uint32_t struct_size;
  sluice_cost work;        /* lanes is 1 */
  const char *kind;        /* "conv2d": launches of a kind reach similar shares of the peak; key of measured rates */
} sluice_cost_estimate;

/* The form of the code that lower returns. */
typedef enum sluice_blob_kind {
  SLUICE_BLOB_NONE = 0,        /* no code */
  SLUICE_BLOB_HOST_OBJECT = 1, /* an ELF object or archive with the symbols of the stages; linked into the artifact */
  SLUICE_BLOB_DEVICE = 2       /* device code that the run half loads as a module */
} sluice_blob_kind;

/* The resources of a function of device code, as reported by its compiler. Numbers are not negative. */
typedef struct sluice_function_needs {
  const char *function;   /* its name in the code; names of a launch begin with the function of the launch */
  const char *target;     /* its architecture: "sm_90" */
  int64_t registers;      /* per thread */
  int64_t spilled_bytes;  /* per thread, of register spills */
  int64_t stack_bytes;    /* per thread, of local memory */
  int64_t shared_bytes;   /* per block */
} sluice_function_needs;

/* The code of kernels, owned by the session. */
typedef struct sluice_blob {
  uint32_t struct_size;
  sluice_blob_kind kind;
  const void *data;
  size_t bytes; /* of data */

  /* Since 2.2: resources of functions, for reports. NULL: unknown. */
  const sluice_function_needs *functions;
  size_t num_functions, function_size; /* function_size: of an element, set by the backend */
} sluice_blob;

/* Element `number` of `functions`. */
static inline const sluice_function_needs *sluice_blob_function_at(const sluice_blob *blob, size_t number) {
  return (const sluice_function_needs *)((const char *)blob->functions + number * blob->function_size);
}

typedef struct sluice_session sluice_session; /* the compilation of one model for one target */

/* The table of a compile half. */
struct sluice_backend_compile {
  uint32_t struct_size;                  /* sizeof(sluice_backend_compile) */
  uint32_t major_version, minor_version; /* as in sluice_backend */
  const char *name;                      /* as in sluice_backend */
  const char *native_abi;  /* the MLIR version that it was built with; NULL for a backend without MLIR */
  int wants_bytecode;      /* nonzero: kernel views have bytecode */

  /* Begins a session. On failure *session may be set, for last_error; then end it. */
  sluice_status (*begin)(const sluice_target_options *options, sluice_session **session);
  /* Ends a session and frees its results. */
  void (*end)(sluice_session *session);
  /* The reason of the last failure of the session. */
  const char *(*last_error)(sluice_session *session);
  /* Describes the target. */
  sluice_status (*describe)(sluice_session *session, sluice_target_info *info);

  /* SLUICE_OK if the backend can run this op; otherwise an error, with the reason in last_error. Required. If the
   * backend refuses an op that has a formula of other ops, such as a grouped convolution, the formula replaces the op.
   * Exception: if the `instructions` of the backend equal the host's, it replaces the op if and only if the host does,
   * because a kernel and its formula may differ in bits. */
  sluice_status (*supports)(sluice_session *session, const sluice_kernel_view *op);

  /* The preferred layout of operand or result `number` of an op. It is called twice for every op: before types have
   * layouts, and with the chosen layouts. The second time, the backend sets `required` if it cannot compile the op with
   * these types. The compiler then inserts a `sluice.relayout`, if supports accepts one, so that prepare receives
   * accepted layouts only. Absent: row-major is required for all values on the backend's devices. */
  sluice_status (*propose_layout)(sluice_session *session, const sluice_kernel_view *op, int is_result, unsigned number, sluice_layout_proposal *proposal);

  /* Describes the launch of a kernel. Lowering must not exceed its workspace. Code generation can wait for lower:
   * kernels are also prepared for plans that are compared and discarded. */
  sluice_status (*prepare)(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch);

  /* Returns the code of all prepared kernels. Absent: there is none. */
  sluice_status (*lower)(sluice_session *session, sluice_blob *blob);

  /* Sets *fuses to whether the last op of the view may join the ops before it in one launch. The compiler sets no other
   * limit: it proposes products, reductions, results of several sizes and any number of ops. The results of the view
   * are the values with consumers outside. An op that only moves elements and is no result may also be in other
   * launches. Ops of a launch are on one device, and no path leaves the launch and returns. Absent: every op is a
   * separate launch. */
  sluice_status (*can_fuse)(sluice_session *session, const sluice_kernel_view *kernel, int *fuses);

  /* Estimates the cost of the ops as one launch, before types have layouts. Absent: the compiler's estimate. */
  sluice_status (*cost)(sluice_session *session, const sluice_kernel_view *kernel, sluice_cost_estimate *estimate);

  /* Since 2.8: returns the code of single kernels, which the compiler may also use in other sessions. `symbols` has the
   * symbols of prepared kernels; *blobs[i] receives the code of kernel i: an ELF object for the host, or nothing. A
   * kernel is lowered once. Its code gives the same bits as that of `lower`.
   *
   * A kernel's launch and code depend on its view except `name`, on the options of the session and on the backend, not
   * on other kernels: a lowering of the same kernel in another session returns the same bytes. The stages and all other
   * global symbols of the object begin with the kernel's symbol. The object refers to no other kernel.
   *
   * Absent: `lower` returns all code, and no code is reused in other sessions. */
  sluice_status (*lower_kernels)(sluice_session *session, const char *const *symbols, size_t count,
                                 sluice_blob *const *blobs);
};

#ifdef __cplusplus
}
#endif
