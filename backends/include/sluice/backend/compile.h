/* The compile half of the backend ABI: how the compiler asks a backend what it can do and has kernels made by it.
 *
 * The rules of backend.h hold.
 *
 * Lifetimes. What the compiler hands over (options, views, what these point to) lives until the call returns; of the options, the
 * table of the host lives on. What a backend hands back lives until its session ends, the text of last_error until the session's
 * next call. A session is used by one thread at a time.
 *
 * Errors. A call that fails says why by last_error, and what it filled in means nothing. The session goes on; only after prepare or
 * lower failed it is asked for last_error alone, and ended.
 *
 * Rows. A size of -1 is the batch dimension, in shapes and in attributes; a type has at most one. A kernel is made once, for
 * `capacity` rows, and launched with any number of them from none to that: what it owes then is said in run.h. */
#pragma once

#include "sluice/backend/backend.h"
#include "sluice/backend/dtypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the compiler offers to backends. */
typedef struct sluice_compile_services {
  uint32_t struct_size;
  const sluice_backend_compile *host; /* compiles kernels for the host's CPU; a backend may pass its views on to a session of it */
} sluice_compile_services;

typedef struct sluice_target_options {
  uint32_t struct_size;
  const char *cpu;        /* "native" or a CPU's name, with its caches if they are known: "haswell:l1=32K,l2=256K" */
  int64_t capacity;       /* rows that the batch dimension may have; 0 if the session is only to describe its target */
  const sluice_compile_services *services;
  /* Of the backend's own, as "arch=sm_90,dump=FOLDER"; "" for none. One that it does not know is SLUICE_USAGE, by name. What is
   * called `dump` names a folder, in which each of several lists of devices has one of its own. */
  const char *settings;
  /* Since 2.6. */
  const char *temporaries; /* a folder for what people read of lower's code, such as its source; it need not be there. NULL: none */
} sluice_target_options;

/* What devices of an architecture do at most, as their maker publishes it; of several such devices, the least of them. */
typedef struct sluice_peak {
  const char *architecture;             /* "sm_90": code is made for it alone with the setting "arch=sm_90" */
  int32_t compute_major, compute_minor; /* its version, as in sluice_device_info */
  const char *kind_ending;              /* "": of launches of every kind; "_bf16": of those whose kind ends so */
  double flops, memory_bandwidth;       /* operations and bytes a second */
} sluice_peak;

typedef struct sluice_target_info {
  uint32_t struct_size;
  const char *device_type; /* "cpu" */
  const char *cpu;         /* the CPU's name in full */
  uint32_t vector_bits;
  /* Extensions that host code uses, as "avx2,fma": it runs where all of them are. NULL: there is no host code. Backends that name
   * the same ones give the same bits. */
  const char *instructions;
  int host_kernels; /* nonzero: prepare and cost say what they would in a session of the host with the same options */
  /* Since 2.4. */
  const char *no_tree_sums; /* why the run half's collectives refuse SLUICE_TREE_SUM; NULL: they do not, or it is unknown */
  /* Since 2.6: of the architectures that code is made for, as far as they are known; each has one for every kind. A device counts
   * by its version, one that is not here as the slowest of them. */
  const sluice_peak *peaks;
  size_t num_peaks, peak_size; /* and the size of one, which the backend says */
  /* Since 2.7: bytes whose multiples buffers on its devices are to begin at, a power of two, 64 to 4096; 0: 64. What its run half
   * allocates begins at such, too, which the devices say in sluice_device_info. */
  size_t alignment;
} sluice_target_info;

static inline const sluice_peak *sluice_target_peak_at(const sluice_target_info *target, size_t number) {
  return (const sluice_peak *)((const char *)target->peaks + number * target->peak_size);
}

/* What a physical dimension is: a logical dimension whole, the number of its tile, or the place in the tile. */
typedef enum sluice_layout_part { SLUICE_LAYOUT_WHOLE = 0, SLUICE_LAYOUT_TILE_NUMBER = 1, SLUICE_LAYOUT_PLACE_IN_TILE = 2 } sluice_layout_part;

/* One physical dimension of a layout; this struct will not grow. In a layout each logical dimension is there once: whole, or as
 * the number of its tile and the place in it, of tiles of one size. */
typedef struct sluice_layout_dim {
  uint32_t dimension;      /* the logical one, from 0 */
  sluice_layout_part part;
  int64_t tile;            /* elements in a tile, 2 to 65536; 0 where the dimension is whole */
} sluice_layout_dim;

/* A tensor type. */
typedef struct sluice_type_view {
  sluice_dtype dtype;
  const int64_t *shape;    /* -1 is the batch dimension */
  size_t rank;
  const sluice_layout_dim *layout; /* physical dimensions, outermost first */
  size_t num_layout;       /* 0: row-major */
} sluice_type_view;

