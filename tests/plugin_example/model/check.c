/* Loads the compiled model, runs it on three rows, and compares with plain loops; prints the largest difference. */
#include <math.h>
#include <stdio.h>

#include <sluice/runtime/api.h>

enum { kRows = 3, kInputs = 3, kOutputs = 4 };

int main(int argc, char **argv) {
  const sluice_artifact *artifact;
  sluice_instance *model;
  float weight[kOutputs][kInputs], x[kRows][kInputs], y[kRows][kOutputs];
  double largest = 0;
  int i, j, k;
  (void)argc;
  for (j = 0; j < kOutputs; ++j)
    for (k = 0; k < kInputs; ++k)
      weight[j][k] = 0.3f * (float)j - 0.4f * (float)k;
  for (i = 0; i < kRows; ++i)
    for (k = 0; k < kInputs; ++k)
      x[i][k] = 0.5f * (float)i - 0.2f * (float)k;
  if (sluice_artifact_load(argv[1], &artifact) || sluice_instance_create(artifact, NULL, &model) ||
      sluice_instance_set_state(model, "layer.weight", weight, sizeof weight) ||
      sluice_instance_set_input(model, "predict", "x", x, sizeof x, kRows) ||
      sluice_instance_run(model, "predict", kRows) ||
      sluice_instance_get_output(model, "predict", "y", y, sizeof y, kRows)) {
    fprintf(stderr, "%s\n", sluice_last_error());
    return 1;
  }
  for (i = 0; i < kRows; ++i) {
    for (j = 0; j < kOutputs; ++j) {
      double sum = 0;
      for (k = 0; k < kInputs; ++k)
        sum += (double)x[i][k] * weight[j][k];
      largest = fmax(largest, fabs(exp(fmax(sum, 0)) - y[i][j]));
    }
  }
  printf("%g\n", largest);
  sluice_instance_destroy(model);
  return largest < 1e-5 ? 0 : 1;
}
