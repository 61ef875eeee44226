#include "runtime/plan/Layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

using namespace sluice::runtime;
using Part = PhysicalDim::Part;

namespace {

/// The physical position of logical element `index`, computed from the definition.
size_t placeOf(const Shape &shape, const Layout &layout, const Shape &index) {
  Shape sizes = physicalShape(shape, layout);
  int64_t place = 0;
  for (size_t i = 0; i < layout.size(); ++i) {
    int64_t at = index[static_cast<size_t>(layout[i].dim)];
    if (layout[i].part == Part::tileNumber)
      at /= layout[i].tile;
    if (layout[i].part == Part::placeInTile)
      at %= layout[i].tile;
    place = place * sizes[i] + at;
  }
  return static_cast<size_t>(place);
}

/// The next index in row-major order; false after the last.
bool advance(Shape &index, const Shape &shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i])
      return true;
    index[i] = 0;
  }
  return false;
}

template <typename T> void expectPacksLikeReference(const Shape &shape, const Layout &layout) {
  ASSERT_EQ(layoutError(shape, layout), "");
  std::vector<T> logical(static_cast<size_t>(elementsOf(shape)));
  for (size_t i = 0; i < logical.size(); ++i)
    logical[i] = static_cast<T>(i + 1);
  size_t physicalSize = static_cast<size_t>(elementsOf(physicalShape(shape, layout)));
  std::vector<T> expected(physicalSize, T(0)), physical(physicalSize, T(77)), back(logical.size(), T(0));
  Shape index(shape.size(), 0);
  size_t element = 0;
  if (!logical.empty())
    do
      expected[placeOf(shape, layout, index)] = logical[element++];
    while (advance(index, shape));

  pack(shape, layout, sizeof(T), reinterpret_cast<std::byte *>(logical.data()),
       reinterpret_cast<std::byte *>(physical.data()));
  EXPECT_EQ(physical, expected);
  unpack(shape, layout, sizeof(T), reinterpret_cast<std::byte *>(physical.data()),
         reinterpret_cast<std::byte *>(back.data()));
  EXPECT_EQ(back, logical);
}

/// A random layout: every dimension whole or tiled, in random order.
Layout randomLayout(size_t rank, std::mt19937 &random) {
  Layout layout;
  for (size_t i = 0; i < rank; ++i) {
    int dim = static_cast<int>(i);
    if (random() % 2) {
      layout.push_back({dim, Part::whole, 0});
      continue;
    }
    int64_t tile = 1 + static_cast<int64_t>(random() % 9);
    layout.push_back({dim, Part::tileNumber, tile});
    layout.push_back({dim, Part::placeInTile, tile});
  }
  std::shuffle(layout.begin(), layout.end(), random);
  return layout;
}

} // namespace

TEST(Layout, RowMajorIsACopy) { expectPacksLikeReference<float>({3, 4}, {{0, Part::whole, 0}, {1, Part::whole, 0}}); }

TEST(Layout, ConvolutionPanels) {
  expectPacksLikeReference<float>({20, 1, 3, 3}, {{0, Part::tileNumber, 32},
                                                  {2, Part::whole, 0},
                                                  {3, Part::whole, 0},
                                                  {1, Part::whole, 0},
                                                  {0, Part::placeInTile, 32}});
}

TEST(Layout, PadsWithZeros) {
  Layout layout = {{0, Part::tileNumber, 4}, {0, Part::placeInTile, 4}};
  float logical[5] = {1, 2, 3, 4, 5}, physical[8];
  std::fill(std::begin(physical), std::end(physical), 9.0f);
  pack({5}, layout, 4, reinterpret_cast<std::byte *>(logical), reinterpret_cast<std::byte *>(physical));
  EXPECT_EQ(std::vector<float>(physical, physical + 8), (std::vector<float>{1, 2, 3, 4, 5, 0, 0, 0}));
}

TEST(Layout, RandomLayoutsMatchTheReference) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    Shape shape;
    for (size_t rank = random() % 5; shape.size() < rank;)
      shape.push_back(static_cast<int64_t>(random() % 12));
    Layout layout = randomLayout(shape.size(), random);
    SCOPED_TRACE(shapeText(shape));
    expectPacksLikeReference<uint32_t>(shape, layout);
    expectPacksLikeReference<uint64_t>(shape, layout);
    expectPacksLikeReference<uint16_t>(shape, layout);
    expectPacksLikeReference<uint8_t>(shape, layout);
  }
}

TEST(Layout, RefusesWhatDoesNotCoverTheTensorOnce) {
  EXPECT_NE(layoutError({4, 4}, {{0, Part::whole, 0}}), "");
  EXPECT_NE(layoutError({4}, {{0, Part::whole, 0}, {0, Part::whole, 0}}), "");
  EXPECT_NE(layoutError({4}, {{1, Part::whole, 0}}), "");
  EXPECT_NE(layoutError({4}, {{0, Part::tileNumber, 2}}), "");
  EXPECT_NE(layoutError({4}, {{0, Part::tileNumber, 2}, {0, Part::placeInTile, 4}}), "");
}

TEST(Layout, PiecesArePackedAsTheWholeIs) {
  const Layout rowMajor, panels = {{0, Part::tileNumber, 64}, {1, Part::whole, 0}, {0, Part::placeInTile, 64}},
                         columns = {{1, Part::whole, 0}, {0, Part::whole, 0}};
  for (const Layout *chosen : {&rowMajor, &panels, &columns}) {
    const Layout &layout = *chosen;
    const Shape shape = {1000, 3001}; // 12 MB, not a multiple of the tile size
    std::vector<float> logical(static_cast<size_t>(elementsOf(shape)));
    std::iota(logical.begin(), logical.end(), 1.0f);
    std::vector<float> whole(static_cast<size_t>(elementsOf(physicalShape(shape, layout))), -1), inPieces = whole;
    auto at = [](std::vector<float> &values, size_t bytes) {
      return reinterpret_cast<std::byte *>(values.data()) + bytes;
    };
    pack(shape, layout, sizeof(float), at(logical, 0), at(whole, 0));
    size_t pieces = 0, next = 0;
    forEachPiece(shape, layout, sizeof(float), [&](const Shape &piece, size_t from, size_t to) {
      EXPECT_EQ(from, next);
      next += static_cast<size_t>(elementsOf(piece)) * sizeof(float);
      ++pieces;
      pack(piece, layout, sizeof(float), at(logical, from), at(inPieces, to));
    });
    EXPECT_EQ(next, logical.size() * sizeof(float));
    EXPECT_EQ(inPieces, whole);
    EXPECT_EQ(pieces > 1, chosen != &columns);
  }
}
