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

/// One dimension: a size (`28`), a name (`Dim{"batch"}`), or both (`Dim{"classes", 10}`).
/// Dimensions of one name are one dimension. A graph may have one name without a size: its batch, of which a dimension may
/// be a multiple: `Dim{"batch"} * 16`.
struct Dim {
  static constexpr std::int64_t unknown = -1;

  std::string name;
  std::int64_t size = unknown;
  std::int64_t times = 1; ///< that the batch is in it

  template <std::integral T> Dim(T size) : size(std::int64_t(size)) {}
  explicit Dim(std::string name, std::int64_t size = unknown) : name(std::move(name)), size(size) {}

  /// Whether the size is known only at run time.
  bool symbolic() const { return !name.empty() && size == unknown; }
  /// The name of a symbolic dimension, as in "batch" or "batch*16", the size of any other.
  std::string str() const;
  bool operator==(const Dim &other) const;
};

/// So many of a dimension.
Dim operator*(const Dim &dim, std::int64_t times);

/// The dimensions of a tensor, outermost first.
class Shape {
public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims(dims) {}
  template <std::integral T> Shape(T size) : dims{Dim(size)} {}
  explicit Shape(std::vector<Dim> dims) : dims(std::move(dims)) {}

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

/// Which dimensions an op works on; negative ones count from the end. None given: all of them.
class Axes {
public:
  Axes() = default;
  template <std::integral T> Axes(T axis) : list{std::int64_t(axis)} {}
  Axes(std::initializer_list<std::int64_t> axes) : list(axes) {}
  Axes(std::vector<std::int64_t> axes) : list(std::move(axes)) {}

  const std::vector<std::int64_t> &values() const { return list; }

private:
  std::vector<std::int64_t> list;
};

/// Height and width: one number for both, or two.
struct Size2 {
  std::int64_t h, w;

  template <std::integral T> Size2(T both) : h(both), w(both) {}
  Size2(std::int64_t h, std::int64_t w) : h(h), w(w) {}
};

} // namespace sluice
