/* The run half of the backend ABI: devices, memory, queues, copies and launches, for the runtime in an executable.
 *
 * Work is put into queues. A queue does its work in order; queues are independent but for events: an event is recorded in one
 * queue and waited for in others or by the host. Everything that takes a queue may return before the work is done. A context is
 * used by one thread at a time.
 *
 * Device memory is a plain address that only the backend's own work may touch, unless its info says host_accessible.
 *
 * Lifetimes. What a call is given lives until it returns: structs, arrays, names, parameters, device code. Longer live only the
 * services, the host's memory of a copy and the functions of stages: until the work is done. What a backend gives (last_error,
 * names) lives until the context's next call; queues, events, modules and memory until they are destroyed, the queues first,
 * all of it before the context.
 *
 * Rows. Buffers have room for the capacity that the kernel was compiled for; a call has its own number of rows, from none to the
 * capacity. In operands, rows beyond those of the call hold anything, not-a-number too, and must not matter; in results they may
 * be left as they are or overwritten; what pads the tiles of a layout is zero before and after. A call without rows is a call
 * like any other: a result that has no rows is then what its op makes of none (a sum is 0).
 *
 * Sequences. What is put into a queue from capture_begin to capture_end is not done but kept as a sequence, with its arguments,
 * addresses and `rows` as they are then; each replay does all of it, in its order, as one piece of work of the queue. What lies at the
 * addresses is read when it is done: all else that changes from call to call lies in memory. The `first_row` and `global_rows` that a
 * kept launch was called with are those of the call in which it was kept, whichever call a replay is for. Launches, discards and copies within the queue's own device can be kept. All else that takes
 * the queue is refused with SLUICE_USAGE: other copies, record, wait, signals, waiting for the queue, a replay, another
 * capture. Until capture_end the context is called for this queue alone; any other call may be refused, and may spoil the
 * capture. A call that fails within a capture ends it: nothing was put into the queue or kept, and the queue goes on as it was
 * before capture_begin. What cannot be known until work is done is an error of each replay. Copies count at each replay, and
 * not when they are kept. Memory and functions of stages live as long as a sequence that names them is replayed, modules until
 * it is destroyed, and a sequence until its replays are done, and not longer than its context.
 *
 * Groups. Contexts of one backend in one process may be opened into a group: one for each replica, say, each used by a thread of its
 * own. They see the same devices and have the same clock and the same settings. Work of each may use memory that any of them allocated,
 * and queues of each may wait for events of any, once `record` has returned. Work of one is ordered with work of another by such
 * events alone: what one context's host has waited for is known to no other. A call of one may do work of all, with its own services;
 * an error of work surfaces as below, in the context that waits. Whoever waits for what another context's queues do keeps that
 * context open until it is done.
 *
 * Signals. A queue tells queues of another backend how far it has come by a number in the host's memory, so that no host waits in
 * between: signal writes the number in its place in the queue, and a queue that waits for it goes on once there is as large a
 * one, or a larger. In one place numbers only grow. They lie at multiples of 8 bytes in memory that the waiting backend gave
 * (host_allocate) for as long as queues wait for them, and are written and read as atomics, by the host too. A backend is not
 * told what its signals wait for, or lead to, elsewhere, so whoever joins two backends does three things for them. Work of one
 * that is ordered with other work of the same one by signals is ordered so by events as well. Who is to wait for a queue first
 * waits for all that the queue's signals come from, since nobody else may. And as errors do not cross, and work that failed may
 * leave its number unwritten, he is told them there, and then writes the number himself. A backend can do either of the two
 * calls without the other.
 *
 * Errors. A call that fails has put nothing into the queue and changed nothing, and the context goes on. Work that fails later
 * makes its error the result of the first call that then waits for it: for an event recorded behind it, for its queue, or for a
 * queue that waited for either. Until then nothing that lies behind the work may be trusted, and what the work was to write holds
 * anything; once the error was told, the queues go on with new work. After SLUICE_EXHAUSTED from a launch, a copy or a wait the
 * device is lost: all that may be done is to destroy and to close. */
#pragma once

