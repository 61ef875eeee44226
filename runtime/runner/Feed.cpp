#include "runtime/runner/Feed.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sluice::runtime {

std::vector<uint32_t> inOrder(int64_t count) {
  std::vector<uint32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

static bool isInteger(const Value &value) { return value.dtype == DType::i32 || value.dtype == DType::i64; }

static bool isLabel(const Value &value, int64_t capacity) {
  return isInteger(value) && value.rowsDim == 0 && elementsOf(value.shape) == capacity;
}

FeedInputs findInputs(const Plan &plan, const Entry &entry, const ImageSet &images) {
  FeedInputs found;
  if (plan.capacity == 0)
    failUnsupported(concat("entry point ", quote(entry.name), " has no batch dimension to feed images to"));
  for (const Value &input : entry.inputs) {
    if (!found.label && isLabel(input, plan.capacity)) {
      found.label = &input;
      continue;
    }
    bool image = input.rowsDim == 0 && (isFloat(input.dtype) || input.dtype == DType::u8);
    if (found.image || !image)
      failInvalid(concat("entry point ", quote(entry.name), " has an input ", quote(input.name), " of type ",
                         typeText(input.dtype, input.shape), ", which images and labels do not provide"));
    if (elementsOf(input.shape) / plan.capacity != images.imageBytes())
      failInvalid(concat("the data's images are ", images.height, "x", images.width, ", but input ", quote(input.name),
                         " is ", typeText(input.dtype, input.shape), ", ", elementsOf(input.shape) / plan.capacity,
                         " per row"));
    found.image = &input;
  }
  if (!found.image)
    failInvalid(concat("entry point ", quote(entry.name), " has no input for images"));
  return found;
}

ImageCheck fitting(const Plan &plan, const Entry &entry) {
  return [&](const ImageSet &images) { findInputs(plan, entry, images); };
}

Feed::Feed(Instance &instance, const Entry &entry, const ImageSet &images)
    : instance_(instance), images_(images), inputs_(findInputs(instance.plan(), entry, images)) {
  if (inputs_.label)
    checkLabels();
}

/// Before the first batch, so that no epoch is lost to a label that the last one would find.
void Feed::checkLabels() const {
  int highest = std::to_integer<int>(*std::max_element(images_.labels.begin(), images_.labels.end()));
  if (inputs_.label->below > 0 && highest >= inputs_.label->below)
    failInvalid(
        concat("the data has a label ", highest, ", but the model tells ", inputs_.label->below, " classes apart"));
}

template <typename T> void Feed::fillImages(std::span<const uint32_t> numbers) {
  size_t size = static_cast<size_t>(images_.imageBytes());
  T *to = reinterpret_cast<T *>(instance_.inputAddress(*inputs_.image));
  for (uint32_t number : numbers) {
    const std::byte *from = images_.pixels.data() + number * size;
    if constexpr (sizeof(T) == 1)
      std::memcpy(to, from, size);
    else
      std::transform(from, from + size, to,
                     [](std::byte pixel) { return static_cast<T>(std::to_integer<int>(pixel)) / static_cast<T>(255); });
    to += size;
  }
}

template <typename T> void Feed::fillLabels(std::span<const uint32_t> numbers) {
  T *to = reinterpret_cast<T *>(instance_.inputAddress(*inputs_.label));
  for (uint32_t number : numbers)
    *to++ = std::to_integer<T>(images_.labels[number]);
}

void Feed::fill(std::span<const uint32_t> numbers) {
  if (inputs_.image->dtype == DType::u8)
    fillImages<uint8_t>(numbers);
  else if (inputs_.image->dtype == DType::f32)
    fillImages<float>(numbers);
  else
    fillImages<double>(numbers);
  if (!inputs_.label)
    return;
  if (inputs_.label->dtype == DType::i32)
    fillLabels<int32_t>(numbers);
  else
    fillLabels<int64_t>(numbers);
}

} // namespace sluice::runtime
