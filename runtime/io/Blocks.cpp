#include "runtime/io/Blocks.h"

#include "runtime/base/Json.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "sluice/backend/blocks.h"
#include "sluice/backend/halves.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace sluice::runtime {

namespace {

/// The elements of one block, `stride` apart.
template <typename Element> struct Block {
  Element *first;
  int64_t stride;

  Element &operator[](int64_t i) const { return first[i * stride]; }
};

} // namespace

/// Calls `body` with the offset of each block's first element, and with the offset of its scale.
template <typename Body> static void forEachBlock(const BlockShape &shape, Body body) {
  int64_t scale = 0;
  for (int64_t outer = 0; outer < shape.outer; ++outer)
    for (int64_t at = 0; at < shape.size; at += SLUICE_BLOCK_ELEMENTS)
      for (int64_t inner = 0; inner < shape.inner; ++inner)
        body((outer * shape.size + at) * shape.inner + inner, scale++);
}

/// The largest absolute value; NaN or infinite if an element is.
static float largestOf(Block<const float> block) {
  float largest = 0, check = 0;
  for (int64_t i = 0; i < SLUICE_BLOCK_ELEMENTS; ++i) {
    largest = std::max(largest, std::fabs(block[i]));
    check += block[i] * 0; // NaN for NaN and infinity
  }
  return largest + check;
}

/// Halves away from zero.
static int8_t roundedAway(float value) {
  auto towardZero = static_cast<int32_t>(value);
  float rest = value - static_cast<float>(towardZero);
  return static_cast<int8_t>(towardZero + (rest >= 0.5F) - (rest <= -0.5F));
}

/// Writes the integers and returns the scale.
static sluice_f16 quantizeBlock(Block<const float> block, float largest, Block<int8_t> integers) {
  float d = largest / static_cast<float>(SLUICE_BLOCK_LARGEST);
  float inverse = d < std::numeric_limits<float>::min() ? 0.0F : 1.0F / d;
  for (int64_t i = 0; i < SLUICE_BLOCK_ELEMENTS; ++i)
    integers[i] = roundedAway(block[i] * inverse);
  return sluice_f16(d);
}

[[noreturn]] static void failToQuantize(const std::string &what, const std::string &why) {
  failInvalid(concat("cannot quantize ", what, ": ", why,
                     "; compile with --weights-type bf16, or without it, to keep such weights"));
}

Blocks quantize(const TensorSource &source, const BlockShape &shape) {
  std::vector<float> values(static_cast<size_t>(elementsOf(source.shape)));
  source.read(0, std::as_writable_bytes(std::span(values)));
  std::vector<int8_t> integers(values.size());
  std::vector<sluice_f16> scales(values.size() / SLUICE_BLOCK_ELEMENTS);
  forEachBlock(shape, [&](int64_t first, int64_t scale) {
    Block<const float> block{&values[static_cast<size_t>(first)], shape.inner};
    float largest = largestOf(block);
    if (!std::isfinite(largest))
      failToQuantize(source.what, "an element is not finite");
    sluice_f16 made = quantizeBlock(block, largest, {&integers[static_cast<size_t>(first)], shape.inner});
    if (!std::isfinite(static_cast<float>(made)))
      failToQuantize(source.what, concat("the scale of an element of ", Json(largest).dump(), " exceeds f16"));
    scales[static_cast<size_t>(scale)] = made;
  });
  auto bytesOf = [](const auto &vector) {
    std::span bytes = std::as_bytes(std::span(vector));
    return Bytes(bytes.begin(), bytes.end());
  };
  return {bytesOf(integers), bytesOf(scales)};
}

Bytes dequantize(const Blocks &blocks, const BlockShape &shape) {
  Bytes values(blocks.elements.size() * sizeof(float));
  forEachBlock(shape, [&](int64_t first, int64_t scale) {
    sluice_f16 half;
    std::memcpy(&half, &blocks.scales[static_cast<size_t>(scale) * sizeof half], sizeof half);
    for (int64_t i = 0; i < SLUICE_BLOCK_ELEMENTS; ++i) {
      auto at = static_cast<size_t>(first + i * shape.inner);
      float value = static_cast<float>(static_cast<int8_t>(blocks.elements[at])) * static_cast<float>(half);
      std::memcpy(&values[at * sizeof value], &value, sizeof value);
    }
  });
  return values;
}

} // namespace sluice::runtime
