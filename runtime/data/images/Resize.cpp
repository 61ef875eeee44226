#include "runtime/data/images/Resize.h"

#include <algorithm>
#include <cmath>

namespace sluice::runtime {

static constexpr int fractionBits = 32 - 8 - 2; // as in Pillow: of 32 bits, 8 are the sample and 2 are spare
static constexpr size_t channels = 3;

namespace {
/// The source pixels of one pixel, from `first` on, and their weights in parts of 2^fractionBits.
struct Taps {
  int64_t first;
  std::vector<int32_t> weights;
};
} // namespace

static std::vector<Taps> tapsFor(int64_t from, int64_t to) {
  double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    double center = (static_cast<double>(i) + 0.5) * scale;
    int64_t first = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0);
    int64_t end = std::min<int64_t>(static_cast<int64_t>(center + reach + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (int64_t tap = first; tap < end; ++tap) {
      double distance = std::abs((static_cast<double>(tap) - center + 0.5) * (1.0 / reach));
      weights.push_back(distance < 1 ? 1 - distance : 0);
      sum += weights.back();
    }
    Taps &taps = all.emplace_back(Taps{first, {}});
    for (double weight : weights)
      taps.weights.push_back(static_cast<int32_t>(0.5 + (sum != 0 ? weight / sum : weight) * (1 << fractionBits)));
  }
  return all;
}

/// One channel of a pixel from neighbors that are `stride` elements apart.
static uint8_t mix(const uint8_t *first, size_t stride, const std::vector<int32_t> &weights) {
  int32_t sum = 1 << (fractionBits - 1);
  for (size_t i = 0; i < weights.size(); ++i)
    sum += first[i * stride] * weights[i];
  return static_cast<uint8_t>(std::clamp(sum >> fractionBits, 0, 255));
}

static Image resizedAlongRows(const Image &image, int64_t width) {
  std::vector<Taps> taps = tapsFor(image.width, width);
  Image result{width, image.height, {}};
  result.pixels.reserve(static_cast<size_t>(width * image.height) * channels);
  for (int64_t y = 0; y < image.height; ++y)
    for (const Taps &its : taps)
      for (size_t channel = 0; channel < channels; ++channel)
        result.pixels.push_back(
            mix(&image.pixels[static_cast<size_t>(y * image.width + its.first) * channels + channel], channels,
                its.weights));
  return result;
}

static Image resizedAlongColumns(const Image &image, int64_t height) {
  Image result{image.width, height, {}};
  size_t row = static_cast<size_t>(image.width) * channels;
  result.pixels.reserve(static_cast<size_t>(height) * row);
  for (const Taps &its : tapsFor(image.height, height))
    for (size_t element = 0; element < row; ++element)
      result.pixels.push_back(mix(&image.pixels[static_cast<size_t>(its.first) * row + element], row, its.weights));
  return result;
}

Image resized(const Image &image, int64_t width, int64_t height) {
  Image result = image.width == width ? image : resizedAlongRows(image, width);
  return image.height == height ? result : resizedAlongColumns(result, height);
}

} // namespace sluice::runtime
