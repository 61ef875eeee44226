/* The run half of the backend ABI: devices, memory, queues, copies and launches, for the runtime in an executable.
 *
 * Queues. A queue runs its work in order. Events synchronize queues: an event is recorded in one queue, and other
 * queues or the host wait for it. Every call that takes a queue may return before its work is done.
 *
 * Threads. One thread at a time uses a context and everything that belongs to it.
 *
 * Memory. A device address may be accessed only by work of the backend, unless the device is host_accessible.
 *
 * Lifetimes. Arguments (structs, arrays, names, parameters, device code) live until the call returns. The services, the
 * host memory of a copy and the functions of stages live until the work is done. Results of a backend (last_error,
 * names) live until the next call of the context. Queues, events, modules and memory live until they are destroyed:
 * queues first, and everything before the context.
 *
 * Rows. Buffers have room for the capacity of the kernel. A call has 0 to `capacity` rows. In operands, rows beyond
 * those of the call have any value, including NaN, and must not affect a result. In results they may be overwritten.
 * The padding of tiled layouts is zero before and after a kernel. A call with 0 rows is valid: a result without rows
 * then has the value of its op for no rows (a sum is 0).
 *
 * Sequences. Work that enters a queue between capture_begin and capture_end is not run but recorded in a sequence, with
 * its arguments, addresses and `rows`. A replay runs all of it, in order, as one piece of work of a queue. The contents
 * of memory are read at each replay, so that memory holds everything that changes between calls; `first_row` and
 * `global_rows` of a launch stay those of the capture. Launches, discards and copies within the device of the queue can
 * be captured. Other calls with the queue return SLUICE_USAGE: other copies, record, wait, signals, waiting for the
 * queue, a replay, another capture. Until capture_end, calls of the context for other queues may be refused and may
 * invalidate the capture. A call that fails ends the capture: nothing is recorded or run, and the queue is as before
 * capture_begin. Errors of the work itself are errors of each replay. Copies count at each replay. Memory and functions
 * of stages live as long as a sequence with them is replayed, and modules until it is destroyed. A sequence lives until
 * its replays are done, and not longer than its context.
 *
 * Groups. Contexts of one backend in one process may belong to a group, for example one context and one thread for each
 * program or replica. They have the same devices, clock and settings. Work of each may use memory that any of them
 * allocated; the allocating context releases it, after hosts have waited for that work in their contexts. Queues of each
 * may wait for events of any once `record` has returned. Only such events order the work of two contexts: a wait of one
 * host does not order work of another context. A call of one context may run work of all, with its own services. Errors
 * of work are returned to the context that waits for the work. While a context waits for work of another context, the
 * caller keeps the other one open.
 *
 * Signals. A queue reports its progress to queues of another backend by a number in host memory, without a wait of the
 * host: signal writes the number in queue order, and wait_for_signal waits until the number there is at least as large.
 * Numbers in one place only grow. They are 8-byte aligned, in memory of the waiting backend (host_allocate) that lives
 * as long as queues wait, and are accessed as atomics, also by the host. A backend has no information about the other
 * end of its signals. The caller therefore has three duties. It also orders work of one backend by events if signals
 * order it. Before it waits for a queue, it waits for all sources of the queue's signals. Errors do not cross signals,
 * and failed work may not write its number: the caller receives the error at the source and writes the number. A
 * backend may have one of the two calls without the other.
 *
 * Errors. A call that fails has no effect, and the context continues. Work that fails later returns its error from the
 * first call that then waits for it: for an event recorded after it, for its queue, or for a queue that waited for
 * either. Until then, later results are undefined, as are the results of the failed work. After that call, the queues
 * accept new work. After SLUICE_EXHAUSTED from a launch, a copy or a wait, the device is lost: only destroying and
 * closing is allowed. */
#pragma once

#include "sluice/backend/backend.h"
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_run sluice_run;       /* a context: all devices of a backend, for one instance */
typedef struct sluice_group sluice_group;   /* contexts of one process */
typedef struct sluice_queue sluice_queue;   /* work of a device, in order */
typedef struct sluice_event sluice_event;   /* a point in a queue */
typedef struct sluice_module sluice_module; /* loaded device code */
typedef struct sluice_sequence sluice_sequence; /* captured work */
typedef struct sluice_backend_collectives sluice_backend_collectives; /* collectives.h */

