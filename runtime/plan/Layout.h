// Physical layouts of state: a declarative tiling of the logical dimensions, and its pack and unpack.
//
// A weight f32[20, 9] with the layout [[0, div, 16], [1], [0, mod, 16]] lies in memory as [2][9][16]; the 12 lanes that
// the last tile has no rows for are zero.
#pragma once

#include "runtime/plan/DType.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// One physical dimension: a logical dimension whole, its tile number, or its place in the tile.
struct PhysicalDim {
  enum class Part { whole, tileNumber, placeInTile };
  int dim = 0;
  Part part = Part::whole;
  int64_t tile = 0; ///< size of a tile, where `part` is not whole

  bool operator==(const PhysicalDim &) const = default;
};

/// Outermost dimension first; an empty layout is row-major.
using Layout = std::vector<PhysicalDim>;

/// Why `layout` does not cover `shape` exactly once; empty if it does.
std::string layoutError(const Shape &shape, const Layout &layout);

/// The sizes of the physical dimensions, padding included.
Shape physicalShape(const Shape &shape, const Layout &layout);

/// Writes the physical form of row-major `logical`, with zeros as padding.
void pack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *logical, std::byte *physical);

/// Writes the row-major form of `physical`; padding is not read.
void unpack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *physical,
            std::byte *logical);

/// Cuts a state along its first dimension into pieces of a few megabytes whose physical form is contiguous, so that it
/// can be packed and unpacked without a second copy of it. `visit` gets each piece's shape, and the bytes before it in
/// the row-major and in the physical form. A layout whose outermost dimension is another gives one piece.
void forEachPiece(const Shape &shape, const Layout &layout, size_t elementSize,
                  const std::function<void(const Shape &piece, size_t logical, size_t physical)> &visit);

} // namespace sluice::runtime
