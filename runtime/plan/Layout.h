// Physical layouts of states: a declarative tiling of the logical dimensions, with pack and unpack.
//
// A weight f32[20, 9] with the layout [[0, div, 16], [1], [0, mod, 16]] is stored as [2][9][16]. The 12 unused lanes of
// the last tile are zero.
#pragma once

#include "runtime/plan/DType.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// One physical dimension: a whole logical dimension, its tile number, or its offset in the tile.
struct PhysicalDim {
  enum class Part { whole, tileNumber, placeInTile };
  int dim = 0;
  Part part = Part::whole;
  int64_t tile = 0; ///< tile size, unless `part` is whole

  bool operator==(const PhysicalDim &) const = default;
};

/// Outermost dimension first; an empty layout is row-major.
using Layout = std::vector<PhysicalDim>;

/// The reason why `layout` does not cover `shape` exactly once; empty if it does.
std::string layoutError(const Shape &shape, const Layout &layout);

/// The sizes of the physical dimensions, padding included.
Shape physicalShape(const Shape &shape, const Layout &layout);

/// Writes the physical form of row-major `logical`, with zero padding.
void pack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *logical, std::byte *physical);

/// Writes the row-major form of `physical`; padding is not read.
void unpack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *physical,
            std::byte *logical);

/// Cuts a state along its first dimension into pieces of about 4 MiB whose physical form is contiguous. Packing and
/// unpacking piece by piece need no second copy of the state. `visit` receives each piece's shape and its byte offsets
/// in the row-major and physical forms. If the outermost physical dimension is not the first logical one, there is one
/// piece.
void forEachPiece(const Shape &shape, const Layout &layout, size_t elementSize,
                  const std::function<void(const Shape &piece, size_t logical, size_t physical)> &visit);

} // namespace sluice::runtime
