// What a store and its clients send each other: frames of a header, a key and a value.
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
    // Questions. The first of a connection is Hello, whose value is the secret.
    Hello = 1,
    Set = 2,
    Get = 3,
    // Answers.
    Ok = 16,
    Absent = 17,  ///< nobody has set this key
    Taken = 18,   ///< somebody has set it to something else
    Refused = 19, ///< the secret is another one
    Full = 20
  };

  Kind kind;
  std::string key, value;
};

/// Key and value must not be longer than is allowed.
std::string encodeFrame(const StoreFrame &frame);

/// Takes a frame from the front of `bytes`; nothing if it has not come as a whole. Throws an error of input for what is no
/// frame, or has a value of more than `mostValueBytes`, as soon as that can be told.
std::optional<StoreFrame> takeFrame(std::string &bytes, size_t mostValueBytes = kMostValueBytes);

} // namespace sluice::transport
