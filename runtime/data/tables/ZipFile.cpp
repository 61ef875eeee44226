#include "runtime/data/tables/ZipFile.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/tables/Deflate.h"

#include <algorithm>
#include <new>
#include <optional>
#include <zlib.h>

namespace sluice::runtime {

// Signatures, and the bytes of each record without names, extra fields and comments.
static constexpr uint64_t memberSignature = 0x04034b50, entrySignature = 0x02014b50, endSignature = 0x06054b50,
                          end64Signature = 0x06064b50, locatorSignature = 0x07064b50;
static constexpr int64_t memberBytes = 30, entryBytes = 46, endBytes = 22, end64Bytes = 56, locatorBytes = 20;
static constexpr int64_t mostCommentBytes = UINT16_MAX;
static constexpr uint64_t in64Bits = UINT32_MAX; ///< marks a size stored in the 64-bit extra field
static constexpr unsigned stored = 0, deflated = 8;
static constexpr int64_t blockBytes = 1 << 17;

namespace {

/// Reads little-endian numbers from a range of an archive; the caller has checked the size.
class Fields {
public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t at(int64_t place, int size) const {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i)
      value |= std::to_integer<uint64_t>(bytes_[static_cast<size_t>(place + i)]) << 8 * i;
    return value;
  }

private:
  std::span<const std::byte> bytes_;
};

/// The location of the directory.
struct DirectoryRange {
  uint64_t begin = 0, bytes = 0, members = 0;
};

/// Reads the directory of an archive.
class DirectoryReader {
public:
  explicit DirectoryReader(const MappedFile &archive) : archive_(archive) {}

  std::vector<ZipMember> read() {
    place_ = findDirectory();
    if (place_.begin > size() || place_.bytes > size() - place_.begin)
      fail(concat("its directory of ", place_.bytes, " bytes at ", place_.begin, " lies beyond the end"));
    if (place_.members > place_.bytes / entryBytes)
      fail(concat("its directory of ", place_.bytes, " bytes cannot have ", place_.members, " members"));
    Bytes directory = archive_.read(static_cast<int64_t>(place_.begin), static_cast<int64_t>(place_.bytes));
    std::span<const std::byte> rest(directory);
    std::vector<ZipMember> members;
    for (uint64_t i = 0; i < place_.members; ++i)
      members.push_back(readEntry(rest));
    if (!rest.empty())
      fail("its directory has more than its members");
    checkOverlap(members);
    return members;
  }

private:
  uint64_t size() const { return static_cast<uint64_t>(archive_.bytes()); }

  [[noreturn]] void fail(const std::string &message) const {
    failInvalid(concat(archive_.path(), ": damaged zip archive: ", message));
  }

  /// Searches the end of the archive for the end record, which a comment may follow.
  DirectoryRange findDirectory() const {
    int64_t begin = std::max<int64_t>(0, archive_.bytes() - endBytes - mostCommentBytes);
    Bytes tail = archive_.read(begin, endBytes + mostCommentBytes);
    Fields fields(tail);
    for (int64_t at = static_cast<int64_t>(tail.size()) - endBytes; at >= 0; --at) {
      int64_t comment = static_cast<int64_t>(tail.size()) - at - endBytes;
      if (fields.at(at, 4) == endSignature && static_cast<int64_t>(fields.at(at + 20, 2)) == comment)
        return directoryAt(begin + at, Fields(std::span(tail).subspan(static_cast<size_t>(at))));
    }
    fail("it is truncated, for it has no directory at its end");
  }

  DirectoryRange directoryAt(int64_t end, const Fields &record) const {
    DirectoryRange place{record.at(16, 4), record.at(12, 4), record.at(10, 2)};
    bool isLarge = place.begin == in64Bits || place.bytes == in64Bits || place.members == UINT16_MAX;
    if (record.at(4, 2) != record.at(6, 2) || record.at(8, 2) != record.at(10, 2))
      fail("it is one of several disks");
    return isLarge ? largeDirectory(end, place) : place;
  }

