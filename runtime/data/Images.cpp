#include "runtime/data/Images.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/Resize.h"
#include "runtime/io/Shuffle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

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

static std::optional<ImageKind> kindOf(const std::string &name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  if (lower.ends_with(".jpg") || lower.ends_with(".jpeg"))
    return ImageKind::jpeg;
  return lower.ends_with(".png") ? std::optional(ImageKind::png) : std::nullopt;
}

/// What is in a folder, by name.
static std::vector<fs::path> listOf(const std::string &folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
    paths.push_back(next->path());
  if (error)
    failInvalid(concat(folder, ": cannot read the folder: ", error.message()));
  std::ranges::sort(paths);
  return paths;
}

static std::vector<ImageFile> filesOfClass(const std::string &folder, int32_t label) {
  std::vector<ImageFile> files;
  for (const fs::path &path : listOf(folder))
    if (std::optional<ImageKind> kind = kindOf(path.filename()))
      files.push_back({path, label, *kind});
  return files;
}

static std::vector<ImageFile> filesIn(const std::string &folder) {
  std::vector<ImageFile> files;
  int32_t label = 0;
  std::error_code ignored;
  for (const fs::path &path : listOf(folder))
    if (fs::is_directory(path, ignored)) {
      std::vector<ImageFile> its = filesOfClass(path, label);
      files.insert(files.end(), its.begin(), its.end());
      label += !its.empty();
    }
  return files;
}

bool hasImages(const std::string &folder) {
  std::error_code error;
  for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error))
    if (next->is_directory(error))
      for (fs::directory_iterator inner(next->path(), error); !error && inner != end; inner.increment(error))
        if (kindOf(inner->path().filename()))
          return true;
  return false;
}

//===- columns ----------------------------------------------------------------------------------------------------===//

namespace {

/// A part of an image, in its pixels, and whether it is mirrored.
struct Part {
  int64_t width, height; ///< of all of the image, when it was resized
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

  /// Which part of an image is taken, and at which size.
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

  /// Channels one behind another.
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
  std::optional<std::array<uint32_t, 2>> key_; ///< of the epoch; without one the middle is taken
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

Table imageTable(const std::string &folder, bool augments) {
  ImageFiles files = std::make_shared<const std::vector<ImageFile>>(filesIn(folder));
  ColumnHeader labels{"label", folder, DType::i32, {}, static_cast<int64_t>(files->size())};
  return {folder,
          {{"image", [=](const Shape &row) { return openImages(folder, files, row, augments); }},
           {"label", [=](const Shape &) { return std::make_unique<LabelColumn>(labels, files); }}}};
}

} // namespace sluice::runtime
