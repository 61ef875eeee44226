// Zip archives such as .npz files: stored or deflated members, with the 64-bit fields of large archives. The directory
// at the end is authoritative. Encryption, multiple disks and other compression methods are rejected.
#pragma once

#include "runtime/io/File.h"
#include "runtime/io/MappedFile.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s;

namespace sluice::runtime {

/// One file in an archive.
struct ZipMember {
  std::string name;
  int64_t begin = 0;       ///< offset of the data in the archive
  int64_t packedBytes = 0; ///< size of the data in the archive
  int64_t bytes = 0;       ///< unpacked size; equals packedBytes for stored members
  uint32_t checksum = 0;   ///< CRC-32 of the unpacked bytes
  bool isDeflated = false;
};

/// The members of an archive. Fails unless the data of all members precedes the directory, does not overlap, and can
/// unpack to the promised sizes (mostUnpacked). Memory is proportional to the directory's size.
std::vector<ZipMember> readZipDirectory(const MappedFile &archive);

/// Reads a stored member in bounded memory. Fails if the checksum does not match.
void checkStored(const MappedFile &archive, const ZipMember &member);

/// Unpacks a deflated member from its beginning, in bounded memory.
class Inflater {
public:
  Inflater(const MappedFile &archive, const ZipMember &member);
  Inflater(const Inflater &) = delete;
  Inflater &operator=(const Inflater &) = delete;
  ~Inflater();

  /// Reads up to `bytes` bytes, fewer only at the end of the content.
  int64_t read(std::byte *to, int64_t bytes);
  /// Fails unless all content was read and the checksum matches. Call after the last read.
  void checkEnd();

private:
  /// Inflates more data into the stream's output buffer; reads more input if necessary.
  void proceed();
  std::string name() const;

  const MappedFile &archive_;
  const ZipMember &member_;
  std::unique_ptr<z_stream_s> stream_;
  Bytes input_;
  int64_t taken_ = 0; ///< packed bytes consumed
  unsigned long checksum_ = 0;
  bool isAtEnd_ = false;
};

} // namespace sluice::runtime
