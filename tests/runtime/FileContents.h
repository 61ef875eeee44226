// Test files for readers, and the expected errors of readers that reject them.
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

/// With this header.
std::string npy(const std::string &header, const std::string &data, char version = 1);
/// With a header for this type and shape, such as "<f4" and "(2, 3)".
std::string npyOf(const std::string &descr, const std::string &shape, const std::string &data);
std::string safetensors(const std::string &header, const std::string &data);
std::string idx(std::initializer_list<uint32_t> sizes, const std::string &data);

/// A file in an archive, and overrides for wrong fields in the archive's directory.
struct ZipEntry {
  std::string name, content;
  bool isDeflated = false;
  bool isLarge = false; ///< stores sizes and offset in 64-bit fields
  std::optional<uint32_t> bytes = {}, packedBytes = {}, begin = {}, checksum = {};
  std::optional<uint16_t> method = {};
  uint16_t flags = 0;
};
/// `comment` follows the directory.
std::string zip(const std::vector<ZipEntry> &entries, const std::string &comment = "");

std::span<const std::byte> bytesOf(const std::string &text);
runtime::Bytes ownBytes(const std::string &text);

/// Expects code 3 and a message that contains `message`.
void expectInvalid(const runtime::Status &status, const std::string &message);

struct BadFile {
  const char *name;
  std::string content;
  const char *message;
};
inline std::string nameOfCase(const testing::TestParamInfo<BadFile> &info) { return info.param.name; }

} // namespace sluice::test
