#include "backends/cuda/libraries/LibrarySearch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace sluice::cuda {

namespace fs = std::filesystem;

static std::string valueOf(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

/// The packages of Pythons in a folder, by version. Debian's Python uses a folder of another name.
static std::vector<fs::path> sitePackages(const std::string &root) {
  std::vector<fs::path> pythons, folders;
  std::error_code error;
  for (fs::directory_iterator python(root + "/lib", error), end; !error && python != end; python.increment(error))
    if (python->path().filename().string().starts_with("python3"))
      pythons.push_back(python->path());
  std::sort(pythons.begin(), pythons.end());
  for (const fs::path &python : pythons)
    for (const char *packages : {"site-packages", "dist-packages"})
      folders.push_back(python / packages);
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
  std::vector<std::string> roots = {valueOf("VIRTUAL_ENV"), valueOf("CONDA_PREFIX"), valueOf("HOME") + "/.local"};
  roots.insert(roots.end(), systems.begin(), systems.end());
  std::error_code error;
  for (const std::string &root : roots)
    for (const fs::path &folder : root.empty() ? std::vector<fs::path>() : sitePackages(root))
      for (const std::string &file : files)
        for (const std::string &package : packages)
          if (fs::path path = folder / "nvidia" / package / "lib" / file; fs::exists(path, error))
            places.push_back(path);
  return places;
}

std::string LibrarySearch::listed() const {
  std::string text;
  for (const std::string &place : places())
    text += (text.empty() ? "" : ", ") + place;
  return text;
}

} // namespace sluice::cuda