#include "sluice/backend/backend.h"
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_run sluice_run;       /* a context: all devices of one backend in one instance */
typedef struct sluice_group sluice_group;   /* of contexts */
typedef struct sluice_queue sluice_queue;
typedef struct sluice_event sluice_event;
typedef struct sluice_module sluice_module; /* a blob of device code, loaded */
typedef struct sluice_sequence sluice_sequence; /* work that was kept, to be replayed */
typedef struct sluice_backend_collectives sluice_backend_collectives; /* collectives.h */

/* The rows of one call. All replicas together have `global_rows`, of which these are `first_row` and those after it. */
typedef struct sluice_call {
  uint32_t struct_size;
  int64_t rows;
  int64_t first_row, global_rows;
} sluice_call;

/* One parallel stage of a kernel that was compiled for the host: as in sluice/runtime/artifact.h. It takes the rows alone, in a
 * register, and not the call: compiled loops use nothing else, and each task would have to load it. */
typedef void (*sluice_host_stage)(void *const *buffers, int64_t rows, int64_t begin, int64_t end);

/* What the runtime offers to backends. */
typedef struct sluice_run_services {
  uint32_t struct_size;
  void *context;
  /* Runs the tasks [0, tasks) of `function` on the instance's threads and returns when all are done. */
  void (*parallel_for)(void *context, int64_t tasks, void (*function)(void *argument, int64_t begin, int64_t end), void *argument);
} sluice_run_services;

typedef struct sluice_run_options {
  uint32_t struct_size;
  const sluice_run_services *services; /* lives as long as the context */
  const char *settings;                /* "seed=7,link=12GB/s" of `--sim` for the backend sim, and so on; "" for none */
  /* Since 2.2. */
  sluice_group *group;                 /* that the context belongs to; NULL: to none */
} sluice_run_options;

typedef struct sluice_device_info {
  uint32_t struct_size;
  const char *name;                     /* "Virtual accelerator 0" */
  int64_t memory_bytes, free_bytes;
  int32_t cores;                        /* 0: unknown, as in the rest */
  double clock_hz, peak_flops, memory_bandwidth; /* f32 operations and bytes a second */
  int host_accessible;                  /* the host may read and write its memory by address */
  double link_bandwidth, link_latency;  /* of copies from and to the host: bytes a second, seconds; 0: unknown */
  /* Since 2.1. */
  size_t alignment;                     /* bytes whose multiples kernels and copies like addresses to be; 0: 64 */
  int32_t compute_major, compute_minor; /* the architecture's version, where its code has them; 0: none */
  /* Since 2.4. */
  const char *identity;                 /* the same in all processes, and of no other device of any machine; NULL: unknown */
} sluice_device_info;

/* Copies from one device to another of the same backend. */
typedef struct sluice_peer_link {
  uint32_t struct_size;
  int direct;                /* they do not go through the host */
  double bandwidth, latency; /* bytes a second, seconds; 0: unknown */
} sluice_peer_link;

/* Whether a struct that its maker gave a `struct_size` has a member. */
#define SLUICE_HAS_MEMBER(type, pointer, member) ((pointer)->struct_size >= offsetof(type, member) + sizeof((pointer)->member))

#define SLUICE_HOST (-1) /* the ordinal of host memory in copies */

/* A hint: queues of every kind take all work. Those for communication exchange with other devices. */
typedef enum sluice_queue_kind {
  SLUICE_QUEUE_COMPUTE = 0,
  SLUICE_QUEUE_COPY = 1,
  SLUICE_QUEUE_COMMUNICATION = 2 /* since 2.1 */
} sluice_queue_kind;
typedef enum sluice_access { SLUICE_READ = 0, SLUICE_WRITE = 1, SLUICE_READ_WRITE = 2 } sluice_access;

/* A copy of contiguous bytes. */
typedef struct sluice_copy {
  uint32_t struct_size;
  int32_t from_device, to_device; /* ordinals or SLUICE_HOST; equal ones are allowed */
  const void *from;
  void *to;
  size_t bytes;                   /* 0 is allowed: then the addresses may be null */
  const char *label;              /* "relu_2, lenet.cpp:12:9" */
} sluice_copy;

