// Register tiles that keep both multiply-add units of a core busy, and that read B's panels in their layout.
#include "backends/cpu/compiler/product/tile/TileChoice.h"

#include "backends/cpu/compiler/product/Contraction.h"

#include "llvm/Support/MathExtras.h"

#include <gtest/gtest.h>

namespace sluice::cpu {
namespace {

Target target(const char *cpu) { return llvm::cantFail(Target::of(cpu)); }

TileProblem panelsOf(int64_t rows, int64_t columns, const Target &machine) {
  TileProblem problem;
  problem.rows = rows;
  problem.columns = columns;
  problem.depth = 768;
  problem.panel = panelWidth(columns, 32, machine);
  return problem;
}

// Two vectors of B, and as many sums as two units need to be busy. A tile of 2 rows and 32 columns reads B twice as often,
// and has 8 sums, too few for 5 cycles of latency.
TEST(TileChoice, TilesForSixteenRegistersAreTwoVectorsWide) {
  for (const char *cpu : {"haswell", "skylake", "znver2", "znver3", "alderlake"})
    for (int64_t rows : {48, 128, 130, 1024}) {
      ColumnGroups groups = chooseTiles(panelsOf(rows, 3072, target(cpu)), target(cpu));
      EXPECT_EQ(groups.width, 16) << cpu << ", " << rows;
      EXPECT_GE(groups.rows * 2, 2 * target(cpu).fmaLatency) << cpu << ", " << rows;
    }
}

TEST(TileChoice, OneRowCoversSeveralPanels) {
  for (const char *cpu : {"haswell", "znver3"})
    EXPECT_EQ(chooseTiles(panelsOf(1, 3072, target(cpu)), target(cpu)).width, 48) << cpu;
}

TEST(TileChoice, GroupsBeginWithAPanelOrLieInOne) {
  for (const char *cpu : {"haswell", "znver4", "skylake-avx512"})
    for (int64_t rows : {1, 2, 3, 7, 14, 100})
      for (int64_t columns = 1; columns <= 200; ++columns) {
        TileProblem problem = panelsOf(rows, columns, target(cpu));
        ColumnGroups groups = chooseTiles(problem, target(cpu));
        ASSERT_EQ(groups.full * groups.width + groups.tail, columns);
        for (int64_t group = 0; group < groups.count(); ++group) {
          int64_t first = group * groups.width, last = std::min(first + groups.width, columns) - 1;
          bool begins = first % problem.panel == 0, lies = first / problem.panel == last / problem.panel;
          EXPECT_TRUE(begins || lies) << cpu << ": " << rows << " rows, columns " << first << " to " << last << " of "
                                      << columns << ", panels of " << problem.panel;
        }
      }
}

TEST(TileChoice, TilesFitIntoTheRegisters) {
  for (const char *cpu : {"haswell", "skylake-avx512"}) {
    Target machine = target(cpu);
    for (int64_t rows : {1, 5, 30})
      for (int64_t columns : {1, 9, 40, 100, 500}) {
        ColumnGroups groups = chooseTiles(panelsOf(rows, columns, machine), machine);
        int64_t width = groups.full ? groups.width : groups.tail, height = groups.full ? groups.rows : groups.tailRows;
        int64_t vectors = llvm::divideCeil(width, machine.lanes(32));
        EXPECT_LE(height * vectors + vectors + 1, machine.numVectorRegisters) << cpu << ", " << groups.text();
      }
  }
}

} // namespace
} // namespace sluice::cpu
