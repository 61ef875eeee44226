// The wire format of Protocol Buffers, read in place. Each read is bounded by the bytes of its message.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::onnx {

/// A file that is not valid ONNX: exit code 3.
class Malformed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One field of a message. The accessors throw Malformed if the field has another wire type.
class Field {
public:
  std::uint32_t number = 0;

  std::int64_t integer() const;
  float real() const;
  /// A string, or the bytes of a nested message.
  std::string_view bytes() const;
  /// Append the elements of a repeated field, which may be packed.
  void appendTo(std::vector<std::int64_t> &list) const;
  void appendTo(std::vector<float> &list) const;
  void appendTo(std::vector<double> &list) const;

private:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  [[noreturn]] void fail(const char *wanted) const;
  template <class T> void appendFixed(std::vector<T> &list, Wire single) const;

  Wire wire = Wire::varint;
  std::uint64_t value = 0;  ///< of a varint, or the bits of a fixed field
  std::string_view content; ///< of bytes
  friend class Message;
};

/// Iterates over the fields of a message.
class Message {
public:
  explicit Message(std::string_view bytes) : rest(bytes) {}
  /// Reads the next field; false at the end. Throws Malformed if the bytes end within a field, or for a wire type that
  /// does not exist.
  bool next(Field &field);

private:
  std::uint64_t varint();
  std::string_view take(std::uint64_t count);

  std::string_view rest;
  friend class Field;
};

} // namespace sluice::onnx
