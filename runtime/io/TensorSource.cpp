#include "runtime/io/TensorSource.h"

#include "runtime/base/Json.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/Npy.h"

#include <algorithm>
#include <cmath>
#include <zlib.h>

namespace sluice::runtime {

void TensorSource::give(const WriteBytes &write) const {
  constexpr size_t pieceBytes = 1 << 20;
  Bytes piece;
  for (size_t at = 0, all = bytes(); at < all; at += pieceBytes) {
    piece.resize(std::min(pieceBytes, all - at));
    read(at, piece);
    write(piece);
  }
}

uint32_t TensorSource::crc32() const {
  uLong sum = 0;
  give([&](std::span<const std::byte> piece) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef *>(piece.data()), piece.size());
  });
  return static_cast<uint32_t>(sum);
}

TensorSource TensorSource::as(DType wanted, const Shape &size) const {
  return converted(wanted, size, isFloat(wanted) && isFloat(dtype) ? conversion(dtype, wanted) : nullptr);
}

/// Fails if a conversion made a finite element infinite.
static void checkFinite(const std::string &what, DType from, const Bytes &given, DType to,
                        std::span<const std::byte> made) {
  for (int64_t i = 0, count = static_cast<int64_t>(made.size() / sizeOf(to)); i < count; ++i)
    if (double value = elementAsDouble(from, given.data(), i);
        std::isfinite(value) && !std::isfinite(elementAsDouble(to, made.data(), i)))
      failInvalid(concat(what, " has ", Json(value).dump(), ", which ", nameOf(to), " does not hold"));
}

TensorSource TensorSource::roundedTo(DType wanted, const Shape &size) const {
  return converted(wanted, size, roundingConversion(dtype, wanted));
}

TensorSource TensorSource::converted(DType wanted, const Shape &size, Convert convert) const {
  if (shape != size || (dtype != wanted && !convert))
    failInvalid(concat(what, " is ", typeText(dtype, shape), ", but the model has ", typeText(wanted, size)));
  if (dtype == wanted)
    return *this;
  bool widens = convert == conversion(dtype, wanted);
  auto readConverted = [=, what = what, dtype = dtype, read = read](size_t at, std::span<std::byte> to) {
    size_t count = to.size() / sizeOf(wanted);
    Bytes from(count * sizeOf(dtype));
    read(at / sizeOf(wanted) * sizeOf(dtype), from);
    convert(from.data(), to.data(), static_cast<int64_t>(count));
    if (!widens)
      checkFinite(what, dtype, from, wanted, to);
  };
  return {what, wanted, shape, readConverted};
}

TensorSource sourceIn(std::shared_ptr<const SafetensorsFile> file, const std::string &path, const std::string &name) {
  const TensorRange *tensor = file->find(name);
  if (!tensor) {
    std::vector<std::string> names;
    for (const TensorRange &other : file->tensors())
      names.push_back(other.name);
    failInvalid(concat(path, ": has no tensor ", quote(name), didYouMean(name, names)));
  }
  auto read = [file, tensor](size_t at, std::span<std::byte> to) { file->read(*tensor, at, to); };
  return {concat(path, ": ", quote(name)), tensor->dtype, tensor->shape, read};
}

TensorSource sourceOf(const std::string &what, DType dtype, const Shape &shape, std::shared_ptr<const Bytes> elements) {
  auto read = [elements](size_t at, std::span<std::byte> to) {
    std::copy_n(elements->begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
  };
  return {what, dtype, shape, read};
}

TensorSource sourceOfNpy(const std::string &path) {
  HostTensor tensor = readNpy(path);
  return sourceOf(concat(path, ": the array"), tensor.dtype, tensor.shape,
                  std::make_shared<const Bytes>(std::move(tensor.data)));
}

void writeSources(const std::string &path, const std::vector<NamedSource> &sources) {
  std::vector<TensorRange> tensors;
  for (const auto &[name, source] : sources)
    tensors.push_back({name, source.dtype, source.shape, 0, source.bytes()});
  writeSafetensors(path, std::move(tensors), {}, [&](const TensorRange &tensor, const WriteBytes &write) {
    std::ranges::find(sources, tensor.name, &NamedSource::name)->source.give(write);
  });
}

} // namespace sluice::runtime
