#include "runtime/data/OpenData.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/Cifar.h"
#include "runtime/data/Idx.h"
#include "runtime/data/Npz.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace sluice::runtime {

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

/// A function of a path, the names of the files in it, and a part, which means nothing to data without parts.
struct DataPath::Format {
  const char *what; ///< for messages
  bool hasParts;
  bool (*isThere)(const std::string &folder, const Files &files);
  std::optional<Table> (*open)(const std::string &path, const Files &files, DataPart part);
};

static bool has(const Files &files, const std::string &name) {
  return std::find(files.begin(), files.end(), name) != files.end();
}

static Files filesIn(const std::string &folder) {
  Files files;
  std::error_code error;
  for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
    files.push_back(next->path().filename());
  if (error)
    failInvalid(concat(folder, ": cannot read the data folder: ", error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

static const char *nameOf(DataPart part) { return part == DataPart::train ? "train" : "test"; }

static bool hasIdx(const std::string &, const Files &files) {
  IdxName name;
  return std::any_of(files.begin(), files.end(), [&](const std::string &file) { return parseIdxName(file, name); });
}

static std::optional<Table> openIdxFolder(const std::string &folder, const Files &files, DataPart part) {
  Table table = idxTable(folder, files, part == DataPart::train ? "train" : "t10k");
  return table.columns.empty() ? std::nullopt : std::optional(std::move(table));
}

static bool isCifar10File(const std::string &file) {
  return file == "test_batch.bin" || (file.starts_with("data_batch_") && file.ends_with(".bin"));
}

static bool hasCifar10(const std::string &, const Files &files) {
  return std::any_of(files.begin(), files.end(), isCifar10File);
}

static std::optional<Table> openCifar10(const std::string &folder, const Files &files, DataPart part) {
  bool isTest = part == DataPart::test, hasTest = has(files, "test_batch.bin");
  auto count = std::count_if(files.begin(), files.end(), isCifar10File);
  return (isTest ? hasTest : count > hasTest) ? std::optional(cifar10Table(folder, isTest)) : std::nullopt;
}

static bool hasCifar100(const std::string &, const Files &files) {
  return has(files, "train.bin") || has(files, "test.bin");
}

static std::optional<Table> openCifar100(const std::string &folder, const Files &files, DataPart part) {
  bool isThere = has(files, concat(nameOf(part), ".bin"));
  return isThere ? std::optional(cifar100Table(folder, part == DataPart::test)) : std::nullopt;
}

static bool hasNpzParts(const std::string &, const Files &files) {
  return has(files, "train.npz") || has(files, "test.npz");
}

static std::optional<Table> openNpzPart(const std::string &folder, const Files &files, DataPart part) {
  std::string name = concat(nameOf(part), ".npz");
  return has(files, name) ? std::optional(npzTable(concat(folder, "/", name))) : std::nullopt;
}

static bool hasNpy(const std::string &, const Files &files) {
  return std::any_of(files.begin(), files.end(), [](const std::string &file) { return file.ends_with(".npy"); });
}

static std::optional<Table> openNpyFolder(const std::string &folder, const Files &files, DataPart) {
  return npyFolderTable(folder, files);
}

static std::optional<Table> openNpyPart(const std::string &folder, const Files &files, DataPart part) {
  std::string inner = concat(folder, "/", nameOf(part));
  std::error_code error;
  if (!has(files, nameOf(part)) || !fs::is_directory(inner, error))
    return std::nullopt;
  Files found = filesIn(inner);
  return hasNpy(inner, found) ? openNpyFolder(inner, found, part) : std::nullopt;
}

static bool hasNpyParts(const std::string &folder, const Files &files) {
  return openNpyPart(folder, files, DataPart::train) || openNpyPart(folder, files, DataPart::test);
}

static constexpr DataPath::Format folderFormats[] = {
    {"IDX files, as MNIST's", true, hasIdx, openIdxFolder},
    {"CIFAR-10's data_batch_1.bin to data_batch_5.bin and test_batch.bin", true, hasCifar10, openCifar10},
    {"CIFAR-100's train.bin and test.bin", true, hasCifar100, openCifar100},
    {"train.npz and test.npz", true, hasNpzParts, openNpzPart},
    {"folders train and test of .npy files", true, hasNpyParts, openNpyPart},
    {".npy files", false, hasNpy, openNpyFolder},
};

static constexpr DataPath::Format npyFile = {"an .npy file", false, nullptr,
                                             [](const std::string &path, const Files &, DataPart) {
                                               return std::optional(npyTable(path));
                                             }},
                                  npzFile = {"an .npz file", false, nullptr,
                                             [](const std::string &path, const Files &, DataPart) {
                                               return std::optional(npzTable(path));
                                             }};

static const DataPath::Format &formatOfFile(const std::string &path) {
  Bytes start = MappedFile(path).read(0, 8);
  auto begins = [&](std::string_view magic) {
    return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\x93NUMPY"))
    return npyFile;
  if (begins("PK\x03\x04") || begins("PK\x05\x06"))
    return npzFile;
  failInvalid(concat(path, ": is neither an .npy nor an .npz file, and no folder of data"));
}

static const DataPath::Format &formatOfFolder(const std::string &folder, const Files &files) {
  const DataPath::Format *found = nullptr;
  std::vector<std::string> all;
  for (const DataPath::Format &format : folderFormats) {
    all.emplace_back(format.what);
    if (!format.isThere(folder, files))
      continue;
    if (found)
      failInvalid(concat(folder, ": has both ", found->what, " and ", format.what, "; name one of them"));
    found = &format;
  }
  if (!found)
    failInvalid(concat(folder, ": has no data; what is read: ", listed(all)));
  return *found;
}

DataPath::DataPath(const std::string &path) : path_(path) {
  std::error_code error;
  bool isFolder = fs::is_directory(path, error);
  if (isFolder)
    files_ = filesIn(path);
  format_ = isFolder ? &formatOfFolder(path, files_) : &formatOfFile(path);
}

bool DataPath::hasParts() const { return format_->hasParts; }

std::optional<Table> DataPath::part(DataPart part) const {
  return hasParts() ? format_->open(path_, files_, part) : std::nullopt;
}

Table DataPath::whole() const { return *format_->open(path_, files_, DataPart::train); }

} // namespace sluice::runtime
