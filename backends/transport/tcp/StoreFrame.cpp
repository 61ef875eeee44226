#include "backends/transport/tcp/StoreFrame.h"

#include "backends/transport/Fail.h"

#include <algorithm>
#include <string_view>

namespace sluice::transport {

// The header: four bytes that no other protocol begins with, the kind, and the sizes of the key and of the value, in
// little-endian order.
static constexpr std::string_view kMagic = "\x89SL1";
static constexpr size_t kHeaderBytes = 11;

static void appendNumber(std::string &bytes, uint64_t number, size_t size) {
  for (size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(number >> (8 * i) & 0xff);
}

static uint64_t numberAt(const std::string &bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i)
    number |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

static bool isFrameKind(unsigned char kind) {
  return (kind >= StoreFrame::Hello && kind <= StoreFrame::Get) || (kind >= StoreFrame::Ok && kind <= StoreFrame::Full);
}

std::string encodeFrame(const StoreFrame &frame) {
  std::string bytes(kMagic);
  bytes += static_cast<char>(frame.kind);
  appendNumber(bytes, frame.key.size(), 2);
  appendNumber(bytes, frame.value.size(), 4);
  return bytes + frame.key + frame.value;
}

std::optional<StoreFrame> takeFrame(std::string &bytes, size_t mostValueBytes) {
  std::string_view begin(bytes.data(), std::min(bytes.size(), kMagic.size()));
  if (begin != kMagic.substr(0, begin.size()))
    fail(SLUICE_INVALID, "what came is no message of a store");
  if (bytes.size() < kHeaderBytes)
    return std::nullopt;
  auto kind = static_cast<unsigned char>(bytes[4]);
  size_t keyBytes = numberAt(bytes, 5, 2), valueBytes = numberAt(bytes, 7, 4);
  if (!isFrameKind(kind) || keyBytes > kMostKeyBytes || valueBytes > mostValueBytes)
    fail(SLUICE_INVALID, "what came is no message of a store, or one that is too large");
  if (bytes.size() < kHeaderBytes + keyBytes + valueBytes)
    return std::nullopt;
  StoreFrame frame{static_cast<StoreFrame::Kind>(kind), bytes.substr(kHeaderBytes, keyBytes),
                   bytes.substr(kHeaderBytes + keyBytes, valueBytes)};
  bytes.erase(0, kHeaderBytes + keyBytes + valueBytes);
  return frame;
}

} // namespace sluice::transport
