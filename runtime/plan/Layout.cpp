#include "runtime/plan/Layout.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

using Part = PhysicalDim::Part;

namespace {

/// How one logical dimension appears in a layout.
struct Coverage {
  int whole = 0, tileNumber = 0, placeInTile = 0;
  int64_t tile = 0;
};

/// One loop of the walk over physical memory.
struct Level {
  int dim;               ///< the logical dimension of this loop
  int64_t count;         ///< physical size
  int64_t scale;         ///< logical positions per step
  int64_t logicalStride; ///< logical elements per step
  int64_t inner;         ///< physical elements within one step
};

/// Visits physical memory in order. `Copy` has `elements(physical, logical, count, stride)`, where `stride` is the
/// distance of the logical ones, and `padding(physical, count)`, all in elements.
template <typename Copy> class Walk {
public:
  Walk(const Shape &shape, const Layout &layout, Copy copy) : shape_(shape), position_(shape.size(), 0), copy_(copy) {
    Shape stride(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      stride[i - 1] = stride[i] * shape[i];
    Shape sizes = physicalShape(shape, layout);
    levels_.resize(layout.size());
    int64_t inner = 1;
    for (size_t i = layout.size(); i-- > 0;) {
      const PhysicalDim &dim = layout[i];
      int64_t scale = dim.part == Part::tileNumber ? dim.tile : 1;
      levels_[i] = {dim.dim, sizes[i], scale, scale * stride[static_cast<size_t>(dim.dim)], inner};
      inner *= sizes[i];
    }
  }

  void run() {
    // Without elements there is neither data nor padding, and the pointers may be null.
    if (levels_.empty() || levels_[0].count * levels_[0].inner > 0)
      visit(0, 0, 0);
  }

private:
  void visit(size_t depth, int64_t physical, int64_t logical) {
    if (depth == levels_.size()) // a scalar
      return copy_.elements(physical, logical, 1, 0);
    const Level &level = levels_[depth];
    int64_t &position = position_[static_cast<size_t>(level.dim)];
    int64_t size = shape_[static_cast<size_t>(level.dim)];
    int64_t start = position;
    if (depth + 1 == levels_.size()) {
      int64_t count = std::clamp<int64_t>((size - position + level.scale - 1) / level.scale, 0, level.count);
      copy_.elements(physical, logical, count, level.logicalStride);
      if (count < level.count)
        copy_.padding(physical + count, level.count - count);
      return;
    }
    for (int64_t i = 0; i < level.count; ++i) {
      if (position >= size) {
        copy_.padding(physical, (level.count - i) * level.inner);
        break;
      }
      visit(depth + 1, physical, logical);
      position += level.scale;
      physical += level.inner;
      logical += level.logicalStride;
    }
    position = start;
  }

  const Shape &shape_;
  std::vector<Level> levels_;
  Shape position_;
  Copy copy_;
};

template <typename T> struct PackCopy {
  const std::byte *logical;
  std::byte *physical;

  void elements(int64_t to, int64_t from, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(physical + (to + i) * sizeof(T), logical + (from + i * stride) * sizeof(T), sizeof(T));
  }
  void padding(int64_t to, int64_t count) {
    std::memset(physical + to * sizeof(T), 0, static_cast<size_t>(count) * sizeof(T));
  }
};

template <typename T> struct UnpackCopy {
  const std::byte *physical;
  std::byte *logical;

  void elements(int64_t from, int64_t to, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(logical + (to + i * stride) * sizeof(T), physical + (from + i) * sizeof(T), sizeof(T));
  }
  void padding(int64_t, int64_t) {}
};

} // namespace

std::string layoutError(const Shape &shape, const Layout &layout) {
  if (layout.empty())
    return {};
  std::vector<Coverage> coverage(shape.size());
  for (const PhysicalDim &dim : layout) {
    if (dim.dim < 0 || static_cast<size_t>(dim.dim) >= shape.size())
      return concat("it names dimension ", dim.dim, " of a tensor of rank ", shape.size());
    Coverage &seen = coverage[static_cast<size_t>(dim.dim)];
    if (dim.part == Part::whole) {
      ++seen.whole;
      continue;
    }
    if (dim.tile < 1 || (seen.tile != 0 && seen.tile != dim.tile))
      return concat("dimension ", dim.dim, " has tiles of ", seen.tile, " and of ", dim.tile);
    seen.tile = dim.tile;
    ++(dim.part == Part::tileNumber ? seen.tileNumber : seen.placeInTile);
  }
  for (size_t i = 0; i < coverage.size(); ++i) {
    const Coverage &seen = coverage[i];
    bool whole = seen.whole == 1 && seen.tileNumber == 0 && seen.placeInTile == 0;
    bool tiled = seen.whole == 0 && seen.tileNumber == 1 && seen.placeInTile == 1;
    if (!whole && !tiled)
      return concat("dimension ", i, " is covered neither once nor by one pair of div and mod");
  }
  return {};
}

Shape physicalShape(const Shape &shape, const Layout &layout) {
  if (layout.empty())
    return shape;
  Shape sizes;
  for (const PhysicalDim &dim : layout) {
    int64_t size = shape[static_cast<size_t>(dim.dim)];
    switch (dim.part) {
    case Part::whole:
      sizes.push_back(size);
      break;
    case Part::tileNumber:
      sizes.push_back(size / dim.tile + (size % dim.tile != 0));
      break;
    case Part::placeInTile:
      sizes.push_back(dim.tile);
      break;
    }
  }
  return sizes;
}

/// Calls `run` with a value of an unsigned type of `elementSize` bytes.
template <typename Run> static void withElementOfSize(size_t elementSize, Run run) {
  if (elementSize == 1)
    return run(uint8_t());
  if (elementSize == 2)
    return run(uint16_t());
  if (elementSize == 4)
    return run(uint32_t());
  run(uint64_t());
}

static void copyRowMajor(const Shape &shape, size_t elementSize, const std::byte *from, std::byte *to) {
  if (int64_t elements = elementsOf(shape); elements > 0)
    std::memcpy(to, from, static_cast<size_t>(elements) * elementSize);
}

void pack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *logical, std::byte *physical) {
  if (layout.empty())
    return copyRowMajor(shape, elementSize, logical, physical);
  withElementOfSize(elementSize,
                    [&](auto element) { Walk(shape, layout, PackCopy<decltype(element)>{logical, physical}).run(); });
}

