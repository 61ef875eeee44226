#include "frontend/onnx/file/Wire.h"

#include <bit>
#include <cstring>

namespace sluice::onnx {

static_assert(std::endian::native == std::endian::little, "elements are used as they are in the file");

//===- fields -----------------------------------------------------------------------------------------------------===//

void Field::fail(const char *wanted) const {
  throw Malformed("field " + std::to_string(number) + " of a message is not " + wanted);
}

std::int64_t Field::integer() const {
  if (wire != Wire::varint)
    fail("an integer");
  return std::int64_t(value);
}

float Field::real() const {
  if (wire != Wire::fixed32)
    fail("a float");
  return std::bit_cast<float>(std::uint32_t(value));
}

std::string_view Field::bytes() const {
  if (wire != Wire::bytes)
    fail("a string or message");
  return content;
}

void Field::appendTo(std::vector<std::int64_t> &list) const {
  if (wire == Wire::varint)
    return list.push_back(std::int64_t(value));
  for (Message packed(bytes()); !packed.rest.empty();)
    list.push_back(std::int64_t(packed.varint()));
}

template <class T> void Field::appendFixed(std::vector<T> &list, Wire single) const {
  if (wire == single) {
    list.emplace_back();
    std::memcpy(&list.back(), &value, sizeof(T)); // the low bytes of a little-endian number
    return;
  }
  std::string_view packed = bytes();
  if (packed.size() % sizeof(T) != 0)
    throw Malformed("field " + std::to_string(number) + " of a message has " + std::to_string(packed.size()) +
                    " bytes, which is not a whole number of elements");
  size_t before = list.size();
  list.resize(before + packed.size() / sizeof(T));
  if (!packed.empty())
    std::memcpy(list.data() + before, packed.data(), packed.size());
}

void Field::appendTo(std::vector<float> &list) const { appendFixed(list, Wire::fixed32); }
void Field::appendTo(std::vector<double> &list) const { appendFixed(list, Wire::fixed64); }

//===- messages ---------------------------------------------------------------------------------------------------===//

std::uint64_t Message::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    auto byte = std::uint8_t(take(1).front());
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return value;
  }
  throw Malformed("a number has more than 10 bytes");
}

std::string_view Message::take(std::uint64_t count) {
  if (count > rest.size())
    throw Malformed("a field has " + std::to_string(count) + " bytes, and its message has " +
                    std::to_string(rest.size()) + " left");
  std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

bool Message::next(Field &field) {
  if (rest.empty())
    return false;
  std::uint64_t tag = varint();
  field.number = std::uint32_t(tag >> 3);
  if (tag >> 3 == 0 || tag >> 32 != 0)
    throw Malformed("a message has a field with the number " + std::to_string(tag >> 3));
  field.wire = Field::Wire(tag & 7);
  field.value = 0;
  switch (field.wire) {
  case Field::Wire::varint:
    field.value = varint();
    return true;
  case Field::Wire::fixed64:
    std::memcpy(&field.value, take(8).data(), 8);
    return true;
  case Field::Wire::bytes:
    field.content = take(varint());
    return true;
  case Field::Wire::fixed32:
    std::memcpy(&field.value, take(4).data(), 4);
    return true;
  }
  throw Malformed("field " + std::to_string(field.number) + " of a message has the wire type " +
                  std::to_string(tag & 7));
}

} // namespace sluice::onnx
