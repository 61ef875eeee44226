// Chooses the register tile, and cuts the columns of a result into groups that tiles cover, by a model of the core.
#pragma once

#include "backends/cpu/compiler/machine/Target.h"

#include <cstdint>

namespace sluice::cpu {

// `full` groups of `width` columns, then one of `tail` columns (if not 0). No group crosses a panel.
struct ColumnGroups {
  int64_t width = 0, full = 0, tail = 0;
  int64_t rows = 1, tailRows = 1; // rows of the tiles in full groups and in the tail

  int64_t count() const { return full + (tail != 0); }
};

struct TileProblem {
  int64_t elementBits = 32;
  int64_t rows = 1;      // of C, to be cut into tiles
  int64_t columns = 1;   // of C
  int64_t panel = 0;     // B lies in panels of this width; 0: rows of any width
  int64_t depth = 1;     // terms of each sum
  int64_t rowBytes = 0;  // distance of A's rows; many at a multiple of 4 KB evict each other
  bool evenRows = false; // the last tiles are made smaller together, rather than one tile being the rest
};

ColumnGroups chooseTiles(const TileProblem &problem, const Target &target);

// Most rows that a tile of so many vectors can have in the registers.
int64_t maxTileRows(int64_t vectors, const Target &target);

// Share of the lanes of whole vectors that the columns fill.
double filledLanes(int64_t columns, int64_t lanes);

} // namespace sluice::cpu
