#include "runtime/plugins/BackendFolders.h"

#include "runtime/plugins/BackendLoader.h"

#include <algorithm>
#include <filesystem>

namespace sluice::runtime {

/// lib/sluice/backends of the installation that contains the running program; empty if there is none.
static std::string installedBackends() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path() / "../lib/sluice/backends";
  return fs::is_directory(folder, error) ? folder.lexically_normal().string() : std::string();
}

std::vector<std::string> backendFoldersFor(const Plan &plan, const std::string &folder) {
  std::vector<std::string> folders = backendFolders(folder);
  for (const std::string &more : {installedBackends(), plan.backends})
    if (!more.empty() && std::find(folders.begin(), folders.end(), more) == folders.end())
      folders.push_back(more);
  return folders;
}

} // namespace sluice::runtime
