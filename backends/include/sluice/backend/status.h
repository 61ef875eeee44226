/* Status codes of every C interface of Sluice; the values are the exit codes of its tools and executables. */
#pragma once

typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_USAGE = 2,       /* an unknown name or option, an absurd value */
  SLUICE_INVALID = 3,     /* data, a model or a plan that is wrong or missing */
  SLUICE_UNSUPPORTED = 4, /* the backend cannot do this, or a device is not there */
  SLUICE_EXHAUSTED = 5,   /* out of memory, or a device was lost */
  SLUICE_DEADLINE = 6,    /* a deadline passed */
  SLUICE_PEER_LOST = 7,   /* another rank was aborted or lost, or went away */
  SLUICE_INTERNAL = 70    /* our own error */
} sluice_status;
