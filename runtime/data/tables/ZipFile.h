// Zip archives, as .npz files are: members stored or deflated, with the 64-bit fields of large ones. The directory at
// the end is what counts; encryption, several disks and other compressions are refused.
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
  int64_t begin = 0;       ///< of its data in the archive
  int64_t packedBytes = 0; ///< that the archive spends on it
  int64_t bytes = 0;       ///< that it has; those packed, unless it is deflated
  uint32_t checksum = 0;   ///< CRC-32 of its bytes
  bool isDeflated = false;
};

/// The members, with all sizes checked against the archive: data lies before the directory and overlaps no other's, and
/// none promises more than deflate can pack. Memory goes with the size of the directory.
std::vector<ZipMember> readZipDirectory(const MappedFile &archive);

/// Reads a stored member in bounded memory. Fails unless the checksum of its content matches.
void checkStored(const MappedFile &archive, const ZipMember &member);

/// The content of a deflated member from its beginning, in bounded memory.
class Inflater {
public:
  Inflater(const MappedFile &archive, const ZipMember &member);
  Inflater(const Inflater &) = delete;
  Inflater &operator=(const Inflater &) = delete;
  ~Inflater();

  /// Reads up to `bytes` bytes, fewer only at the end of the content.
  int64_t read(std::byte *to, int64_t bytes);
  /// After all was read: fails unless this is the end, and the checksum is that of what was read.
  void checkEnd();

private:
  /// Continues into the output that the stream has.
  void proceed();
  std::string name() const;

  const MappedFile &archive_;
  const ZipMember &member_;
  std::unique_ptr<z_stream_s> stream_;
  Bytes input_;
  int64_t taken_ = 0; ///< of the packed bytes
  unsigned long checksum_ = 0;
  bool isAtEnd_ = false;
};

} // namespace sluice::runtime
