/* Loads a model compiled with --emit=so, initialises it and predicts on one blank image; prints the number of logits
 * that are finite. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sluice/runtime/api.h>

int main(int argc, char **argv) {
  const sluice_artifact *artifact;
  sluice_instance *model;
  const int32_t key[2] = {0, 1};
  unsigned char image[784];
  float logits[10];
  int finite = 0, i;
  (void)argc;
  memset(image, 0, sizeof image);
  if (sluice_artifact_load(argv[1], &artifact) || sluice_instance_create(artifact, NULL, &model) ||
      sluice_instance_set_input(model, "init", "key", key, sizeof key, 1) || sluice_instance_run(model, "init", 1) ||
      sluice_instance_set_input(model, "predict", "image", image, sizeof image, 1) ||
      sluice_instance_run(model, "predict", 1) ||
      sluice_instance_get_output(model, "predict", "logits", logits, sizeof logits, 1)) {
    fprintf(stderr, "%s\n", sluice_last_error());
    return 1;
  }
  for (i = 0; i < 10; ++i)
    finite += isfinite(logits[i]) != 0;
  printf("%d\n", finite);
  sluice_instance_destroy(model);
  return 0;
}
