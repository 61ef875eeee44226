#include "FileContents.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace sluice::test {

std::string bigEndian(std::initializer_list<uint32_t> words) {
  std::string bytes;
  for (uint32_t word : words)
    for (int shift : {24, 16, 8, 0})
      bytes += static_cast<char>(word >> shift);
  return bytes;
}

std::string littleEndian(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

std::string gzipped(const std::string &text) {
  TemporaryFolder folder;
  std::string path = folder / "x.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return contentOf(path);
}

std::string npy(const std::string &header, const std::string &data, char version) {
  return std::string("\x93NUMPY") + version + '\0' + littleEndian(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string npyOf(const std::string &descr, const std::string &shape, const std::string &data) {
  return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n", data);
}

std::string safetensors(const std::string &header, const std::string &data) {
  return littleEndian(header.size(), 8) + header + data;
}

std::string idx(std::initializer_list<uint32_t> sizes, const std::string &data) {
  return bigEndian({0x800 + static_cast<uint32_t>(sizes.size())}) + bigEndian(sizes) + data;
}

static std::string deflated(const std::string &text) {
  z_stream stream = {};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// The fields that a member's header shares with its directory entry, from the flags on.
static std::string commonFields(const ZipEntry &entry, uint32_t checksum, uint32_t packedBytes, uint32_t bytes) {
  return littleEndian(entry.flags, 2) + littleEndian(entry.method.value_or(entry.isDeflated ? 8 : 0), 2) +
         littleEndian(0, 4) + littleEndian(entry.checksum.value_or(checksum), 4) +
         littleEndian(entry.packedBytes.value_or(packedBytes), 4) + littleEndian(entry.bytes.value_or(bytes), 4) +
         littleEndian(entry.name.size(), 2);
}

std::string zip(const std::vector<ZipEntry> &entries, const std::string &comment) {
  std::string archive, directory;
  bool isLarge = false;
  for (const ZipEntry &entry : entries) {
    std::string packed = entry.isDeflated ? deflated(entry.content) : entry.content;
    uint64_t begin = entry.begin.value_or(static_cast<uint32_t>(archive.size()));
    auto checksum = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef *>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    auto packedBytes = static_cast<uint32_t>(packed.size()), bytes = static_cast<uint32_t>(entry.content.size());
    std::string extra;
    if (entry.isLarge) {
      extra = littleEndian(1, 2) + littleEndian(24, 2) + littleEndian(bytes, 8) + littleEndian(packedBytes, 8) +
              littleEndian(begin, 8);
      packedBytes = bytes = UINT32_MAX;
      begin = UINT32_MAX;
      isLarge = true;
    }
    std::string common = commonFields(entry, checksum, packedBytes, bytes);
    archive += "PK\x03\x04" + littleEndian(45, 2) + common + littleEndian(0, 2) + entry.name + packed;
    directory += "PK\x01\x02" + littleEndian(45, 4) + common + littleEndian(extra.size(), 2) + std::string(10, '\0') +
                 littleEndian(begin, 4) + entry.name + extra;
  }
  uint64_t at = archive.size(), count = entries.size();
  archive += directory;
  if (isLarge) {
    uint64_t record = archive.size();
    archive += "PK\x06\x06" + littleEndian(44, 8) + littleEndian(45, 4) + littleEndian(0, 8) + littleEndian(count, 8) +
               littleEndian(count, 8) + littleEndian(directory.size(), 8) + littleEndian(at, 8);
    archive += "PK\x06\x07" + littleEndian(0, 4) + littleEndian(record, 8) + littleEndian(1, 4);
    at = UINT32_MAX;
  }
  return archive + "PK\x05\x06" + littleEndian(0, 4) + littleEndian(count, 2) + littleEndian(count, 2) +
         littleEndian(directory.size(), 4) + littleEndian(at, 4) + littleEndian(comment.size(), 2) + comment;
}

std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }

runtime::Bytes ownBytes(const std::string &text) {
  auto bytes = bytesOf(text);
  return {bytes.begin(), bytes.end()};
}

void expectInvalid(const runtime::Status &status, const std::string &message) {
  EXPECT_EQ(status.code, runtime::ExitCode::invalid);
  EXPECT_NE(status.message.find(message), std::string::npos) << "message: " << status.message;
}

} // namespace sluice::test
