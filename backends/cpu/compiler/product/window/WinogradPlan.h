// Whether a window sum is computed by Winograd's algorithm, with which tiles, and how its tasks are cut.
//
// Tiles of m x m outputs are numbered through the images of a call. A task has a block of tiles. There are two orders of
// work, so that the larger of the two transformed operands never leaves the caches of a core:
//   filters first   a stage transforms all filters; a task transforms the images of its tiles,
//   images first    a stage transforms all images; a task transforms the filters of its group of output channels.
#pragma once

#include "backends/cpu/compiler/product/tile/TileChoice.h"
#include "backends/cpu/compiler/product/window/WindowSum.h"
#include "backends/cpu/compiler/product/window/WinogradTransform.h"

#include <optional>
#include <string>

namespace sluice::cpu {

struct WinogradPlan {
  int64_t outputs = 0;          // m: rows and columns of a tile, 2 or 4
  int64_t down = 0, across = 0; // tiles of an image
  bool imagesFirst = false;
  ColumnGroups groups;  // of output channels
  int64_t tileRows = 1; // rows of the register tile, each of which is a tile of outputs
  int64_t tilesOfTask = 1;
  int64_t imagesPerTask = 1, tasksOfImage = 1; // one of both is 1
  int64_t block = 1;        // tiles whose images are in the cache together: all of the task, if images come first
  int64_t groupsOfTask = 1; // one if images come first, else all
  int64_t terms = 1;        // channels whose filters a task transforms at once: all, if filters come first
  double cycles = 0;        // predicted, of one core

  const WinogradTransforms &transforms() const { return winogradTransforms(outputs); }
  int64_t tilesOfImage() const { return down * across; }
  // Tiles whose sums are in the cache together: all of the task, if its filters are transformed in parts.
  int64_t rowsOfSums(int64_t channels) const { return terms < channels ? tilesOfTask : tileRows; }
  std::string text() const; // "F(4x4), 14 x 32"
};

// The plan for m outputs. None if the sum is not of a 3 x 3 window with strides of 1, is not of f32, or has so few
// channels that they do not fill a vector.
std::optional<WinogradPlan> planWinograd(const WindowSum &sum, int64_t outputs, const Target &target);

// The plan with the shortest predicted time. None if the direct sum is as fast, or unless the target permits fast math.
std::optional<WinogradPlan> chooseWinograd(const WindowSum &sum, const Target &target);

} // namespace sluice::cpu