/* The rows of one call: [first_row, first_row + rows) of the `global_rows` of all replicas. */
typedef struct sluice_call {
  uint32_t struct_size;
  int64_t rows;
  int64_t first_row, global_rows;
} sluice_call;

/* One parallel stage of host code: sluice_stage_fn of sluice/runtime/artifact.h. It takes the rows, in a register,
 * instead of the call, because compiled loops use nothing else and each task would have to load it. */
typedef void (*sluice_host_stage)(void *const *buffers, int64_t rows, int64_t begin, int64_t end);

/* Services of the runtime for backends. */
typedef struct sluice_run_services {
  uint32_t struct_size;
  void *context; /* the first argument of each function */
  /* Runs the tasks [0, tasks) of `function` on the threads of the instance. Returns when all are done. */
  void (*parallel_for)(void *context, int64_t tasks, void (*function)(void *argument, int64_t begin, int64_t end), void *argument);
} sluice_run_services;

/* Options of a context. */
typedef struct sluice_run_options {
  uint32_t struct_size;
  const sluice_run_services *services; /* lives as long as the context */
  const char *settings;                /* "seed=7,link=12GB/s", the value of `--sim` for backend sim; "" for none */
  /* Since 2.2. */
  sluice_group *group;                 /* the group of the context; NULL: none */
} sluice_run_options;

/* A device. 0 means unknown unless a comment defines it otherwise. */
typedef struct sluice_device_info {
  uint32_t struct_size;
  const char *name;                     /* "Virtual accelerator 0" */
  int64_t memory_bytes, free_bytes;     /* in all, and free now */
  int32_t cores;                        /* processor cores, or multiprocessors of a GPU */
  double clock_hz, peak_flops, memory_bandwidth; /* f32 operations and bytes per second */
  int host_accessible;                  /* nonzero: the host may access its memory by address */
  double link_bandwidth, link_latency;  /* of copies from and to the host: bytes per second, seconds */
  /* Since 2.1. */
  size_t alignment;                     /* of allocated addresses, in bytes; 0: 64 */
  int32_t compute_major, compute_minor; /* the version of the architecture; 0: none */
  /* Since 2.4. */
  const char *identity;                 /* equal in all processes and unique among all machines; NULL: unknown */
} sluice_device_info;

/* The link from one device to another of the same backend. */
typedef struct sluice_peer_link {
  uint32_t struct_size;
  int direct;                /* nonzero: copies do not pass through the host */
  double bandwidth, latency; /* bytes per second, seconds; 0: unknown */
} sluice_peer_link;

/* Whether the creator's version of a struct has a member. */
#define SLUICE_HAS_MEMBER(type, pointer, member) ((pointer)->struct_size >= offsetof(type, member) + sizeof((pointer)->member))

/* The ordinal of the host in copies and queues. */
#define SLUICE_HOST (-1)

/* The expected work of a queue. It is a hint: queues of every kind accept all work. */
typedef enum sluice_queue_kind {
  SLUICE_QUEUE_COMPUTE = 0,
  SLUICE_QUEUE_COPY = 1,
  SLUICE_QUEUE_COMMUNICATION = 2 /* since 2.1 */
} sluice_queue_kind;
/* The access of a launch to a buffer. */
typedef enum sluice_access { SLUICE_READ = 0, SLUICE_WRITE = 1, SLUICE_READ_WRITE = 2 } sluice_access;

/* A copy of contiguous bytes. */
typedef struct sluice_copy {
  uint32_t struct_size;
  int32_t from_device, to_device; /* ordinals or SLUICE_HOST; they may be equal */
  const void *from;
  void *to;
  size_t bytes;                   /* may be 0; then the addresses may be NULL */
  const char *label;              /* for traces: "relu_2, lenet.cpp:12:9" */
} sluice_copy;

/* An operand, result or workspace of a launch, without its address. */
typedef struct sluice_buffer {
  size_t bytes;         /* of the whole buffer, for any number of rows */
  sluice_access access;
} sluice_buffer;

/* One stage of a launch of host code. */
typedef struct sluice_launch_stage {
  sluice_host_stage function; /* called for ranges of tasks, on any threads */
  int64_t tasks;              /* of this call */
} sluice_launch_stage;

