/* Status codes of every C interface of Sluice. The values are also the exit codes of its tools and executables. */
#pragma once

/* The result of a call. */
typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_USAGE = 2,       /* an unknown name or option, or a value out of range */
  SLUICE_INVALID = 3,     /* invalid or missing data, model or plan */
  SLUICE_UNSUPPORTED = 4, /* the backend lacks this operation, or the device is not available */
  SLUICE_EXHAUSTED = 5,   /* out of memory, or a device is lost */
  SLUICE_DEADLINE = 6,    /* a deadline passed */
  SLUICE_PEER_LOST = 7,   /* another rank was aborted, is lost or has exited */
  SLUICE_INTERNAL = 70    /* a defect of Sluice or of the backend */
} sluice_status;