void unpack(const Shape &shape, const Layout &layout, size_t elementSize, const std::byte *physical,
            std::byte *logical) {
  if (layout.empty())
    return copyRowMajor(shape, elementSize, physical, logical);
  withElementOfSize(elementSize,
                    [&](auto element) { Walk(shape, layout, UnpackCopy<decltype(element)>{physical, logical}).run(); });
}

/// The least number of consecutive rows (indices of dimension 0) that are contiguous in memory; 0 if rows never are.
static int64_t rowsTogether(const Layout &layout) {
  if (layout.empty())
    return 1;
  const PhysicalDim &outermost = layout.front();
  if (outermost.dim != 0 || outermost.part == Part::placeInTile)
    return 0;
  return outermost.part == Part::tileNumber ? outermost.tile : 1;
}

void forEachPiece(const Shape &shape, const Layout &layout, size_t elementSize,
                  const std::function<void(const Shape &piece, size_t logical, size_t physical)> &visit) {
  constexpr size_t wanted = size_t(4) << 20;
  int64_t together = rowsTogether(layout);
  if (shape.empty() || together == 0 || elementsOf(shape) == 0)
    return visit(shape, 0, 0);
  Shape piece = shape;
  piece[0] = together;
  size_t logical = static_cast<size_t>(elementsOf(piece)) * elementSize;
  size_t physical = static_cast<size_t>(elementsOf(physicalShape(piece, layout))) * elementSize;
  size_t step = std::max<size_t>(1, wanted / logical);
  int64_t rows = static_cast<int64_t>(step) * together;
  size_t done = 0;
  for (int64_t row = 0; row < shape[0]; row += rows, done += step) {
    piece[0] = std::min(rows, shape[0] - row);
    visit(piece, done * logical, done * physical);
  }
}

} // namespace sluice::runtime