/* What is known of an operand, result or workspace of a launch, beside its address. */
typedef struct sluice_buffer {
  size_t bytes;         /* of the whole buffer, whatever the rows */
  sluice_access access;
} sluice_buffer;

typedef struct sluice_launch_stage {
  sluice_host_stage function;
  int64_t tasks;        /* of this call */
} sluice_launch_stage;

/* One launch of a kernel. It is either host code (num_stages > 0), or `function` of the module or of the backend itself. */
typedef struct sluice_launch {
  uint32_t struct_size;
  const sluice_call *call;
  void *const *addresses;     /* of the buffers: operands, results, workspace */
  const sluice_launch_stage *stages;
  size_t num_stages, stage_size;   /* and the size of one */
  sluice_module *module;      /* NULL: the backend's own function */
  const char *function;       /* NULL for host code */
  const void *parameters;     /* what the compile half gave with the kernel */
  size_t parameters_bytes;
  const char *name;           /* of the kernel, for traces and messages */
  const char *kind;           /* as in sluice_cost_estimate */
  const sluice_buffer *buffers;
  size_t num_buffers, buffer_size; /* and the size of one */
  double flops, bytes;        /* of this call, as the plan's cost says */
} sluice_launch;

/* The elements of a launch's arrays, which may have more members than these headers know, or fewer. */
static inline const sluice_buffer *sluice_launch_buffer_at(const sluice_launch *launch, size_t number) {
  return (const sluice_buffer *)((const char *)launch->buffers + number * launch->buffer_size);
}
static inline const sluice_launch_stage *sluice_launch_stage_at(const sluice_launch *launch, size_t number) {
  return (const sluice_launch_stage *)((const char *)launch->stages + number * launch->stage_size);
}

/* What the copy engine counted since the context was opened, for one pair of devices. */
typedef struct sluice_copy_count {
  int32_t from_device, to_device;
  int64_t copies, bytes;
} sluice_copy_count;

/* Puts one count into its place, as far as there is room in it. */
static inline void sluice_copy_count_set(sluice_copy_count *counts, size_t count_size, size_t number, const sluice_copy_count *count) {
  memcpy((char *)counts + number * count_size, count, count_size < sizeof *count ? count_size : sizeof *count);
}

struct sluice_backend_run {
  uint32_t struct_size;
  uint32_t major_version, minor_version;

  /* A context. On failure *context may still be set, for last_error; close it. */
  sluice_status (*open)(const sluice_run_options *options, sluice_run **context);
  void (*close)(sluice_run *context);
  /* Why the context's last call failed; valid until its next call. */
  const char *(*last_error)(sluice_run *context);

  sluice_status (*device_count)(sluice_run *context, int32_t *count);
  sluice_status (*device_info)(sluice_run *context, int32_t device, sluice_device_info *info);

  /* Memory at a multiple of 64 bytes, zeroed. SLUICE_EXHAUSTED names device, requested and free bytes in last_error. */
  sluice_status (*allocate)(sluice_run *context, int32_t device, size_t bytes, void **address);
  sluice_status (*release)(sluice_run *context, int32_t device, void *address);

  sluice_status (*queue_create)(sluice_run *context, int32_t device, sluice_queue_kind kind, const char *name, sluice_queue **queue);
  /* Wait for the queue's work before: what has not been done yet may be dropped. */
  void (*queue_destroy)(sluice_queue *queue);
  sluice_status (*event_create)(sluice_run *context, sluice_event **event);
  void (*event_destroy)(sluice_event *event);
  /* The event is done when what is in the queue now is; recording it again makes it stand for the new place. */
  sluice_status (*record)(sluice_queue *queue, sluice_event *event);
  /* What is put into the queue after this starts when the event, as recorded last, is done. */
  sluice_status (*wait)(sluice_queue *queue, sluice_event *event);
  /* The host waits. An event that was never recorded is done. */
  sluice_status (*synchronize)(sluice_event *event);
  sluice_status (*synchronize_queue)(sluice_queue *queue);

  sluice_status (*copy)(sluice_queue *queue, const sluice_copy *copy);
  sluice_status (*launch)(sluice_queue *queue, const sluice_launch *launch);

