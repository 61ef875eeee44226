// The protocol between a store and its clients: frames of a header, a key and a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sluice::transport {

inline constexpr size_t kMostKeyBytes = 256;
inline constexpr size_t kMostValueBytes = size_t(1) << 20;
inline constexpr size_t kMostSecretBytes = 256;

struct StoreFrame {
  enum Kind : uint8_t {
    // Requests. The first of a connection is Hello, whose value is the secret.
    Hello = 1,
    Set = 2,
    Get = 3,
    // Replies.
    Ok = 16,
    Absent = 17,  ///< the key is not set
    Taken = 18,   ///< the key has another value
    Refused = 19, ///< wrong secret
    Full = 20
  };

  Kind kind;
  std::string key, value;
};

/// Key and value must not exceed the limits.
std::string encodeFrame(const StoreFrame &frame);

/// Removes a frame from the front of `bytes`; nothing if it is incomplete. Throws an error of invalid input for a
/// malformed frame, or for a value of more than `mostValueBytes`, as soon as that is known.
std::optional<StoreFrame> takeFrame(std::string &bytes, size_t mostValueBytes = kMostValueBytes);

} // namespace sluice::transport
