#include "runtime/data/images/Images.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/images/Resize.h"
#include "runtime/io/Shuffle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

namespace sluice::runtime {

namespace fs = std::filesystem;

namespace {
struct ImageFile {
  std::string path;
  int32_t label;
  ImageKind kind;
};
using ImageFiles = std::shared_ptr<const std::vector<ImageFile>>;
} // namespace

//===- files ------------------------------------------------------------------------------------------------------===//

static bool endsInAny(const std::string &name, std::span<const std::string_view> endings) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return std::ranges::any_of(endings, [&](std::string_view ending) { return lower.ends_with(ending); });
}

static std::optional<ImageKind> kindOf(const std::string &name) {
  static constexpr std::string_view jpeg[] = {".jpg", ".jpeg", ".jpe", ".jfif"}, png[] = {".png"};
  if (endsInAny(name, jpeg))
    return ImageKind::jpeg;
  return endsInAny(name, png) ? std::optional(ImageKind::png) : std::nullopt;
}

/// Whether the file is an image in an unsupported format.
static bool isOther(const std::string &name) {
  // Other files, for example text, are ignored without a warning.
  static constexpr std::string_view others[] = {".gif",  ".bmp",  ".webp", ".tif", ".tiff", ".ppm", ".pgm",
                                                ".heic", ".avif", ".jp2",  ".jxl", ".svg",  ".ico"};
  return endsInAny(name, others);
}

/// The entries of a folder, sorted by name, without hidden files and folders.
static std::vector<fs::path> listOf(const fs::path &folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
    if (!next->path().filename().string().starts_with('.'))
      paths.push_back(next->path());
  if (error)
    failInvalid(concat(folder.string(), ": cannot read the folder: ", error.message()));
  std::ranges::sort(paths);
  return paths;
}

static bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Calls `visit` for each file in a folder and its subfolders, in name order, until it returns false; returns false in
/// this case.
static bool visitFiles(const fs::path &folder, const std::function<bool(const fs::path &)> &visit,
                       std::vector<fs::path> above = {}) {
  std::error_code ignored;
  fs::path canonical = fs::canonical(folder, ignored);
  if (std::ranges::find(above, canonical) != above.end())
    return true; // a symbolic link forms a cycle
  above.push_back(canonical);
  return std::ranges::all_of(listOf(folder), [&](const fs::path &path) {
    return isFolder(path) ? visitFiles(path, visit, above) : visit(path);
  });
}

static bool hasImage(const fs::path &folder) {
  return !visitFiles(folder, [](const fs::path &path) { return !kindOf(path.filename()); });
}

std::vector<std::string> imageClasses(const std::string &folder) {
  std::vector<std::string> classes;
  for (const fs::path &path : listOf(folder))
    if (isFolder(path) && hasImage(path))
      classes.push_back(path.filename());
  return classes;
}

namespace {

/// The images of a folder of classes.
class ImageList {
public:
  /// Labels are indices into `classes`, or into the folder's own classes if `classes` is empty.
  ImageList(std::string folder, std::vector<std::string> classes)
      : folder_(std::move(folder)), classes_(std::move(classes)) {
    if (classes_.empty())
      classes_ = imageClasses(folder_);
    for (const fs::path &path : listOf(folder_))
      if (isFolder(path))
        visitFiles(path, [&](const fs::path &file) { return add(path, file); });
      else
        others_ += kindOf(path.filename()) || isOther(path.filename()) ? note(path) : 0;
  }

  std::vector<ImageFile> takeImages() { return std::move(images_); }
  const std::vector<std::string> &classes() const { return classes_; }
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (others_ > 0)
      notes.push_back(concat("warning: ", folder_, ": ", others_, others_ == 1 ? " image is" : " images are",
                             " left out, such as ", example_, ": JPEG and PNG files in folders of classes are read"));
    if (classes_.size() == 1)
      notes.push_back(concat("warning: ", folder_, ": all images are of one class, ", quote(classes_.front())));
    return notes;
  }

private:
  bool add(const fs::path &ofClass, const fs::path &file) {
    if (std::optional<ImageKind> kind = kindOf(file.filename()))
      images_.push_back({file, labelOf(ofClass), *kind});
    else if (isOther(file.filename()))
      others_ += note(file);
    return true;
  }

  int note(const fs::path &file) {
    if (example_.empty())
      example_ = file.lexically_relative(folder_);
    return 1;
  }

  int32_t labelOf(const fs::path &ofClass) const {
    auto found = std::ranges::find(classes_, ofClass.filename().string());
    if (found == classes_.end())
      failInvalid(concat(folder_, ": has images of a class ", quote(ofClass.filename().string()),
                         ", which the training part does not have"));
    return static_cast<int32_t>(found - classes_.begin());
  }

  std::string folder_;
  std::vector<std::string> classes_;
  std::vector<ImageFile> images_;
  int64_t others_ = 0;
  std::string example_;
};

} // namespace

bool hasImages(const std::string &folder) {
  if (!isFolder(folder))
    return false;
  return std::ranges::any_of(listOf(folder), [](const fs::path &path) { return isFolder(path) && hasImage(path); });
}

//===- columns ----------------------------------------------------------------------------------------------------===//

