/* Messages between processes: the table that a transport library exports, and the form in which run halves receive an
 * open transport. Since 2.3.
 *
 * A transport connects `size` processes, each of which is a rank. It moves messages and reduces nothing: the backend
 * that owns the memory builds exchanges among processes (collectives.h) from messages. Sluice tries every
 * `libsluice_transport_*.so` in the folders of backends.
 *
 * Order. Messages from one rank to another arrive whole and in the order in which they were sent. A message whose size
 * differs from that of its receive is SLUICE_INVALID, with both sizes in last_error.
 *
 * Progress. Only `open` waits. `test` of any transfer advances all transfers; it may sleep for a millisecond if nothing
 * moves.
 *
 * Threads. One thread at a time uses a transport, except for `abort`.
 *
 * Errors. A rank that exited, was aborted or cannot be reached gives SLUICE_PEER_LOST for every transfer with it, with
 * the rank in last_error. The transport may then be unusable. A silent rank is no error: the caller has a deadline. */
#pragma once

#include "sluice/backend/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define SLUICE_TRANSPORT_MAJOR 1
#define SLUICE_TRANSPORT_MINOR 0

typedef struct sluice_transport sluice_transport; /* an open transport */
typedef struct sluice_transfer sluice_transfer;   /* a message in progress */

/* Options of `open`. Strings live until it returns. */
typedef struct sluice_transport_options {
  uint32_t struct_size;
  int32_t rank, size;   /* from the launcher; a transport that disagrees returns SLUICE_USAGE */
  const char *address;  /* of rank 0, "node1:29500"; NULL: not given */
  const char *secret;   /* shared by the ranks of a run, unknown to other processes; never empty */
  double deadline;      /* seconds to wait for all ranks; then SLUICE_DEADLINE, with the missing ranks */
} sluice_transport_options;

/* The table of a transport library. */
typedef struct sluice_transport_library {
  uint32_t struct_size;                  /* sizeof(sluice_transport_library) */
  uint32_t major_version, minor_version; /* of the headers that the library was compiled with */
  const char *name;                      /* "tcp": the value of --transport */

  /* Connects all ranks and waits for them. On failure *transport may be set, for last_error; then close it. */
  sluice_status (*open)(const sluice_transport_options *options, sluice_transport **transport);
  /* Drops transfers in progress and frees the transport. */
  void (*close)(sluice_transport *transport);
  /* The reason of the last failure; valid until the next call. */
  const char *(*last_error)(sluice_transport *transport);

  /* Begin to send or receive `bytes`, possibly 0, with another rank. The transport uses the memory until the transfer
   * is done. *transfer belongs to the transport. */
  sluice_status (*send)(sluice_transport *transport, int32_t rank, const void *from, size_t bytes, sluice_transfer **transfer);
  sluice_status (*receive)(sluice_transport *transport, int32_t rank, void *to, size_t bytes, sluice_transfer **transfer);
  /* Advances transfers and sets *done to whether this one is done. A done or failed transfer no longer exists. */
  sluice_status (*test)(sluice_transport *transport, sluice_transfer *transfer, int *done);

  /* Ends every transfer on every reachable rank with SLUICE_PEER_LOST. Their last_error names this rank and, if known,
   * the rank that it waited for. Any thread may call it; it does not wait. The transport must still be closed. */
  void (*abort)(sluice_transport *transport);
} sluice_transport_library;

/* The exported symbol. The table lives as long as the object is loaded. */
typedef const sluice_transport_library *(*sluice_transport_query_fn)(void);
__attribute__((visibility("default"))) const sluice_transport_library *sluice_transport_query(void);

/* An open transport, as a run half receives it. Ranks are those of the communicator. It outlives the communicator.
 * Other code uses the transport only between the calls of the communicator. */
typedef struct sluice_transport_link {
  uint32_t struct_size;
  const sluice_transport_library *library; /* of the transport */
  sluice_transport *transport;             /* owned by the runtime */
  double deadline; /* seconds that an exchange waits for a rank; then SLUICE_DEADLINE, with the rank and the label */
} sluice_transport_link;

#ifdef __cplusplus
}
#endif
