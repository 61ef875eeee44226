// Chooses the register tile, and splits the columns of a result into groups of tiles, by a model of the core.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"

#include <cstdint>
#include <string>

namespace sluice::cpu {

// `full` groups of `width` columns, then one of `tail` columns (if not 0). Each begins with a panel, or lies in one.
struct ColumnGroups {
  int64_t width = 0, full = 0, tail = 0;
  int64_t rows = 1, tailRows = 1; // rows of the tiles in full groups and in the tail

  int64_t count() const { return full + (tail != 0); }
  std::string text() const; // "6 x 32", and that of the tail
};

struct TileProblem {
  int64_t elementBits = 32;
  int64_t rows = 1;        // of C, to be cut into tiles
  int64_t columns = 1;     // of C
  int64_t panel = 0;       // width of B's panels; 0: rows of any width
  int64_t depth = 1;       // terms of each sum
  int64_t rowBytes = 0;    // distance of A's rows; rows at a multiple of 4 KB evict each other
  int64_t mostVectors = 6; // of a group
  int64_t mostSums = 128;  // vectors of sums of a tile
  bool evenRows = false;   // shrink the last tiles evenly instead of having one remainder tile
  bool wholeRows = false;  // the last tile is computed whole, with rows beyond those of C
};

ColumnGroups chooseTiles(const TileProblem &problem, const Target &target);

// The maximum rows of a tile of this many vectors that fit in registers.
int64_t maxTileRows(int64_t vectors, const Target &target);

// The share of the lanes that columns fill.
double filledLanes(int64_t columns, int64_t lanes);

} // namespace sluice::cpu