typedef enum sluice_attribute_kind {
  SLUICE_ATTRIBUTE_INTEGERS = 0,
  SLUICE_ATTRIBUTE_REALS = 1,
  SLUICE_ATTRIBUTE_WORD = 2,
  SLUICE_ATTRIBUTE_TYPE = 3
} sluice_attribute_kind;

/* An attribute of an op: a list of integers (booleans are 0 and 1, the size of the batch dimension -1) or of reals, one element
 * for a scalar; a word, one of those that the op knows, a name or the equation of a product; or a type: its dtype, and its sizes
 * as integers, none of them for a type of elements. Members of other kinds are 0. */
typedef struct sluice_attribute_view {
  const char *name;
  sluice_attribute_kind kind;
  const int64_t *integers;
  const double *reals;
  size_t count;            /* of integers or reals */
  const char *word;
  sluice_dtype dtype;
} sluice_attribute_view;

/* One op of a kernel. Values are numbered: the kernel's operands first, then the results of its ops in order. */
typedef struct sluice_op_view {
  const char *name;        /* "sluice.add" */
  const size_t *operands;
  size_t num_operands;
  size_t num_results;
  const sluice_attribute_view *attributes;
  size_t num_attributes, attribute_size; /* and the size of one */
  void *operation;         /* mlir::Operation * of the op: see the kernel's */
} sluice_op_view;

/* One launch as the compiler sees it: a sluice.kernel. When the backend is asked about a single op, a kernel of that op alone. */
typedef struct sluice_kernel_view {
  uint32_t struct_size;
  const char *name;
  const char *bytecode;    /* MLIR bytecode of the kernel, for backends that set wants_bytecode; NULL otherwise */
  size_t bytecode_size;
  void *operation;         /* mlir::Operation * of the kernel or of a single op, NULL of several: only a backend whose native_abi
                            * equals the compiler's may look into it; others hand the view on as it is, to a session of
                            * services->host */
  const sluice_type_view *values; /* one per value number */
  size_t num_values, value_size;  /* and the size of one */
  size_t num_operands;     /* of the kernel */
  const sluice_op_view *ops;
  size_t num_ops, op_size;        /* and the size of one */
  const size_t *results;   /* value numbers that the kernel yields */
  size_t num_results;
} sluice_kernel_view;

/* The elements of a view's arrays, which may have more members than these headers know, or fewer. */
static inline const sluice_type_view *sluice_kernel_value_at(const sluice_kernel_view *kernel, size_t number) {
  return (const sluice_type_view *)((const char *)kernel->values + number * kernel->value_size);
}
static inline const sluice_op_view *sluice_kernel_op_at(const sluice_kernel_view *kernel, size_t number) {
  return (const sluice_op_view *)((const char *)kernel->ops + number * kernel->op_size);
}
static inline const sluice_attribute_view *sluice_op_attribute_at(const sluice_op_view *op, size_t number) {
  return (const sluice_attribute_view *)((const char *)op->attributes + number * op->attribute_size);
}

/* The layout in which an operand or result is liked. */
typedef struct sluice_layout_proposal {
  uint32_t struct_size;
  int cares;               /* 0, as the compiler leaves it: any will do, and the rest means nothing */
  int required;            /* the op takes no other; one that differs only in where dimensions of size 1 stand is the same */
  const sluice_layout_dim *layout; /* as in sluice_type_view */
  size_t num_layout;
} sluice_layout_proposal;

/* One parallel stage of host code. */
typedef struct sluice_stage_info {
  const char *symbol;      /* of the function in the object that lower gives */
  int64_t tasks;
  int64_t rows_per_task;   /* tasks * ceil(rows / rows_per_task), none without rows; 0: tasks alone, whatever the rows */
} sluice_stage_info;

/* What a launch does; this struct will not grow. */
typedef struct sluice_cost {
  int64_t flops, flops_per_row; /* multiply-adds times two, of products and convolutions */
  int64_t bytes, bytes_per_row; /* that must move at least: operands and results once */
  double lanes;                 /* share of the vector lanes that the shape can fill */
} sluice_cost;

/* How a kernel is launched: as host code in stages, or as a function of the blob or of the backend's own run half. Its buffers
 * are operands, results and, if it asked for one, workspace. */
typedef struct sluice_launch_info {
  uint32_t struct_size;
  const sluice_stage_info *stages;
  size_t num_stages, stage_size; /* and the size of one, which the backend says */
  int64_t workspace_bytes;
  sluice_cost cost;
  const char *function;    /* NULL for host code */
  const void *parameters;  /* handed to the run half at each launch; at most 64 KiB */
  size_t parameters_bytes;
} sluice_launch_info;

