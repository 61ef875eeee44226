#include "runtime/data/OpenData.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/images/Cifar.h"
#include "runtime/data/images/Idx.h"
#include "runtime/data/images/Images.h"
#include "runtime/data/tables/Npz.h"
#include "runtime/data/text/Bpe.h"
#include "runtime/data/text/Tokens.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace sluice::runtime {

namespace fs = std::filesystem;
using Files = std::vector<std::string>;

/// A kind of data. `isThere` recognizes a folder by its path and file names; it is null for kinds of files. `open`
/// opens a part; data without parts ignores `part`.
struct DataPath::Format {
  const char *what; ///< for messages
  bool hasParts;
  bool (*isThere)(const std::string &folder, const Files &files);
  std::optional<Table> (*open)(const std::string &path, const Files &files, DataPart part);
  enum class Kind { rows, text, images } kind = Kind::rows; ///< only text and images have options
};
using Kind = DataPath::Format::Kind;

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

static bool hasTokens(const std::string &, const Files &files) { return has(files, "val.bin"); }

static std::optional<Table> openTokens(const std::string &folder, const Files &files, DataPart part) {
  std::string name = part == DataPart::train ? "train.bin" : "val.bin";
  return has(files, name) ? std::optional(binaryTokens(concat(folder, "/", name))) : std::nullopt;
}

static bool hasTexts(const std::string &, const Files &files) {
  return has(files, "train.txt") || has(files, "test.txt");
}

static std::optional<Table> openTexts(const std::string &folder, const Files &files, DataPart part) {
  std::string name = concat(nameOf(part), ".txt");
  return has(files, name) ? std::optional(textTokens(concat(folder, "/", name))) : std::nullopt;
}

static bool hasCifar100(const std::string &folder, const Files &files) {
  return (has(files, "train.bin") || has(files, "test.bin")) && !hasTokens(folder, files);
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

/// All parts use the classes of the training part, so that a test part that lacks some classes has the same labels.
static std::vector<std::string> classesOfParts(const std::string &folder) {
  std::string train = concat(folder, "/", nameOf(DataPart::train));
  return hasImages(train) ? imageClasses(train) : std::vector<std::string>();
}

static std::optional<Table> openImagePart(const std::string &folder, const Files &files, DataPart part) {
  for (const char *name : {nameOf(part), part == DataPart::train ? "" : "val"}) // ImageNet calls the test folder `val`
    if (*name && has(files, name) && hasImages(concat(folder, "/", name)))
      return imageTable(concat(folder, "/", name), /*augments=*/false, classesOfParts(folder));
  return std::nullopt;
}

static bool hasImageParts(const std::string &folder, const Files &files) {
  return openImagePart(folder, files, DataPart::train) || openImagePart(folder, files, DataPart::test);
}

static bool hasImageClasses(const std::string &folder, const Files &files) {
  return !hasImageParts(folder, files) && hasImages(folder);
}

static std::optional<Table> openImageClasses(const std::string &folder, const Files &, DataPart) {
  return imageTable(folder, /*augments=*/false);
}

static constexpr DataPath::Format folderFormats[] = {
    {"IDX files, as MNIST's", true, hasIdx, openIdxFolder},
    {"CIFAR-10's data_batch_1.bin to data_batch_5.bin and test_batch.bin", true, hasCifar10, openCifar10},
    {"CIFAR-100's train.bin and test.bin", true, hasCifar100, openCifar100},
    {"train.bin and val.bin of tokens", true, hasTokens, openTokens},
    {"train.txt and test.txt", true, hasTexts, openTexts, Kind::text},
    {"train.npz and test.npz", true, hasNpzParts, openNpzPart},
    {"folders train and test of .npy files", true, hasNpyParts, openNpyPart},
    {"folders train and test of folders of images", true, hasImageParts, openImagePart, Kind::images},
    {"folders of images", false, hasImageClasses, openImageClasses, Kind::images},
    {".npy files", false, hasNpy, openNpyFolder},
};

/// An array is a column with the name of the file. An array of integers in one dimension also has the columns of
/// tokens. If a column has both meanings, the array is cut into windows if the input takes several tokens per row.
static Table npyOrTokens(const std::string &path) {
  Table table = npyTable(path);
  Table::Source array = table.columns.front();
  for (Table::Source &windows : npyTokens(path))
    if (windows.name != array.name)
      table.columns.push_back(std::move(windows));
    else
      table.columns.front().open = [array, windows](const Shape &row) {
        std::unique_ptr<Column> column = array.open(row);
        return column->header().shape.empty() && elementsOf(row) > 1 ? windows.open(row) : std::move(column);
      };
  return table;
}

/// A kind of file, opened by `open`. A file has no parts.
template <Table (*open)(const std::string &)>
static constexpr DataPath::Format formatOf(const char *what, Kind kind = Kind::rows) {
  return {what, false, nullptr,
          [](const std::string &path, const Files &, DataPart) { return std::optional(open(path)); }, kind};
}

static constexpr DataPath::Format npyFile = formatOf<npyOrTokens>("an .npy file"),
                                  npzFile = formatOf<npzTable>("an .npz file"),
                                  binaryFile = formatOf<binaryTokens>("a .bin file of tokens"),
                                  textFile = formatOf<textTokens>("a text", Kind::text);

static const DataPath::Format &formatOfFile(const std::string &path) {
  Bytes start = MappedFile(path).read(0, 8);
  auto begins = [&](std::string_view magic) {
    return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\x93NUMPY"))
    return npyFile;
  if (begins("PK\x03\x04") || begins("PK\x05\x06"))
    return npzFile;
  if (path.ends_with(".bin"))
    return binaryFile;
  if (path.ends_with(".txt"))
    return textFile;
  failInvalid(concat(path, ": is neither an .npy, .npz, .bin nor .txt file, and no folder of data"));
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
    failInvalid(concat(folder, ": has no data; supported: ", listed(all)));
  return *found;
}

DataPath::DataPath(const std::string &path, DataOptions options) : path_(path), options_(std::move(options)) {
  std::error_code error;
  bool isFolder = fs::is_directory(path, error);
  if (isFolder)
    files_ = filesIn(path);
  format_ = isFolder ? &formatOfFolder(path, files_) : &formatOfFile(path);
  if (!options_.tokenizer.empty() && format_->kind != Kind::text)
    failUsage(concat("--tokenizer is for texts, and ", path, " is ", format_->what));
  if (options_.augments && format_->kind != Kind::images)
    failUsage(concat("--augment is for folders of images, and ", path, " is ", format_->what));
}

std::vector<std::string> DataPath::classes() const {
  if (format_->kind != Kind::images)
    return {};
  return hasParts() ? classesOfParts(path_) : imageClasses(path_);
}

bool DataPath::hasParts() const { return format_->hasParts; }

std::optional<Table> DataPath::open(DataPart part) const {
  std::optional<Table> table = format_->open(path_, files_, part);
  if (table && format_->kind == Kind::images && (options_.augments || !options_.classes.empty()))
    return imageTable(table->path, options_.augments && part == DataPart::train,
                      options_.classes.empty() ? table->classes : options_.classes);
  return table && !options_.tokenizer.empty() ? bpeTokens(table->path, options_.tokenizer) : table;
}

std::optional<Table> DataPath::part(DataPart part) const { return hasParts() ? open(part) : std::nullopt; }

Table DataPath::whole() const { return *open(DataPart::train); }

} // namespace sluice::runtime