  /// The directory in the records of large archives, if these records precede the end record.
  DirectoryRange largeDirectory(int64_t end, const DirectoryRange &small) const {
    if (end < locatorBytes)
      return small;
    Bytes found = archive_.read(end - locatorBytes, locatorBytes);
    Fields locator(found);
    if (locator.at(0, 4) != locatorSignature)
      return small;
    uint64_t at = locator.at(8, 8);
    if (at > size() || size() - at < static_cast<uint64_t>(end64Bytes))
      fail("its 64-bit directory record lies beyond the end");
    Bytes content = archive_.read(static_cast<int64_t>(at), end64Bytes);
    Fields record(content);
    if (record.at(0, 4) != end64Signature)
      fail("it has no 64-bit directory record where it says");
    if (record.at(24, 8) != record.at(32, 8))
      fail("it is one of several disks");
    return {record.at(48, 8), record.at(40, 8), record.at(32, 8)};
  }

  /// Parses the first entry of `rest` and advances `rest`.
  ZipMember readEntry(std::span<const std::byte> &rest) const {
    if (rest.size() < entryBytes || Fields(rest).at(0, 4) != entrySignature)
      fail("its directory ends in the middle of a member");
    Fields entry(rest);
    size_t nameBytes = entry.at(28, 2), extraBytes = entry.at(30, 2), commentBytes = entry.at(32, 2);
    if (rest.size() < entryBytes + nameBytes + extraBytes + commentBytes)
      fail("its directory ends in the middle of a member");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char *>(rest.data()) + entryBytes, nameBytes);
    if (entry.at(8, 2) & 1)
      failInvalid(concat(archive_.path(), ": ", quote(member.name), " is encrypted"));
    if (uint64_t method = entry.at(10, 2); method != stored && method != deflated)
      failInvalid(concat(archive_.path(), ": ", quote(member.name), " is compressed by method ", method,
                         "; stored and deflated members are read"));
    member.isDeflated = entry.at(10, 2) == deflated;
    member.checksum = static_cast<uint32_t>(entry.at(16, 4));
    uint64_t sizes[] = {entry.at(24, 4), entry.at(20, 4), entry.at(42, 4)}; // unpacked size, packed size, offset
    readLargeSizes(rest.subspan(entryBytes + nameBytes, extraBytes), sizes, member.name);
    setDeviceAndPin(member, sizes[0], sizes[1], sizes[2]);
    rest = rest.subspan(entryBytes + nameBytes + extraBytes + commentBytes);
    return member;
  }

  /// Replaces the sizes that do not fit into 32 bits. They are in extra field 1, in the order of `sizes`.
  void readLargeSizes(std::span<const std::byte> extra, std::span<uint64_t> sizes, const std::string &name) const {
    while (extra.size() >= 4) {
      size_t bytes = Fields(extra).at(2, 2);
      if (bytes > extra.size() - 4)
        break;
      Fields field(extra.subspan(4, bytes));
      size_t at = 0;
      for (uint64_t &size : sizes) {
        if (Fields(extra).at(0, 2) != 1 || size != in64Bits)
          continue;
        if (at + 8 > bytes)
          fail(concat(quote(name), " lacks a 64-bit size"));
        size = field.at(static_cast<int64_t>(at), 8);
        at += 8;
      }
      extra = extra.subspan(4 + bytes);
    }
  }

  /// Sets the location and the sizes of a member's data after checking them; the local header is at offset `at`. The
  /// data follows the local header, whose name and extra field may have other lengths than those in the directory.
  void setDeviceAndPin(ZipMember &member, uint64_t bytes, uint64_t packedBytes, uint64_t at) const {
    if (at > place_.begin || place_.begin - at < static_cast<uint64_t>(memberBytes))
      fail(concat(quote(member.name), " begins at ", at, ", beyond the members"));
    Bytes header = archive_.read(static_cast<int64_t>(at), memberBytes);
    Fields fields(header);
    if (fields.at(0, 4) != memberSignature)
      fail(concat(quote(member.name), " is not where the directory says"));
    uint64_t begin = at + memberBytes + fields.at(26, 2) + fields.at(28, 2);
    if (begin > place_.begin || packedBytes > place_.begin - begin)
      fail(concat(quote(member.name), " with ", packedBytes, " bytes reaches beyond the members"));
    uint64_t most =
        member.isDeflated ? static_cast<uint64_t>(mostUnpacked(static_cast<int64_t>(packedBytes))) : packedBytes;
    if (member.isDeflated ? bytes > most : bytes != most)
      fail(concat(quote(member.name), " promises ", bytes, " bytes, but ", member.isDeflated ? "at most " : "", most,
                  " are there"));
    member.begin = static_cast<int64_t>(begin);
    member.packedBytes = static_cast<int64_t>(packedBytes);
    member.bytes = static_cast<int64_t>(bytes);
  }