/* One launch of a kernel: host code (num_stages > 0), or `function` of a module or of the backend. */
typedef struct sluice_launch {
  uint32_t struct_size;
  const sluice_call *call;    /* the rows */
  void *const *addresses;     /* of the buffers: operands, results, workspace */
  const sluice_launch_stage *stages; /* run one after another */
  size_t num_stages, stage_size;     /* stage_size: of an element */
  sluice_module *module;      /* NULL: a function of the backend */
  const char *function;       /* NULL for host code */
  const void *parameters;     /* those of sluice_launch_info */
  size_t parameters_bytes;    /* their size */
  const char *name;           /* of the kernel, for traces and messages */
  const char *kind;           /* as in sluice_cost_estimate */
  const sluice_buffer *buffers;
  size_t num_buffers, buffer_size; /* buffer_size: of an element */
  double flops, bytes;        /* of this call, from the cost in the plan */
} sluice_launch;

/* Elements of the arrays of a launch, whose structs may have more or fewer members than in these headers. */
static inline const sluice_buffer *sluice_launch_buffer_at(const sluice_launch *launch, size_t number) {
  return (const sluice_buffer *)((const char *)launch->buffers + number * launch->buffer_size);
}
static inline const sluice_launch_stage *sluice_launch_stage_at(const sluice_launch *launch, size_t number) {
  return (const sluice_launch_stage *)((const char *)launch->stages + number * launch->stage_size);
}

/* The copies between one pair of devices since the context was opened. */
typedef struct sluice_copy_count {
  int32_t from_device, to_device;
  int64_t copies, bytes;
} sluice_copy_count;

/* Stores element `number` of an array of the caller whose elements have `count_size` bytes. */
static inline void sluice_copy_count_set(sluice_copy_count *counts, size_t count_size, size_t number, const sluice_copy_count *count) {
  memcpy((char *)counts + number * count_size, count, count_size < sizeof *count ? count_size : sizeof *count);
}

/* The table of a run half. Errors are as described above, with the reason in last_error. */
struct sluice_backend_run {
  uint32_t struct_size;                  /* sizeof(sluice_backend_run) */
  uint32_t major_version, minor_version; /* as in sluice_backend */

  /* Opens a context. On failure *context may be set, for last_error; then close it. */
  sluice_status (*open)(const sluice_run_options *options, sluice_run **context);
  /* Closes a context, after everything in it was destroyed. */
  void (*close)(sluice_run *context);
  /* The reason of the context's last failure; valid until its next call. */
  const char *(*last_error)(sluice_run *context);

  /* The number of devices, and one of them; ordinals are from 0. */
  sluice_status (*device_count)(sluice_run *context, int32_t *count);
  sluice_status (*device_info)(sluice_run *context, int32_t device, sluice_device_info *info);

  /* Allocates zeroed memory, aligned to the device's `alignment`, and releases it. After SLUICE_EXHAUSTED, last_error
   * has the device and the requested and free bytes. */
  sluice_status (*allocate)(sluice_run *context, int32_t device, size_t bytes, void **address);
  sluice_status (*release)(sluice_run *context, int32_t device, void *address);

  /* Creates a queue of a device; `name` is for traces. */
  sluice_status (*queue_create)(sluice_run *context, int32_t device, sluice_queue_kind kind, const char *name, sluice_queue **queue);
  /* Destroys a queue. Work that is not done may be dropped: wait for it first. */
  void (*queue_destroy)(sluice_queue *queue);
  /* Creates and destroys an event. */
  sluice_status (*event_create)(sluice_run *context, sluice_event **event);
  void (*event_destroy)(sluice_event *event);
  /* The event is done when all work that is now in the queue is done. Recording it again moves it to the queue's new
   * end. */
  sluice_status (*record)(sluice_queue *queue, sluice_event *event);
  /* Later work of the queue starts when the event, as recorded last, is done. */
  sluice_status (*wait)(sluice_queue *queue, sluice_event *event);
  /* Wait on the host for an event, or for all work of a queue. An event that was never recorded is done. */
  sluice_status (*synchronize)(sluice_event *event);
  sluice_status (*synchronize_queue)(sluice_queue *queue);

  /* Put a copy or a launch into a queue. */
  sluice_status (*copy)(sluice_queue *queue, const sluice_copy *copy);
  sluice_status (*launch)(sluice_queue *queue, const sluice_launch *launch);

  /* All later functions may be NULL. */

