#include "backends/cuda/runtime/LibrarySearch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace sluice::cuda {

namespace fs = std::filesystem;

static std::string valueOf(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

/// Those of Pythons below a folder, by their versions.
static std::vector<fs::path> sitePackages(const std::string &root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry &python : fs::directory_iterator(root + "/lib", error))
    if (python.path().filename().string().starts_with("python3"))
      folders.push_back(python.path() / "site-packages");
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::string LibrarySearch::named() const { return valueOf(variable); }

std::vector<std::string> LibrarySearch::places() const {
  if (std::string path = named(); !path.empty())
    return {path};
  std::vector<std::string> places = files;
  for (const std::string &home : {valueOf("CUDA_HOME"), std::string("/usr/local/cuda")})
    for (const std::string &file : files)
      if (!home.empty())
        places.push_back(home + "/lib64/" + file);
  std::error_code error;
  for (const std::string &root : {valueOf("VIRTUAL_ENV"), valueOf("CONDA_PREFIX"), valueOf("HOME") + "/.local"})
    for (const fs::path &folder : root.empty() ? std::vector<fs::path>() : sitePackages(root))
      for (const std::string &file : files)
        for (const std::string &package : packages)
          if (fs::path path = folder / "nvidia" / package / "lib" / file; fs::exists(path, error))
            places.push_back(path);
  return places;
}

} // namespace sluice::cuda