  /* The rest may be NULL. */
  sluice_status (*module_load)(sluice_run *context, int32_t device, const void *blob, size_t bytes, sluice_module **module);
  void (*module_unload)(sluice_module *module);
  /* From this place in the queue on nobody reads what these bytes hold. A debugging backend overwrites them. */
  sluice_status (*discard)(sluice_queue *queue, void *address, size_t bytes);
  /* Fills at most `capacity` counts, each of `count_size` bytes, and sets *count to how many there are. */
  sluice_status (*copy_counts)(sluice_run *context, sluice_copy_count *counts, size_t count_size, size_t capacity, size_t *count);
  /* Start and end, in seconds of the backend's clock, of the last piece of work before `event` was recorded. The event is
   * done, and has times (note_times). Those of one device are compared exactly, of several as well as their clocks can be. */
  sluice_status (*event_times)(sluice_event *event, double *start, double *end);
  /* A backend that takes the host's launches and copies too, in a queue of device SLUICE_HOST: the host's own, and one that
   * stands in for it, by its own clock and in its own order (sim). */
  int takes_host_queues;
  /* All work is done when the call that puts it into a queue returns, with its errors: nobody needs events of its queues. */
  int immediate;
  /* Exchanges among ranks; NULL before 2.2. */
  const sluice_backend_collectives *collectives;

  /* Since 2.1; each may be NULL. */

  /* Sequences, as said above: all four or none. */
  sluice_status (*capture_begin)(sluice_queue *queue);
  sluice_status (*capture_end)(sluice_queue *queue, sluice_sequence **sequence);
  /* Into any queue of the device in whose queue it was captured. */
  sluice_status (*replay)(sluice_queue *queue, sluice_sequence *sequence);
  void (*sequence_destroy)(sluice_sequence *sequence);

  /* Host memory that copies reach without staging it, so that they need not make the caller wait: at a multiple of 64 bytes, zeroed.
   * Both or neither. It is released when no work uses it any more, before the context is closed. */
  sluice_status (*host_allocate)(sluice_run *context, size_t bytes, void **address);
  sluice_status (*host_release)(sluice_run *context, void *address);

  /* Sets *done to whether the event is done, without waiting; whoever asks again and again is told yes some time. Of one that is done
   * the result is as that of synchronize. */
  sluice_status (*query)(sluice_event *event, int *done);
  /* As synchronize, but the host waits no longer than `seconds` of its clock: then it is SLUICE_DEADLINE, and the work goes on. */
  sluice_status (*synchronize_until)(sluice_event *event, double seconds);

  /* How copies from one device to another go. */
  sluice_status (*peer_link)(sluice_run *context, int32_t from_device, int32_t to_device, sluice_peer_link *link);

  /* Since 2.2; each may be NULL. */

  /* A group without contexts, as said above: both or neither. SLUICE_EXHAUSTED is its only error. Contexts are opened into it, and closed,
   * by any threads at any time; it is destroyed after the last of them. */
  sluice_status (*group_create)(sluice_group **group);
  void (*group_destroy)(sluice_group *group);

  /* Since 2.5; may be NULL: then all events have times. */

  /* Whether the queue notes from here on when its work is done, which may cost something; in the beginning it does not. An
   * event has times if the last work before it was put in, and it was recorded, while the queue noted them without a break:
   * of others event_times is refused with SLUICE_USAGE. A replay is one piece of work, and what is kept is none. */
  sluice_status (*note_times)(sluice_queue *queue, int on);

  /* Since 2.7; each may be NULL. */

  /* Signals, as said above. The number is written when what is in the queue now is done. */
  sluice_status (*signal)(sluice_queue *queue, uint64_t *place, uint64_t number);
  /* What is put into the queue after this starts when there is such a number. SLUICE_UNSUPPORTED: of this device, never. */
  sluice_status (*wait_for_signal)(sluice_queue *queue, const uint64_t *place, uint64_t number);
  /* Work goes on in calls alone, the host's waiting among them, and no call but those waits for work (sim). Only queues of such a
   * backend wait for its signals: a call of another may wait for its own queues, and then nobody calls this one. */
  int lazy;
};

#ifdef __cplusplus
}
#endif
