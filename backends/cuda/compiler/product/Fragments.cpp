#include "backends/cuda/compiler/product/Fragments.h"

#include <fmt/format.h>

namespace sluice::cuda {

/// Source that calls `function` for each pair of fragments, with their sums and then `arguments`.
static std::string eachFragment(const TiledProduct &p, const char *function, const char *arguments) {
  const char *into = p.hasChains() ? "chain" : "sum";
  return fmt::format("        _Pragma(\"unroll\") for (int i = 0; i < {0}; ++i)\n"
                     "          _Pragma(\"unroll\") for (int j = 0; j < {1}; ++j)\n"
                     "            {2}({3}[2 * i][2 * j], {3}[2 * i][2 * j + 1], {3}[2 * i + 1][2 * j], "
                     "{3}[2 * i + 1][2 * j + 1], {4});\n",
                     p.m.perThread / 2, p.n.perThread / 2, function, into, arguments);
}

static std::string multiplySingles(const TiledProduct &p) {
  constexpr int64_t kTerms = 8;
  std::string text = fmt::format("      _Pragma(\"unroll\") for (int depth = 0; depth < {}; depth += {}) {{\n"
                                 "        const int its = depth + lane % 4, group = lane / 4;\n"
                                 "        float aPart[{}][4], bPart[{}][2];\n",
                                 p.depth, kTerms, p.m.perThread / 2, p.n.perThread / 2);
  text += fmt::format("        EACH({}) {{\n"
                      "          const int row = warpM + l * {} + group;\n"
                      "          aPart[l][0] = a[slot][its][row], aPart[l][1] = a[slot][its][row + 8];\n"
                      "          aPart[l][2] = a[slot][its + 4][row], aPart[l][3] = a[slot][its + 4][row + 8];\n"
                      "        }}\n",
                      p.m.perThread / 2, kFragment.rows);
  text += fmt::format("        EACH({}) {{\n"
                      "          const int column = warpN + l * {} + group;\n"
                      "          bPart[l][0] = b[slot][its][column], bPart[l][1] = b[slot][its + 4][column];\n"
                      "        }}\n",
                      p.n.perThread / 2, kFragment.columns);
  return text + eachFragment(p, "multiplyTf32", "aPart[i], bPart[j]") + "      }\n";
}

/// Whether a warp has several fragments of columns.
static bool hasNeighbours(const TiledProduct &p) { return p.n.perThread > 2; }

std::string firstRow(const TiledProduct &p, const TileOperand &operand) {
  bool liesBySide = p.liesBySide(operand);
  if (&operand == &p.operands[0])
    return liesBySide ? "[warpM + lane % 16][lane / 16 * 8]" : "[lane / 16 * 8 + lane % 8][warpM + lane / 8 % 2 * 8]";
  if (hasNeighbours(p))
    return liesBySide ? "[warpN + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]" : "[lane % 16][warpN + lane / 16 * 8]";
  return liesBySide ? "[warpN + lane % 8][lane / 8 * 8]" : "[lane][warpN]";
}

/// Statements that load four matrices of 8 x 8 into each of `count` `part[l]`.
static std::string loadParts(const TiledProduct &p, const TileOperand &operand, int64_t count,
                             const Matrices &matrices) {
  bool liesBySide = p.liesBySide(operand);
  return fmt::format("EACH({0}) loadMatrices<{1}>({2}Part[l], {2}Rows + slot * {3} + {4} * {5} + {6});\n", count,
                     !liesBySide, operand.name, matrices.betweenSteps, liesBySide ? "l * 16" : "depth",
                     matrices.rowLength, liesBySide ? "depth" : "l * 16");
}

/// Four matrices are a fragment of A. Two are a fragment of B, and four are two adjacent fragments or, if a warp has
/// only one fragment, one of twice as many terms.
static std::string multiplyHalves(const TiledProduct &p, const Matrices &ofA, const Matrices &ofB) {
  constexpr int64_t kTerms = 16;
  static_assert(kFragment.rows == 16 && kFragment.columns == 8);
  int64_t fragmentsOfA = p.m.perThread / 2, fragmentsOfB = p.n.perThread / 2;
  std::string text = fmt::format("      unsigned aPart[{}][4], bPart[{}][4];\n"
                                 "      _Pragma(\"unroll\") for (int depth = 0; depth < {}; depth += {}) {{\n",
                                 fragmentsOfA, (fragmentsOfB + 1) / 2, p.depth, kTerms);
  text += hasNeighbours(p) ? "        " : "        if (depth % 32 == 0) ";
  text += loadParts(p, p.operands[1], (fragmentsOfB + 1) / 2, ofB);
  text += "        " + loadParts(p, p.operands[0], fragmentsOfA, ofA);
  const char *arguments = hasNeighbours(p) ? "aPart[i], bPart[j / 2][j % 2 * 2], bPart[j / 2][j % 2 * 2 + 1]"
                                           : "aPart[i], bPart[0][depth % 32 / 8], bPart[0][depth % 32 / 8 + 1]";
  return text + eachFragment(p, ("multiply" + p.term).c_str(), arguments) + "      }\n";
}

std::string multiplyFragments(const TiledProduct &product, const Matrices &ofA, const Matrices &ofB) {
  return product.cores == Cores::Tf32 ? multiplySingles(product) : multiplyHalves(product, ofA, ofB);
}

} // namespace sluice::cuda
