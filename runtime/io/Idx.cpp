#include "runtime/io/Idx.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <zlib.h>

namespace sluice::runtime {

static constexpr int64_t mostElements = INT64_C(1) << 36;
static constexpr int64_t blockBytes = INT64_C(1) << 20;

namespace {

/// Bytes of a file that may be gzipped.
class GzReader {
public:
  explicit GzReader(const std::string &path) : path_(path) {
    struct stat facts;
    if (stat(path.c_str(), &facts) != 0)
      failSystem(path, "open");
    if (!S_ISREG(facts.st_mode))
      failInvalid(concat(path, ": not a regular file"));
    file_ = gzopen(path.c_str(), "rbe");
    if (!file_)
      failSystem(path, "open");
    gzbuffer(file_, 1 << 17);
    if (path.ends_with(".gz") && gzdirect(file_)) {
      gzclose(file_);
      failInvalid(concat(path, ": not gzip data"));
    }
  }
  GzReader(const GzReader &) = delete;
  GzReader &operator=(const GzReader &) = delete;
  ~GzReader() { gzclose(file_); }

  /// Reads up to `bytes` bytes, fewer only at the end of the file.
  int64_t read(std::byte *to, int64_t bytes) {
    int64_t have = 0;
    while (have < bytes) {
      int count = gzread(file_, to + have, static_cast<unsigned>(std::min(bytes - have, blockBytes)));
      if (count < 0)
        failDamaged();
      if (count == 0)
        break;
      have += count;
    }
    int code = Z_OK;
    gzerror(file_, &code);
    if (code == Z_BUF_ERROR)
      failInvalid(concat(path_, ": truncated: the gzip stream ends early"));
    if (code != Z_OK && code != Z_STREAM_END)
      failDamaged();
    return have;
  }

private:
  [[noreturn]] void failDamaged() {
    int code = Z_OK;
    std::string reason = gzerror(file_, &code);
    if (code == Z_ERRNO)
      failSystem(path_, "read");
    failInvalid(concat(path_, ": damaged gzip data: ", reason));
  }

  const std::string &path_;
  gzFile file_ = nullptr;
};

} // namespace

static uint32_t bigEndian(const std::byte *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

static Shape readHeader(GzReader &reader, const std::string &path, size_t rank) {
  std::byte head[4 + 4 * 255];
  int64_t headBytes = static_cast<int64_t>(4 + 4 * rank);
  int64_t have = reader.read(head, headBytes);
  if (have >= 4) {
    uint32_t magic = bigEndian(head);
    if ((magic & 0xffffff00u) != 0x0800u)
      failInvalid(concat(path, ": not an IDX file of bytes: its magic number is ", magic, ", not ", 0x0800 + rank));
    if ((magic & 0xff) != rank)
      failInvalid(concat(path, ": has ", magic & 0xff, " dimensions, expected ", rank));
  }
  if (have < headBytes)
    failInvalid(concat(path, ": truncated: ", have, " bytes, but the header alone has ", headBytes));
  Shape shape;
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(bigEndian(head + 4 + 4 * i));
  return shape;
}

IdxFile readIdx(const std::string &path, size_t rank) {
  GzReader reader(path);
  IdxFile file;
  file.shape = readHeader(reader, path, rank);
  std::optional<int64_t> size = checkedElements(file.shape, 1);
  if (!size || *size > mostElements)
    failInvalid(
        concat(path, ": the header promises ", shapeText(file.shape), " bytes, more than the limit of ", mostElements));
  // The buffer grows with what is there, not with what the header promises.
  while (static_cast<int64_t>(file.data.size()) < *size) {
    int64_t have = static_cast<int64_t>(file.data.size());
    int64_t wanted = std::min(*size - have, std::max(blockBytes, have));
    file.data.resize(static_cast<size_t>(have + wanted));
    int64_t count = reader.read(file.data.data() + have, wanted);
    if (count < wanted)
      failInvalid(concat(path, ": truncated: the header promises ", shapeText(file.shape), ", ", *size, " bytes, but ",
                         have + count, " are there"));
  }
  std::byte extra;
  if (reader.read(&extra, 1) != 0)
    failInvalid(
        concat(path, ": has more than the ", *size, " bytes that its header promises, ", shapeText(file.shape)));
  return file;
}

static std::string findPart(const std::string &folder, const std::string &stem) {
  struct stat facts;
  if (stat(folder.c_str(), &facts) != 0)
    failSystem(folder, "open the data folder");
  if (!S_ISDIR(facts.st_mode))
    failInvalid(concat(folder, ": the data must be a folder of IDX files, but this is a file"));
  for (const char *ending : {"", ".gz"}) {
    std::string path = concat(folder, "/", stem, ending);
    if (stat(path.c_str(), &facts) == 0)
      return path;
  }
  failInvalid(concat(folder, ": has neither ", stem, " nor ", stem, ".gz"));
}

ImageSet readImages(const std::string &folder, const std::string &part) {
  std::string imagePath = findPart(folder, part + "-images-idx3-ubyte");
  std::string labelPath = findPart(folder, part + "-labels-idx1-ubyte");
  IdxFile images = readIdx(imagePath, 3);
  IdxFile labels = readIdx(labelPath, 1);
  if (images.shape[0] != labels.shape[0])
    failInvalid(
        concat(imagePath, ": has ", images.shape[0], " images, but ", labelPath, " has ", labels.shape[0], " labels"));
  if (elementsOf(images.shape) == 0)
    failInvalid(concat(imagePath, ": has no images: ", shapeText(images.shape)));
  return {images.shape[0], images.shape[1], images.shape[2], std::move(images.data), std::move(labels.data)};
}

} // namespace sluice::runtime
