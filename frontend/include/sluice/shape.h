// Dimensions, shapes, and the small argument types that ops take.
#pragma once

#include "sluice/language.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

/// One dimension: a size (`28`), a name (`Dim{"batch"}`), or both (`Dim{"classes", 10}`). Dimensions of one name have
/// one size. A graph may have one name without a size: its batch dimension. A reshaped tensor may have a multiple of
/// it, `Dim{"batch"} * 16`. PyTorch's shapes have no names.
struct Dim {
  static constexpr std::int64_t unknown = -1; ///< the size of a dimension that has only a name

  std::string name;            ///< empty: only a size
  std::int64_t size = unknown; ///< in elements; as an argument of reshape and expand, -1 has their meaning
  std::int64_t times = 1;      ///< the factor of the batch

  /// A size. Graphs accept sizes from 1.
  template <std::integral T> Dim(T size) : size(std::int64_t(size)) {}
  /// A name, with or without a size.
  explicit Dim(std::string name, std::int64_t size = unknown) : name(std::move(name)), size(size) {}

  /// Whether the size is known only at run time.
  bool symbolic() const { return !name.empty() && size == unknown; }
  /// The name of a symbolic dimension, such as "batch" or "batch*16"; the size of any other.
  std::string str() const;
  /// Whether the sizes are equal; for symbolic dimensions, the names and factors.
  bool operator==(const Dim &other) const;
};

/// A multiple of a dimension: of its size, or of the batch.
Dim operator*(const Dim &dim, std::int64_t times);

/// The dimensions of a tensor, outermost first: torch.Size. An empty shape is that of a scalar.
class Shape {
public:
  Shape() = default;
  /// A list of dimensions: {Dim{"batch"}, 784}; or one: 784.
  Shape(std::initializer_list<Dim> dims) : dims(dims) {}
  template <std::integral T> Shape(T size) : dims{Dim(size)} {}
  explicit Shape(std::vector<Dim> dims) : dims(std::move(dims)) {}

  /// The number of dimensions, and each of them; an index beyond them is undefined.
  std::size_t size() const { return dims.size(); }
  const Dim &operator[](std::size_t i) const { return dims[i]; }
  auto begin() const { return dims.begin(); }
  auto end() const { return dims.end(); }

  /// "[batch, 784]"
  std::string str() const;
  bool operator==(const Shape &other) const { return dims == other.dims; }

private:
  std::vector<Dim> dims;
};

/// The dimensions that a function works on; negative ones count from the end. Empty: all of them. Functions check them.
class Axes {
public:
  Axes() = default;
  /// One dimension, or a list.
  template <std::integral T> Axes(T axis) : list{std::int64_t(axis)} {}
  Axes(std::initializer_list<std::int64_t> axes) : list(axes) {}
  Axes(std::vector<std::int64_t> axes) : list(std::move(axes)) {}

  /// As given.
  const std::vector<std::int64_t> &values() const { return list; }

private:
  std::vector<std::int64_t> list;
};

/// Height and width, in elements: one number for both, or two. Functions check their range.
struct Size2 {
  std::int64_t h, w;

  /// The same number for both, or height and width.
  template <std::integral T> Size2(T both) : h(both), w(both) {}
  Size2(std::int64_t h, std::int64_t w) : h(h), w(w) {}
};

} // namespace sluice
