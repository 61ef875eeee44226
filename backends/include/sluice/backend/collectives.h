/* Exchanges among ranks: the table `collectives` of a run half (run.h), since 2.2.
 *
 * A communicator is one rank of `size` ranks. Rank 0 creates an id, which the caller distributes, and all ranks call
 * init with it. Ranks of one process belong to contexts of one group, or to one context. Ranks of other processes
 * connect by the id, or by the transport in the options; then each process has one rank. A backend without other
 * processes returns SLUICE_UNSUPPORTED.
 *
 * Order. An exchange is work of a queue of the communicator's device: it runs in the order of the queue, and events,
 * the host and deadlines wait for it as for other work. It starts when every rank has reached it. It is done for a rank
 * when that rank has received its elements and may overwrite the elements that it sends. All ranks issue the same
 * exchanges in the same order: kind, element type, reduction, root, counts and label are equal; addresses differ. Later
 * work in the queue waits until every rank has issued the exchange. A capture cannot contain exchanges: SLUICE_USAGE.
 *
 * Sums. Sums of f16 and bf16 are rounded at least once, and at most once per addition. All ranks receive the same bits,
 * and the same operands give the same bits again. The backend chooses the order of additions and describes it in
 * `order`. SLUICE_TREE_SUM fixes the order: adjacent ranks are added (rank 1 to rank 0, rank 3 to rank 2, and so on),
 * then adjacent sums; a last one without a partner is passed on. The partial sum of an aligned group of 2, 4, 8, ...
 * ranks therefore equals the sum of an exchange among that many ranks. The maximum of a NaN and a number is either.
 *
 * Threads. A call may wait for the same call of other ranks. A thread with several ranks therefore issues their calls
 * between begin and end. Between begin and end, the queues of these exchanges receive no other work.
 *
 * Errors. Ranks that differ give SLUICE_INVALID, with the rank and the first difference. A rank that was aborted,
 * destroyed or lost before an exchange gives SLUICE_PEER_LOST, with the rank. Both end the communicator of every rank:
 * waiting exchanges end with the error (see Errors in run.h), and every later call except destroy returns it. A late
 * rank is no error. The fate of a rank in another process may be unknown: then the deadline of the host passes, with
 * the rank in last_error if the backend can determine it. */
#pragma once

#include "sluice/backend/dtypes.h"
#include "sluice/backend/run.h"
#include "sluice/backend/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_communicator sluice_communicator; /* one rank of a group of ranks */

/* The name of a set of ranks, in the backend's format. It will not grow. */
typedef struct sluice_unique_id {
  char bytes[128];
} sluice_unique_id;

/* Options of init. */
typedef struct sluice_communicator_options {
  uint32_t struct_size;
  const sluice_unique_id *id; /* from rank 0 */
  int32_t rank, size;         /* 0 <= rank < size */
  int32_t device; /* one rank per device; SLUICE_HOST: any number, in backends with takes_host_queues */
  /* Since 2.3. */
  const sluice_transport_link *transport; /* between processes; NULL: the id alone connects them */
} sluice_communicator_options;

/* The exchanges. */
typedef enum sluice_exchange_kind {
  SLUICE_ALL_REDUCE = 0,     /* each rank sends `count` elements and receives their reduction over all ranks */
  SLUICE_BROADCAST = 1,      /* each rank receives the `count` elements that `root` sends */
  SLUICE_ALL_GATHER = 2,     /* each rank sends its elements and receives those of all, in the order of ranks */
  SLUICE_REDUCE_SCATTER = 3  /* each rank sends elements for all, in rank order, and receives its reduced part */
} sluice_exchange_kind;

/* The reductions. */
typedef enum sluice_reduction {
  SLUICE_SUM = 0,
  SLUICE_MAX = 1,
  SLUICE_TREE_SUM = 2  /* the sum in a balanced tree; a backend may return SLUICE_UNSUPPORTED */
} sluice_reduction;

/* One exchange. */
typedef struct sluice_exchange {
  uint32_t struct_size;
  int32_t kind;               /* a sluice_exchange_kind; an unknown one is refused */
  sluice_dtype dtype;         /* f32, f64, i32, i64, f16 or bf16; sums of integers wrap around */
  int32_t reduction;          /* a sluice_reduction, for all-reduce and reduce-scatter */
  int32_t root;               /* for broadcast */
  /* Device memory, disjoint or in place. In place means: for all-reduce, and on the root of broadcast, send == receive;
   * for all-gather, a rank sends from its part of `receive`; for reduce-scatter, it receives into its part of `send`.
   */
  const void *send;
  void *receive;
  size_t count;               /* elements; 0 is allowed */
  /* For all-gather and reduce-scatter: the elements of each of the `size` ranks; NULL: `count` for every rank. */
  const size_t *counts;
  const char *label;          /* "gradient of fc1.weight, lenet.cpp:12:9"; NULL: none */
} sluice_exchange;

/* The functions. Errors are as described above; last_error of the context (run.h) has the reason. */
struct sluice_backend_collectives {
  uint32_t struct_size; /* sizeof(sluice_backend_collectives) */

  /* Creates an id, on rank 0. */
  sluice_status (*unique_id)(sluice_run *context, sluice_unique_id *id);
  /* Creates the communicator of a rank; may wait for the other ranks. On failure there is none. */
  sluice_status (*init)(sluice_run *context, const sluice_communicator_options *options, sluice_communicator **communicator);
  /* Puts an exchange into a queue. The struct lives until the call returns. */
  sluice_status (*exchange)(sluice_communicator *communicator, sluice_queue *queue, const sluice_exchange *exchange);
  /* Bracket calls of init and exchange, which the outermost `end` may execute; its result is then their first error. A
   * communicator is usable after the `end` of its init. Brackets may be nested. */
  sluice_status (*begin)(sluice_run *context);
  sluice_status (*end)(sluice_run *context);
  /* The error that ended the communicator, or SLUICE_OK, without waiting. */
  sluice_status (*error)(sluice_communicator *communicator);
  /* Ends the communicator of every rank. Any thread may call it, also during a call of the context. The communicator
   * must still be destroyed. */
  void (*abort)(sluice_communicator *communicator);
  /* Frees the communicator. Wait for its exchanges first. */
  void (*destroy)(sluice_communicator *communicator);
  /* The order of additions: "ascending ranks". Lives as long as the backend is loaded. */
  const char *order;

  /* The next may be NULL. */

  /* The number of exchanges of one kind that this rank has done, and the bytes that they reduced, broadcast or
   * gathered. SLUICE_USAGE for an unknown kind. */
  sluice_status (*counts)(sluice_communicator *communicator, int32_t kind, int64_t *exchanges, int64_t *bytes);

  /* Since 2.4. */

  /* The reason why SLUICE_TREE_SUM is refused; NULL: it is accepted, or the reason is not given. */
  const char *no_tree_sums;
};

#ifdef __cplusplus
}
#endif
