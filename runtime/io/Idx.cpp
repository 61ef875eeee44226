#include "runtime/io/Idx.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <zlib.h>

namespace sluice::runtime {

static constexpr int64_t mostElements = INT64_C(1) << 36;
static constexpr int64_t blockBytes = INT64_C(1) << 20;
static constexpr int64_t mostGain = 1032; // of deflate: bytes out of one byte

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
    fileBytes_ = std::min(static_cast<int64_t>(facts.st_size), INT64_MAX / mostGain);
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

  /// What can be in gzip data of this size; a plain file ends where it ends.
  int64_t mostBytes() const { return gzdirect(file_) ? INT64_MAX : fileBytes_ * mostGain; }

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
  int64_t fileBytes_ = 0;
};

} // namespace

static uint32_t bigEndian(const std::byte *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

namespace {

/// An IDX file whose header has been read; the elements follow when they are asked for.
class IdxReader {
public:
  IdxReader(const std::string &path, size_t rank) : path_(path), reader_(path_) {
    readHeader(rank);
    std::optional<int64_t> size = checkedElements(shape_, 1);
    if (!size || *size > mostElements)
      failInvalid(
          concat(path_, ": the header promises ", shapeText(shape_), " bytes, more than the limit of ", mostElements));
    size_ = *size;
    if (int64_t most = reader_.mostBytes(); size_ > most)
      failInvalid(concat(path_, ": truncated: the header promises ", shapeText(shape_), ", ", size_,
                         " bytes, but at most ", most, " are there"));
  }

  const std::string &path() const { return path_; }
  const Shape &shape() const { return shape_; }

  Bytes readElements() {
    // The buffer grows with what is there, not with what the header promises.
    Bytes data;
    while (static_cast<int64_t>(data.size()) < size_) {
      int64_t have = static_cast<int64_t>(data.size());
      int64_t wanted = std::min(size_ - have, std::max(blockBytes, have));
      data.resize(static_cast<size_t>(have + wanted));
      int64_t count = reader_.read(data.data() + have, wanted);
      if (count < wanted)
        failInvalid(concat(path_, ": truncated: the header promises ", shapeText(shape_), ", ", size_, " bytes, but ",
                           have + count, " are there"));
    }
    std::byte extra;
    if (reader_.read(&extra, 1) != 0)
      failInvalid(concat(path_, ": has more than the ", size_, " bytes that its header promises, ", shapeText(shape_)));
    return data;
  }

private:
  void readHeader(size_t rank) {
    std::byte head[4 + 4 * 255];
    int64_t headBytes = static_cast<int64_t>(4 + 4 * rank);
    int64_t have = reader_.read(head, headBytes);
    if (have >= 4) {
      uint32_t magic = bigEndian(head);
      if ((magic & 0xffffff00u) != 0x0800u)
        failInvalid(concat(path_, ": not an IDX file of bytes: its magic number is ", magic, ", not ", 0x0800 + rank));
      if ((magic & 0xff) != rank)
        failInvalid(concat(path_, ": has ", magic & 0xff, " dimensions, expected ", rank));
    }
    if (have < headBytes)
      failInvalid(concat(path_, ": truncated: ", have, " bytes, but the header alone has ", headBytes));
    for (size_t i = 0; i < rank; ++i)
      shape_.push_back(bigEndian(head + 4 + 4 * i));
  }

  std::string path_;
  GzReader reader_;
  Shape shape_;
  int64_t size_ = 0;
};

} // namespace

IdxFile readIdx(const std::string &path, size_t rank) {
  IdxReader reader(path, rank);
  return {reader.shape(), reader.readElements()};
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

ImageSet readImages(const std::string &folder, const std::string &part, const ImageCheck &check) {
  // Both headers and the check come first: elements may unpack to a thousand times what is on the disk.
  IdxReader images(findPart(folder, part + "-images-idx3-ubyte"), 3);
  IdxReader labels(findPart(folder, part + "-labels-idx1-ubyte"), 1);
  const Shape &shape = images.shape();
  if (shape[0] != labels.shape()[0])
    failInvalid(concat(images.path(), ": has ", shape[0], " images, but ", labels.path(), " has ", labels.shape()[0],
                       " labels"));
  if (elementsOf(shape) == 0)
    failInvalid(concat(images.path(), ": has no images: ", shapeText(shape)));
  ImageSet set{shape[0], shape[1], shape[2], {}, {}};
  if (check)
    check(set);
  set.labels = labels.readElements();
  set.pixels = images.readElements();
  return set;
}

} // namespace sluice::runtime
