// Calls what nothing defines.
extern "C" void sluiceNothingDefinesThis();
extern "C" const void *sluice_artifact_query() {
  sluiceNothingDefinesThis();
  return nullptr;
}
