#include "runtime/data/images/Idx.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/tables/Deflate.h"

#include <algorithm>
#include <cerrno>
#include <zlib.h>

namespace sluice::runtime {

static constexpr int64_t mostElements = INT64_C(1) << 36;
static constexpr int64_t blockBytes = INT64_C(1) << 20; // of one gzread, which takes 32-bit sizes

namespace {

/// Decompresses a gzip file from its beginning.
class GzReader {
public:
  explicit GzReader(const std::string &path) : path_(path), file_(gzopen(path.c_str(), "rbe")) {
    if (!file_)
      failSystem(path, "open");
    gzbuffer(file_, 1 << 17);
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

  std::string path_;
  gzFile file_;
};

} // namespace

static size_t headerBytes(size_t rank) { return 4 + 4 * rank; }

static uint32_t bigEndian(const std::byte *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<uint32_t>(bytes[i]);
  return value;
}

/// The shape in the header at the beginning of a file.
static Shape parseHeader(std::span<const std::byte> head, size_t rank, const std::string &path) {
  if (head.size() >= 4) {
    uint32_t magic = bigEndian(head.data());
    if ((magic & 0xffffff00u) != 0x0800u)
      failInvalid(concat(path, ": not an IDX file of bytes: its magic number is ", magic, ", not ", 0x0800 + rank));
    if ((magic & 0xff) != rank)
      failInvalid(concat(path, ": has ", magic & 0xff, " dimensions, expected ", rank));
  }
  if (head.size() < headerBytes(rank))
    failInvalid(concat(path, ": truncated: ", head.size(), " bytes, but the header alone has ", headerBytes(rank)));
  Shape shape;
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(bigEndian(head.data() + 4 + 4 * i));
  std::optional<int64_t> size = checkedElements(shape, 1);
  if (!size || *size > mostElements)
    failInvalid(
        concat(path, ": the header promises ", shapeText(shape), " bytes, more than the limit of ", mostElements));
  return shape;
}

[[noreturn]] static void failTruncated(const std::string &path, const Shape &shape, const std::string &what) {
  failInvalid(concat(path, ": truncated: the header promises ", shapeText(shape), ", ", elementsOf(shape),
                     " bytes, but ", what));
}

static void checkEnd(const std::string &path, const Shape &shape, bool hasMore) {
  if (hasMore)
    failInvalid(
        concat(path, ": has more than the ", elementsOf(shape), " bytes that its header promises, ", shapeText(shape)));
}

static Bytes unpack(const std::string &path, const Shape &shape) {
  GzReader reader(path);
  Bytes head(headerBytes(shape.size()));
  reader.read(head.data(), static_cast<int64_t>(head.size()));
  Bytes data = readGrowing(
      elementsOf(shape), [&](std::byte *to, int64_t bytes) { return reader.read(to, bytes); },
      [&](int64_t have) { failTruncated(path, shape, concat(have, " are there")); });
  std::byte extra;
  checkEnd(path, shape, reader.read(&extra, 1) != 0);
  return data;
}

static std::unique_ptr<Column> openPacked(const MappedFile &file, const std::string &column, size_t rank) {
  GzReader reader(file.path());
  Bytes head(headerBytes(rank));
  head.resize(static_cast<size_t>(reader.read(head.data(), static_cast<int64_t>(head.size()))));
  Shape shape = parseHeader(head, rank, file.path());
  int64_t most = mostUnpacked(file.bytes());
  if (elementsOf(shape) > most)
    failTruncated(file.path(), shape, concat("at most ", most, " are there"));
  return std::make_unique<UnpackedColumn>(ColumnHeader::of(column, file.path(), DType::u8, shape),
                                          [path = file.path(), shape] { return unpack(path, shape); });
}

std::unique_ptr<Column> openIdx(const std::string &path, const std::string &column, size_t rank) {
  auto file = std::make_shared<MappedFile>(path);
  Bytes head = file->read(0, static_cast<int64_t>(headerBytes(rank)));
  if (head.size() >= 2 && head[0] == std::byte(0x1f) && head[1] == std::byte(0x8b))
    return openPacked(*file, column, rank);
  if (path.ends_with(".gz"))
    failInvalid(concat(path, ": not gzip data"));
  Shape shape = parseHeader(head, rank, path);
  int64_t begin = static_cast<int64_t>(headerBytes(rank)), have = file->bytes() - begin;
  if (have < elementsOf(shape))
    failTruncated(path, shape, concat(have, " are there"));
  checkEnd(path, shape, have > elementsOf(shape));
  return mappedColumn(file, ColumnHeader::of(column, path, DType::u8, shape), begin);
}

/// Removes the suffix `ending` from `text` if present.
static bool takeEnding(std::string &text, std::string_view ending) {
  bool found = text.ends_with(ending);
  text.resize(text.size() - (found ? ending.size() : 0));
  return found;
}

bool parseIdxName(const std::string &file, IdxName &parsed) {
  std::string rest = file;
  parsed.isPacked = takeEnding(rest, ".gz");
  size_t dash = rest.find('-');
  if (!takeEnding(rest, "-ubyte") || dash >= rest.size())
    return false;
  parsed.part = rest.substr(0, dash);
  parsed.rank = static_cast<size_t>(static_cast<unsigned char>(rest.back()) - '0');
  rest.pop_back();
  if (!takeEnding(rest, "-idx") || dash >= rest.size())
    return false;
  parsed.column = rest.substr(dash + 1);
  takeEnding(parsed.column, "s"); // column names are singular: `image`
  bool isPart = parsed.part == "train" || parsed.part == "t10k";
  return isPart && parsed.rank >= 1 && parsed.rank <= 9 && !parsed.column.empty();
}

Table idxTable(const std::string &folder, const std::vector<std::string> &files, const std::string &part) {
  Table table{folder, {}};
  for (bool isPacked : {false, true})
    for (const std::string &file : files) {
      IdxName name;
      if (!parseIdxName(file, name) || name.part != part || name.isPacked != isPacked)
        continue;
      auto isSame = [&](const Table::Source &source) { return source.name == name.column; };
      if (std::none_of(table.columns.begin(), table.columns.end(), isSame))
        table.columns.push_back({name.column, [path = concat(folder, "/", file), name](const Shape &) {
                                   return openIdx(path, name.column, name.rank);
                                 }});
    }
  return table;
}

} // namespace sluice::runtime