  void checkOverlap(const std::vector<ZipMember> &members) const {
    std::vector<const ZipMember *> sorted;
    for (const ZipMember &member : members)
      sorted.push_back(&member);
    std::sort(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return a->begin < b->begin; });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i - 1]->begin + sorted[i - 1]->packedBytes > sorted[i]->begin)
        fail(concat(quote(sorted[i - 1]->name), " and ", quote(sorted[i]->name), " overlap"));
  }

  const MappedFile &archive_;
  DirectoryRange place_;
};

} // namespace

std::vector<ZipMember> readZipDirectory(const MappedFile &archive) { return DirectoryReader(archive).read(); }

static std::string nameOf(const MappedFile &archive, const ZipMember &member) {
  return concat(archive.path(), ": ", quote(member.name));
}

static void checkSum(const MappedFile &archive, const ZipMember &member, unsigned long sum) {
  if (sum != member.checksum)
    failInvalid(concat(nameOf(archive, member), " is damaged: its checksum does not fit its content"));
}

void checkStored(const MappedFile &archive, const ZipMember &member) {
  Bytes block(static_cast<size_t>(std::min(member.bytes, blockBytes)));
  unsigned long sum = 0;
  for (int64_t at = 0; at < member.bytes; at += blockBytes) {
    auto bytes = static_cast<size_t>(std::min(blockBytes, member.bytes - at));
    archive.read(member.begin + at, std::span(block).first(bytes));
    sum = crc32_z(sum, reinterpret_cast<const Bytef *>(block.data()), bytes);
  }
  checkSum(archive, member, sum);
}

Inflater::Inflater(const MappedFile &archive, const ZipMember &member)
    : archive_(archive), member_(member), stream_(std::make_unique<z_stream>()) {
  if (inflateInit2(stream_.get(), -MAX_WBITS) != Z_OK)
    throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(stream_.get()); }

std::string Inflater::name() const { return nameOf(archive_, member_); }

void Inflater::proceed() {
  if (stream_->avail_in == 0) {
    input_ = archive_.read(member_.begin + taken_, std::min(member_.packedBytes - taken_, blockBytes));
    taken_ += static_cast<int64_t>(input_.size());
    stream_->next_in = reinterpret_cast<Bytef *>(input_.data());
    stream_->avail_in = static_cast<uInt>(input_.size());
  }
  int code = inflate(stream_.get(), Z_NO_FLUSH);
  isAtEnd_ = code == Z_STREAM_END;
  if (code == Z_MEM_ERROR)
    throw std::bad_alloc();
  if (code == Z_BUF_ERROR)
    failInvalid(concat(name(), " is truncated: its deflated data ends early"));
  if (code != Z_OK && !isAtEnd_)
    failInvalid(concat(name(), " has damaged deflated data", stream_->msg ? concat(": ", stream_->msg) : ""));
}

int64_t Inflater::read(std::byte *to, int64_t bytes) {
  int64_t have = 0;
  while (have < bytes && !isAtEnd_) {
    uInt room = static_cast<uInt>(std::min<int64_t>(bytes - have, 1 << 30));
    stream_->next_out = reinterpret_cast<Bytef *>(to + have);
    stream_->avail_out = room;
    proceed();
    uInt count = room - stream_->avail_out;
    checksum_ = crc32(checksum_, reinterpret_cast<const Bytef *>(to + have), count);
    have += count;
  }
  return have;
}

void Inflater::checkEnd() {
  std::byte extra;
  if (read(&extra, 1) != 0)
    failInvalid(concat(name(), " has more than the ", member_.bytes, " bytes that the directory promises"));
  checkSum(archive_, member_, checksum_);
}

} // namespace sluice::runtime