  /* Load and unload a blob of device code. */
  sluice_status (*module_load)(sluice_run *context, int32_t device, const void *blob, size_t bytes, sluice_module **module);
  void (*module_unload)(sluice_module *module);
  /* No work after this place in the queue reads these bytes. A debugging backend overwrites them. */
  sluice_status (*discard)(sluice_queue *queue, void *address, size_t bytes);
  /* Stores at most `capacity` counts of `count_size` bytes each, and sets *count to the number that exist. */
  sluice_status (*copy_counts)(sluice_run *context, sluice_copy_count *counts, size_t count_size, size_t capacity, size_t *count);
  /* Start and end, in seconds of the backend's clock, of the last work before `event` was recorded. The event must be
   * done and have times (note_times). Times of one device compare exactly; of several devices, as well as their clocks
   * agree. */
  sluice_status (*event_times)(sluice_event *event, double *start, double *end);
  /* Nonzero: the backend also accepts launches and copies of the host, in queues of device SLUICE_HOST. Only the
   * backend of the host and a backend that simulates it (sim) do. */
  int takes_host_queues;
  /* Nonzero: each call returns after its work is done, with the work's errors, so that its queues need no events. */
  int immediate;
  /* Exchanges among ranks; NULL before 2.2. */
  const sluice_backend_collectives *collectives;

  /* Since 2.1; each may be NULL. */

  /* Sequences (see above): all four or none. */
  sluice_status (*capture_begin)(sluice_queue *queue);
  sluice_status (*capture_end)(sluice_queue *queue, sluice_sequence **sequence);
  /* Replays in any queue of the device on which the sequence was captured. */
  sluice_status (*replay)(sluice_queue *queue, sluice_sequence *sequence);
  /* Destroys a sequence, after its replays are done. */
  void (*sequence_destroy)(sluice_sequence *sequence);

  /* Allocate and release zeroed host memory, aligned to 64 bytes, that copies access without staging, so that they need
   * not block the caller. Both or neither. Release it after all work that uses it, and before the context is closed. */
  sluice_status (*host_allocate)(sluice_run *context, size_t bytes, void **address);
  sluice_status (*host_release)(sluice_run *context, void *address);

  /* Sets *done to whether the event is done, without waiting. Repeated calls eventually report that it is done. The
   * result for a done event is that of synchronize. */
  sluice_status (*query)(sluice_event *event, int *done);
  /* synchronize for at most `seconds` of the host's clock; then SLUICE_DEADLINE, and the work continues. */
  sluice_status (*synchronize_until)(sluice_event *event, double seconds);

  /* The link from one device to another. */
  sluice_status (*peer_link)(sluice_run *context, int32_t from_device, int32_t to_device, sluice_peer_link *link);

  /* Since 2.2; each may be NULL. */

  /* Create and destroy a group (see above): both or neither. SLUICE_EXHAUSTED is the only error. Any thread may open
   * contexts in it and close them at any time. Destroy it after the last of them. */
  sluice_status (*group_create)(sluice_group **group);
  void (*group_destroy)(sluice_group *group);

  /* Since 2.5; requires event_times. NULL: all events have times. */

  /* Switches the recording of times of a queue, which may cost time; off at first. An event has times if the queue
   * recorded them without interruption from its last work to the event; for others, event_times returns SLUICE_USAGE. A
   * replay is one piece of work; captured work has no times. */
  sluice_status (*note_times)(sluice_queue *queue, int on);

  /* Since 2.7; each may be NULL. */

  /* Signals (see above). Writes `number` to `place` when all work that is now in the queue is done. */
  sluice_status (*signal)(sluice_queue *queue, uint64_t *place, uint64_t number);
  /* Later work of the queue starts when the number at `place` is at least `number`. Requires host_allocate.
   * SLUICE_UNSUPPORTED: this device never supports it. */
  sluice_status (*wait_for_signal)(sluice_queue *queue, const uint64_t *place, uint64_t number);
  /* Nonzero: work advances only during calls of this backend, and only synchronizing calls wait for work (sim). Only
   * queues of lazy backends may wait for its signals: while a call of another backend waits, nothing advances this
   * one. */
  int lazy;

  /* Since 2.8; each may be NULL. */

  /* Zeroes a whole allocation and returns when that is done; `address` is one that `allocate` returned. Hosts have
   * waited for all work that uses it, in any context of the group. All later work comes after this call. Without
   * `clear`, freed memory goes back to the driver. */
  sluice_status (*clear)(sluice_run *context, int32_t device, void *address);
  /* Called before a program uses memory of another program. Orders the context's later work after all work that hosts
   * of the group have waited for. For backends that detect races; others need nothing. */
  sluice_status (*acquire)(sluice_run *context);
};

#ifdef __cplusplus
}
#endif
