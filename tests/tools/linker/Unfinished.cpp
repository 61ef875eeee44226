// Calls an undefined function.
extern "C" void sluiceNothingDefinesThis();
extern "C" const void *sluice_artifact_query() {
  sluiceNothingDefinesThis();
  return nullptr;
}
