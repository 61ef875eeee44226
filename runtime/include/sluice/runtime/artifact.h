/* The contract between compiled models and the runtime: one query symbol, one plan, one table of generated functions.
 *
 * A model may be compiled for several lists of devices: then there is an artifact of each, a variant, and each leads to the next.
 *
 * `sluice compile` writes an object that defines `sluice_artifact_query`. The runner and `sluice::compile` find
 * everything through it. The plan is JSON, described in runtime/plan/PLAN.md, so that it can be read and diffed. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented when this header or the meaning of a plan changes; a runtime refuses any other. */
#define SLUICE_ARTIFACT_ABI 5

/* One parallel stage of a kernel. `buffers` are the kernel's operands, then its results, then its workspace, as the plan
 * lists them; `rows` is the number of rows of the batch dimension in this call; the stage runs its tasks numbered
 * [begin, end). Tasks of one stage are independent and may run in any order on any threads; stages run in sequence. */
typedef void (*sluice_stage_fn)(void *const *buffers, int64_t rows, int64_t begin, int64_t end);

/* A backend's device code, as its compile half made it. */
typedef struct sluice_code_section {
  const void *data;
  uint64_t bytes;
} sluice_code_section;

typedef struct sluice_artifact {
  uint32_t struct_size;           /* sizeof(sluice_artifact) of whoever filled it in */
  uint32_t abi_version;           /* SLUICE_ARTIFACT_ABI */
  const char *plan;               /* JSON, UTF-8, not terminated */
  uint64_t plan_size;             /* bytes */
  const sluice_stage_fn *stages;  /* indexed by "fn" of the plan's stages */
  uint64_t num_stages;
  const void *constants;          /* read-only data, 64-byte aligned: the plan's arena "constants", and what states begin with */
  uint64_t constants_size;        /* bytes */
  const sluice_code_section *sections; /* indexed by "section" of the plan's modules */
  uint64_t num_sections;
  uint64_t checksum;              /* CRC-32 (zlib's) of the plan's text, then of num_stages as 8 bytes, lowest first, then
                                     of the constants and of the sections: a plan that was edited does not fit the code that
                                     was made for it */
  const struct sluice_artifact *(*next)(void); /* gives the variant to take where this one's devices are not; NULL: the last */
} sluice_artifact;

/* The one exported symbol of an artifact: of its first variant. */
const sluice_artifact *sluice_artifact_query(void);

#ifdef __cplusplus
}
#endif
