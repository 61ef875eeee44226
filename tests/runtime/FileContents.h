// The bytes of files that readers are tried on, and what is expected of a reader that refuses them.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/io/File.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

std::string bigEndian(std::initializer_list<uint32_t> words);
std::string littleEndian(uint64_t value, int size);
std::string gzipped(const std::string &text);

/// With the header as it stands.
std::string npy(const std::string &header, const std::string &data, char version = 1);
/// With a header for these elements, such as "<f4" and "(2, 3)".
std::string npyOf(const std::string &descr, const std::string &shape, const std::string &data);
std::string safetensors(const std::string &header, const std::string &data);
std::string idx(std::initializer_list<uint32_t> sizes, const std::string &data);

/// A file in an archive, and what the archive's directory says of it where that is not the truth.
struct ZipEntry {
  std::string name, content;
  bool isDeflated = false;
  bool isLarge = false; ///< sizes and place in 64-bit fields
  std::optional<uint32_t> bytes = {}, packedBytes = {}, begin = {}, checksum = {};
  std::optional<uint16_t> method = {};
  uint16_t flags = 0;
};
/// `comment` follows the directory.
std::string zip(const std::vector<ZipEntry> &entries, const std::string &comment = "");

std::span<const std::byte> bytesOf(const std::string &text);
runtime::Bytes ownBytes(const std::string &text);

/// Expects code 3 and a message that has this in it.
void expectInvalid(const runtime::Status &status, const std::string &message);

struct BadFile {
  const char *name;
  std::string content;
  const char *message;
};
inline std::string nameOfCase(const testing::TestParamInfo<BadFile> &info) { return info.param.name; }

} // namespace sluice::test
