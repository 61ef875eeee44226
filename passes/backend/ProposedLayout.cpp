#include "passes/backend/ProposedLayout.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace sluice::passes {

static constexpr int64_t kMostInTile = 65536;

/// The reason why this cannot be a physical dimension, whatever the others are.
static std::string whyNoDim(const sluice_layout_dim &dim, int64_t rank) {
  if (dim.dimension >= rank)
    return llvm::formatv("it has dimension {0} of a value of rank {1}", dim.dimension, rank);
  switch (dim.part) {
  case SLUICE_LAYOUT_WHOLE:
    if (dim.tile == 0)
      return "";
    return llvm::formatv("dimension {0} is whole, with tiles of {1}", dim.dimension, dim.tile);
  case SLUICE_LAYOUT_TILE_NUMBER:
  case SLUICE_LAYOUT_PLACE_IN_TILE:
    if (dim.tile >= 2 && dim.tile <= kMostInTile)
      return "";
    return llvm::formatv("dimension {0} is in tiles of {1}, not of 2 to {2}", dim.dimension, dim.tile, kMostInTile);
  }
  return llvm::formatv("part {0} of dimension {1} is none that there is", int(dim.part), dim.dimension);
}

/// Whether a dimension appears once: whole, or as the tile number and the offset within one kind of tile.
static bool isThereOnce(ArrayRef<sluice_layout_dim> dims, uint32_t dimension) {
  SmallVector<sluice_layout_dim> parts;
  llvm::copy_if(dims, std::back_inserter(parts),
                [&](const sluice_layout_dim &dim) { return dim.dimension == dimension; });
  if (parts.size() != 2)
    return parts.size() == 1 && parts[0].part == SLUICE_LAYOUT_WHOLE;
  // Two parts that are neither whole nor equal are the tile number and the offset.
  auto isWhole = [](const sluice_layout_dim &dim) { return dim.part == SLUICE_LAYOUT_WHOLE; };
  return llvm::none_of(parts, isWhole) && parts[0].part != parts[1].part && parts[0].tile == parts[1].tile;
}

std::string whyNoLayout(ArrayRef<sluice_layout_dim> dims, int64_t rank) {
  for (const sluice_layout_dim &dim : dims)
    if (std::string why = whyNoDim(dim, rank); !why.empty())
      return why;
  for (uint32_t dimension = 0; !dims.empty() && dimension < rank; ++dimension)
    if (!isThereOnce(dims, dimension))
      return llvm::formatv("dimension {0} must be there once, whole or as number and place of a tile", dimension);
  return "";
}

AffineMap layoutOf(ArrayRef<sluice_layout_dim> dims, int64_t rank, MLIRContext *context) {
  if (dims.empty())
    return AffineMap::getMultiDimIdentityMap(unsigned(rank), context);
  SmallVector<AffineExpr> exprs;
  for (const sluice_layout_dim &dim : dims) {
    AffineExpr whole = getAffineDimExpr(dim.dimension, context);
    auto tile = uint64_t(dim.tile);
    exprs.push_back(dim.part == SLUICE_LAYOUT_WHOLE         ? whole
                    : dim.part == SLUICE_LAYOUT_TILE_NUMBER ? whole.floorDiv(tile)
                                                            : whole % tile);
  }
  return AffineMap::get(unsigned(rank), 0, exprs, context);
}

} // namespace sluice::passes
