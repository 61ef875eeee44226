/* The contract between compiled models and the runtime: one query symbol, one plan, one table of generated functions.
 *
 * A model may be compiled for several lists of devices. It then has one artifact per list, a variant. The variants form
 * a linked list.
 *
 * `sluice compile` writes an object that defines `sluice_artifact_query`. The runner and `sluice::compile` find
 * everything through it. The plan is JSON (runtime/plan/PLAN.md), so that it can be read and diffed. All data is
 * constant and lives as long as the object is loaded; any thread may read it. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented when this header or the meaning of a plan changes. A runtime refuses every other version. */
#define SLUICE_ARTIFACT_ABI 5

/* One parallel stage of a kernel. `buffers` are the operands of the kernel, then its results, then its workspace, in
 * the order of the plan. `rows` is the number of rows of the call. The stage runs its tasks [begin, end). Tasks of one
 * stage are independent and may run in any order on any threads; stages run one after another. */
typedef void (*sluice_stage_fn)(void *const *buffers, int64_t rows, int64_t begin, int64_t end);

/* Device code, from the compile half of a backend. */
typedef struct sluice_code_section {
  const void *data;
  uint64_t bytes; /* of data */
} sluice_code_section;

/* One variant of a compiled model. */
typedef struct sluice_artifact {
  uint32_t struct_size;           /* sizeof(sluice_artifact) of the compiler */
  uint32_t abi_version;           /* SLUICE_ARTIFACT_ABI */
  const char *plan;               /* JSON, UTF-8, without a terminating zero */
  uint64_t plan_size;             /* bytes */
  const sluice_stage_fn *stages;  /* indexed by "fn" of the plan's stages */
  uint64_t num_stages;            /* number of stages */
  const void *constants;          /* 64-byte aligned: the arena "constants" of the plan, and initial values of states */
  uint64_t constants_size;        /* bytes */
  const sluice_code_section *sections; /* indexed by "section" of the plan's modules */
  uint64_t num_sections;          /* number of sections */
  uint64_t checksum;              /* zlib's CRC-32 of the plan, num_stages (8 bytes, little-endian), the constants and
                                     the sections: detects a plan that was edited after compilation */
  const struct sluice_artifact *(*next)(void); /* the variant to try if these devices are absent; NULL in the last */
} sluice_artifact;

/* The exported symbol of an artifact: returns its first variant. */
const sluice_artifact *sluice_artifact_query(void);

#ifdef __cplusplus
}
#endif