namespace {

/// A crop of an image in pixels, and whether it is mirrored.
struct Part {
  int64_t width, height; ///< size of the whole image after resizing
  int64_t left, top;
  bool isMirrored;
};

class ImageColumn final : public Column {
public:
  ImageColumn(ColumnHeader header, ImageFiles files, bool augments)
      : Column(std::move(header)), files_(std::move(files)), augments_(augments) {}

  void beginEpoch(uint64_t seed, uint64_t epoch) override {
    if (!augments_)
      return;
    static constexpr std::array<uint32_t, 2> purpose = {0x696d6167u, 0x65732121u};
    key_ = threefry2x32(threefry2x32(wordsOf(seed), purpose), wordsOf(epoch));
  }
  bool isCostly() const override { return true; }

private:
  void copy(int64_t row, std::span<std::byte> to) const override {
    const std::string &path = (*files_)[static_cast<size_t>(row)].path;
    Image image = decodeImage(readFile(path), path);
    Part part = partOf(image, row);
    write(resized(image, part.width, part.height), part, reinterpret_cast<uint8_t *>(to.data()));
  }
  std::pair<std::string, int64_t> place(int64_t row) const override {
    return {(*files_)[static_cast<size_t>(row)].path, row};
  }

  int64_t height() const { return header().shape[1]; }
  int64_t width() const { return header().shape[2]; }

  /// The size of an image after resizing, and the crop: centered, or random if there is a key.
  Part partOf(const Image &image, int64_t row) const {
    double scale = std::max(static_cast<double>(width()) / static_cast<double>(image.width),
                            static_cast<double>(height()) / static_cast<double>(image.height));
    auto across = [&](int64_t size, int64_t least) {
      return std::max(least, static_cast<int64_t>(static_cast<double>(size) * scale * (key_ ? 1.125 : 1.0) + 0.5));
    };
    Part part{across(image.width, width()), across(image.height, height()), 0, 0, false};
    int64_t roomX = part.width - width(), roomY = part.height - height();
    if (!key_)
      return {part.width, part.height, roomX / 2, roomY / 2, false};
    auto words = threefry2x32(*key_, wordsOf(static_cast<uint64_t>(row)));
    part.left = static_cast<int64_t>(static_cast<uint64_t>(words[0]) * static_cast<uint64_t>(roomX + 1) >> 32);
    part.top = static_cast<int64_t>(static_cast<uint64_t>(words[1] >> 1) * static_cast<uint64_t>(roomY + 1) >> 31);
    part.isMirrored = words[1] & 1;
    return part;
  }

  /// Writes one plane per channel. Gray is computed as by Pillow's convert("L").
  void write(const Image &image, const Part &part, uint8_t *to) const {
    int64_t area = height() * width();
    bool isGrey = header().shape[0] == 1;
    for (int64_t y = 0; y < height(); ++y)
      for (int64_t x = 0; x < width(); ++x) {
        int64_t column = part.left + (part.isMirrored ? width() - 1 - x : x);
        const uint8_t *pixel = &image.pixels[static_cast<size_t>((part.top + y) * image.width + column) * 3];
        uint8_t *at = to + y * width() + x;
        if (isGrey)
          *at = static_cast<uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
        for (int64_t channel = 0; !isGrey && channel < 3; ++channel)
          at[channel * area] = pixel[channel];
      }
  }

  ImageFiles files_;
  bool augments_;
  std::optional<std::array<uint32_t, 2>> key_; ///< of the epoch; without a key the crop is centered
};

class LabelColumn final : public Column {
public:
  LabelColumn(ColumnHeader header, ImageFiles files) : Column(std::move(header)), files_(std::move(files)) {}

private:
  void copy(int64_t row, std::span<std::byte> to) const override {
    std::memcpy(to.data(), &(*files_)[static_cast<size_t>(row)].label, sizeof(int32_t));
  }

  ImageFiles files_;
};

} // namespace

static std::unique_ptr<Column> openImages(const std::string &folder, const ImageFiles &files, const Shape &row,
                                          bool augments) {
  if (row.size() != 3 || (row[0] != 1 && row[0] != 3))
    failInvalid(concat(folder, ": images fill [3, H, W] or [1, H, W], not ", shapeText(row)));
  for (ImageKind kind : {ImageKind::jpeg, ImageKind::png})
    if (std::ranges::find(*files, kind, &ImageFile::kind) != files->end())
      requireDecoder(kind);
  return std::make_unique<ImageColumn>(
      ColumnHeader{"image", folder, DType::u8, row, static_cast<int64_t>(files->size())}, files, augments);
}

Table imageTable(const std::string &folder, bool augments, const std::vector<std::string> &classes) {
  ImageList list(folder, classes);
  ImageFiles files = std::make_shared<const std::vector<ImageFile>>(list.takeImages());
  ColumnHeader labels{"label", folder, DType::i32, {}, static_cast<int64_t>(files->size())};
  return {folder,
          {{"image", [=](const Shape &row) { return openImages(folder, files, row, augments); }},
           {"label", [=](const Shape &) { return std::make_unique<LabelColumn>(labels, files); }}},
          list.notes(),
          list.classes()};
}

} // namespace sluice::runtime
