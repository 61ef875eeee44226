/* Exchanges among ranks: the table behind `collectives` of a run half (run.h), since 2.2.
 *
 * A communicator is one rank's end of `size` of them. Rank 0 makes an id, which reaches the others by whatever way there is, and
 * all call init with it. Ranks of one process belong to contexts of one group, or to one context. Ranks of other processes are
 * found by the id, or by the transport that init is given, each process having one rank then; a backend that has none in other
 * processes refuses with SLUICE_UNSUPPORTED.
 *
 * An exchange is work of a queue of the communicator's device, in the queue's order and waited for like all work: by events, by the
 * host, by deadlines. It starts when every rank has come to it, and is done for a rank when what that rank receives is there and what it
 * sends may be overwritten. All ranks put in the same exchanges in the same order: kind, element type, reduction, root, counts and label
 * are equal, addresses are their own. Until every rank has put it in, what lies behind it in the queue waits with it. What a
 * queue captures has no exchanges in it: they are refused with SLUICE_USAGE.
 *
 * Sums of f16 and bf16 are rounded at least once and no more often than they are added. All ranks receive the same bits of a sum,
 * and the same operands give the same bits again; the order of adding is the backend's own, and `order` says it, but for
 * SLUICE_TREE_SUM: neighbouring ranks' are added, rank 1's to rank 0's, rank 3's to rank 2's and so on, then neighbouring sums, where
 * a last one that has no neighbour goes on as it is. So the sums over groups of 2, 4, 8 and so on ranks are those of as many ranks.
 * Of not-a-number and a number, the larger is either.
 *
 * Threads. A call may wait for the same call of the other ranks; one thread that has several ranks therefore puts their calls between
 * begin and end. From begin to end nothing else is put into the queues of these exchanges.
 *
 * Errors. Where ranks differ, it is SLUICE_INVALID with the rank and the first difference; where a rank was aborted, destroyed or
 * lost before it came, SLUICE_PEER_LOST with the rank. Either ends the communicator of every rank: exchanges that wait for a rank
 * end with the error, which is told to whoever waits for them (run.h), and so does every later call, but for destroy. A rank that does
 * not come is no error, and what became of a rank of another process may be unknown: then the host's deadline passes, with the
 * rank in last_error where the backend knows it. */
#pragma once

#include "sluice/backend/dtypes.h"
#include "sluice/backend/run.h"
#include "sluice/backend/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_communicator sluice_communicator;

/* Will not grow. */
typedef struct sluice_unique_id {
  char bytes[128];
} sluice_unique_id;

typedef struct sluice_communicator_options {
  uint32_t struct_size;
  const sluice_unique_id *id;
  int32_t rank, size;
  int32_t device; /* a device has one rank; SLUICE_HOST has any number, of backends that take the host's queues */
  /* Since 2.3. */
  const sluice_transport_link *transport; /* between ranks of several processes; NULL: the backend finds them by the id alone */
} sluice_communicator_options;

typedef enum sluice_exchange_kind {
  SLUICE_ALL_REDUCE = 0,     /* each rank sends `count` elements, and receives the reduction of all ranks' */
  SLUICE_BROADCAST = 1,      /* each rank receives the `count` elements that `root` sends; others send nothing */
  SLUICE_ALL_GATHER = 2,     /* each rank sends its elements, and receives those of all, in the order of ranks */
  SLUICE_REDUCE_SCATTER = 3  /* each rank sends elements for all, in the order of ranks, and receives the reduction of its own */
} sluice_exchange_kind;

typedef enum sluice_reduction {
  SLUICE_SUM = 0,
  SLUICE_MAX = 1,
  SLUICE_TREE_SUM = 2  /* the sum, added in a balanced tree; a backend may refuse it with SLUICE_UNSUPPORTED */
} sluice_reduction;

typedef struct sluice_exchange {
  uint32_t struct_size;
  int32_t kind;               /* a sluice_exchange_kind, or one of a later version, which is refused like all that makes no sense */
  sluice_dtype dtype;         /* f32, f64, i32, i64, f16 or bf16; sums of integers wrap around */
  int32_t reduction;          /* a sluice_reduction, of all-reduce and reduce-scatter */
  int32_t root;               /* of broadcast */
  /* Device memory. In place is: send == receive for all-reduce, and for broadcast on the root; what a rank sends at its place in what it
   * receives for all-gather; what it receives at its place in what it sends for reduce-scatter. Else the two do not overlap. */
  const void *send;
  void *receive;
  size_t count;               /* elements; 0 is allowed */
  /* For all-gather and reduce-scatter: the elements of each rank, `size` of them; NULL: `count` for every rank. */
  const size_t *counts;
  const char *label;          /* "gradient of fc1.weight, lenet.cpp:12:9"; NULL: none */
} sluice_exchange;

struct sluice_backend_collectives {
  uint32_t struct_size;

  sluice_status (*unique_id)(sluice_run *context, sluice_unique_id *id);
  /* On failure there is no communicator. */
  sluice_status (*init)(sluice_run *context, const sluice_communicator_options *options, sluice_communicator **communicator);
  sluice_status (*exchange)(sluice_communicator *communicator, sluice_queue *queue, const sluice_exchange *exchange);
  /* The calls of init and exchange in between may be made by the last `end`, whose result is then the first of their errors. A
   * communicator is used only after the `end` of its init. They may be nested. */
  sluice_status (*begin)(sluice_run *context);
  sluice_status (*end)(sluice_run *context);
  /* Whether the communicator has come to its end, and by which error, without waiting. */
  sluice_status (*error)(sluice_communicator *communicator);
  /* Ends the communicator of every rank. By any thread, while another is in a call of the context, too. It is still to be destroyed. */
  void (*abort)(sluice_communicator *communicator);
  /* Wait for its exchanges before. */
  void (*destroy)(sluice_communicator *communicator);
  /* In which order sums are added: "ascending ranks". Lives as long as the backend is loaded. */
  const char *order;

  /* May be NULL. */

  /* The exchanges of one kind that this rank has done, and their bytes: of all that is reduced, broadcast or gathered. An unknown kind
   * is refused with SLUICE_USAGE. */
  sluice_status (*counts)(sluice_communicator *communicator, int32_t kind, int64_t *exchanges, int64_t *bytes);

  /* Since 2.4. */

  /* Why SLUICE_TREE_SUM is refused; NULL: it is not, or the backend does not say. */
  const char *no_tree_sums;
};

#ifdef __cplusplus
}
#endif