static inline const sluice_stage_info *sluice_launch_info_stage_at(const sluice_launch_info *launch, size_t number) {
  return (const sluice_stage_info *)((const char *)launch->stages + number * launch->stage_size);
}

/* What a launch would cost, before anything is made. The compiler fills in what it knows from the ops' meaning; a backend
 * overwrites what it knows better. */
typedef struct sluice_cost_estimate {
  uint32_t struct_size;
  sluice_cost work;        /* lanes is 1 */
  const char *kind;        /* "conv2d": launches of a kind reach a like share of the peak, and measured rates are kept by kind */
} sluice_cost_estimate;

typedef enum sluice_blob_kind {
  SLUICE_BLOB_NONE = 0,
  SLUICE_BLOB_HOST_OBJECT = 1, /* an ELF object, or an archive of several, with the stages' symbols; it is linked into the artifact */
  SLUICE_BLOB_DEVICE = 2       /* device code that the run half loads as a module */
} sluice_blob_kind;

/* What a function of device code needs of a device, as whatever compiled it says. Numbers are not negative. */
typedef struct sluice_function_needs {
  const char *function;   /* its name in the code: those of a launch begin with the launch's function */
  const char *target;     /* what it was compiled for: "sm_90" */
  int64_t registers;      /* of a thread */
  int64_t spilled_bytes;  /* that a thread stores and loads because registers do not hold them */
  int64_t stack_bytes;    /* of a thread's own memory */
  int64_t shared_bytes;   /* of a block's threads, together */
} sluice_function_needs;

typedef struct sluice_blob {
  uint32_t struct_size;
  sluice_blob_kind kind;
  const void *data;
  size_t bytes;

  /* Since 2.2: for people, who read it in reports. NULL: nothing is known. */
  const sluice_function_needs *functions;
  size_t num_functions, function_size; /* and the size of one, which the backend says */
} sluice_blob;

static inline const sluice_function_needs *sluice_blob_function_at(const sluice_blob *blob, size_t number) {
  return (const sluice_function_needs *)((const char *)blob->functions + number * blob->function_size);
}

typedef struct sluice_session sluice_session;

struct sluice_backend_compile {
  uint32_t struct_size;
  uint32_t major_version, minor_version;
  const char *name;
  const char *native_abi;  /* the MLIR that it was built with, or NULL for a backend without MLIR */
  int wants_bytecode;

  /* A session, for one target. On failure *session may still be set, for last_error; end it. */
  sluice_status (*begin)(const sluice_target_options *options, sluice_session **session);
  void (*end)(sluice_session *session);
  const char *(*last_error)(sluice_session *session);
  sluice_status (*describe)(sluice_session *session, sluice_target_info *info);

  /* Whether the backend can run this op at all; last_error gives the reason if not. An op that is a formula of others, such as a
   * convolution in groups, becomes that formula where there is no kernel for it; where the instructions are the host's, the host decides
   * which of the two it is. */
  sluice_status (*supports)(sluice_session *session, const sluice_kernel_view *op);

  /* The layout in which the op likes operand or result `number` best. Ops of all kinds are asked twice: while types have no
   * layouts yet, and again with those that were agreed on, where `required` is set if the op cannot be made as its types say; the
   * compiler then lays the value out anew, with a `sluice.relayout` where supports takes one, so that prepare only sees what was
   * agreed on. Absent: row-major is required everywhere, and nothing on the backend's devices has another layout. */
  sluice_status (*propose_layout)(sluice_session *session, const sluice_kernel_view *op, int is_result, unsigned number, sluice_layout_proposal *proposal);

  /* Says how to launch the kernel, and with what workspace, which lowering may not exceed. Code can wait for lower: kernels are
   * prepared for plans too that are compared and thrown away. */
  sluice_status (*prepare)(sluice_session *session, const sluice_kernel_view *kernel, sluice_launch_info *launch);

  /* The code of all prepared kernels. Absent: there is none. */
  sluice_status (*lower)(sluice_session *session, sluice_blob *blob);

  /* Whether the last op of the view may join those before it, which may share a launch already. Nothing else limits what is put
   * into one: products, reductions, results of several sizes and any number of ops are asked for. Results of the view are what
   * anything outside reads; an op that only moves elements, and whose result is none, may be in other launches too. Ops of one
   * launch live on one device, and no path leaves them and comes back. Absent: every op is a launch of its own. */
  sluice_status (*can_fuse)(sluice_session *session, const sluice_kernel_view *kernel, int *fuses);

  /* What the ops of the view would cost as one launch; types have no layouts yet. Absent: the compiler's estimate stands. */
  sluice_status (*cost)(sluice_session *session, const sluice_kernel_view *kernel, sluice_cost_estimate *estimate);
};

#ifdef __cplusplus
}
#endif
