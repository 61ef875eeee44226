#include "runtime/io/InitialValues.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <filesystem>
#include <link.h>

namespace sluice::runtime {

namespace {
/// The search by `lookIn`: the address, and the path of the loaded file that contains it.
struct LoadedFile {
  uintptr_t address;
  std::string path;
};
} // namespace

/// Called for each loaded file; returns 1 to end the search.
static int lookIn(dl_phdr_info *loaded, size_t, void *wanted) {
  auto &file = *static_cast<LoadedFile *>(wanted);
  for (size_t i = 0; i < loaded->dlpi_phnum; ++i) {
    const auto &segment = loaded->dlpi_phdr[i];
    uintptr_t begin = loaded->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || file.address < begin || file.address >= begin + segment.p_memsz)
      continue;
    file.path = *loaded->dlpi_name ? loaded->dlpi_name : "/proc/self/exe"; // the main program has an empty name
    return 1;
  }
  return 0;
}

/// The folder of the file that the artifact was loaded from.
static std::filesystem::path folderOf(const sluice_artifact &artifact) {
  LoadedFile file{reinterpret_cast<uintptr_t>(&artifact), {}};
  dl_iterate_phdr(&lookIn, &file);
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(file.path, error);
  return (error ? std::filesystem::path(file.path) : real).parent_path();
}

static TensorSource sourceInArtifact(const State &state, const sluice_artifact &artifact) {
  const std::byte *data = static_cast<const std::byte *>(artifact.constants) + *state.initial->offset;
  auto read = [data](size_t at, std::span<std::byte> to) { std::copy_n(data + at, to.size(), to.begin()); };
  return {concat("the artifact: ", quote(state.name)), state.dtype, state.shape, read};
}

static std::shared_ptr<const SafetensorsFile> openValues(const std::string &path) {
  std::shared_ptr<const SafetensorsFile> file;
  Status status = guarded([&] { file = std::make_shared<const SafetensorsFile>(path); });
  if (!status.ok())
    throw Error(status.code, concat(status.message, "; the model needs the initial values in this file"));
  return file;
}

std::vector<InitialValue> initialValues(const Plan &plan, const sluice_artifact &artifact,
                                        const std::function<bool(const State &)> &chosen) {
  std::string path; // set when a state needs the file
  std::shared_ptr<const SafetensorsFile> file;
  std::vector<InitialValue> values;
  for (const State &state : plan.states) {
    if (!state.initial || !chosen(state))
      continue;
    if (!state.initial->offset && !file) {
      path = folderOf(artifact) / plan.values; // `operator/` drops the folder if the path is absolute
      file = openValues(path);
    }
    TensorSource source = state.initial->offset ? sourceInArtifact(state, artifact) : sourceIn(file, path, state.name);
    TensorSource fitting = source.as(state.dtype, state.shape);
    if (source.crc32() != state.initial->crc32)
      failInvalid(concat(source.what, " has changed since the model was compiled: its checksum differs"));
    values.push_back({&state, std::move(fitting)});
  }
  return values;
}

} // namespace sluice::runtime
