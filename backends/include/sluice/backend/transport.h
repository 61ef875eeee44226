/* Bytes from process to process: what a shared object exports that carries them, and how run halves are given it, since 2.3.
 *
 * A transport is one process's end of `size` of them, each of which is a rank. It moves messages and adds nothing up: exchanges
 * among ranks of several processes (collectives.h) are made of messages by the backend whose memory they are in. Every
 * `libsluice_transport_*.so` in the folders where backends lie is tried.
 *
 * Messages from one rank to another are received in the order in which they were sent, and each whole: a message that has another
 * size than what is to receive it is SLUICE_INVALID, with both sizes. No call but `open` waits; where nothing
 * moves, `test` may sleep for a millisecond. Whatever is under way goes on in `test`, of any transfer. A transport is used by one thread at a time, except for `abort`.
 *
 * Errors. A rank that went away, was aborted or cannot be reached makes SLUICE_PEER_LOST of every transfer with it, with the rank
 * in last_error; the transport may then be of no more use. A rank that is silent is no error: who waits has a deadline. */
#pragma once

#include "sluice/backend/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_TRANSPORT_MAJOR 1
#define SLUICE_TRANSPORT_MINOR 0

typedef struct sluice_transport sluice_transport; /* an open one */
typedef struct sluice_transfer sluice_transfer;   /* a message under way */

typedef struct sluice_transport_options {
  uint32_t struct_size;
  int32_t rank, size;   /* as the launcher says; a transport with another opinion refuses with SLUICE_USAGE */
  const char *address;  /* where rank 0 is found, "node1:29500"; NULL: nobody said */
  const char *secret;   /* that all ranks of a run have, and no others; never empty */
  double deadline;      /* seconds in which all ranks must have come, else SLUICE_DEADLINE with those that have not */
} sluice_transport_options;

typedef struct sluice_transport_library {
  uint32_t struct_size;
  uint32_t major_version, minor_version;
  const char *name;     /* "tcp": what --transport says */

  /* Returns when all ranks have come. On failure *transport may still be set, for last_error; close it. */
  sluice_status (*open)(const sluice_transport_options *options, sluice_transport **transport);
  /* Drops what is under way. */
  void (*close)(sluice_transport *transport);
  /* Why the last call failed; valid until the next. */
  const char *(*last_error)(sluice_transport *transport);

  /* Begin to move `bytes`, of which 0 are a message, too; the memory is the transport's until the transfer is done. `rank` is not
   * the process's own. */
  sluice_status (*send)(sluice_transport *transport, int32_t rank, const void *from, size_t bytes, sluice_transfer **transfer);
  sluice_status (*receive)(sluice_transport *transport, int32_t rank, void *to, size_t bytes, sluice_transfer **transfer);
  /* Does what can be done now, and says whether the transfer is done: then, and after an error, it is no more. */
  sluice_status (*test)(sluice_transport *transport, sluice_transfer *transfer, int *done);

  /* Makes SLUICE_PEER_LOST of every transfer on every rank that can be reached, with this rank's number, and that of the rank that it
   * has waited for in vain, if the transport knows one. By any thread; waits for nobody. It is still to be closed. */
  void (*abort)(sluice_transport *transport);
} sluice_transport_library;

/* The one exported symbol. The table lives as long as the object is loaded. */
typedef const sluice_transport_library *(*sluice_transport_query_fn)(void);
__attribute__((visibility("default"))) const sluice_transport_library *sluice_transport_query(void);

/* An open transport as the runtime hands it to a run half. Rank numbers are those of the communicator. It outlives the communicator, is
 * used by others between its calls, and by nobody during one. */
typedef struct sluice_transport_link {
  uint32_t struct_size;
  const sluice_transport_library *library;
  sluice_transport *transport;
  double deadline; /* seconds that an exchange waits for a rank before it fails with SLUICE_DEADLINE, the rank, and its label */
} sluice_transport_link;

#ifdef __cplusplus
}
#endif
