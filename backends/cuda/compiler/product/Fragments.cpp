#include "backends/cuda/compiler/product/Fragments.h"

#include <fmt/format.h>

namespace sluice::cuda {

/// A product of fragments for each pair of them, with `arguments` behind the sums that it adds to.
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

/// Statements that load four matrices of 8 x 8 into each `part[l]`: where a lane's row lies is said for either arrangement.
static std::string loadParts(const TiledProduct &p, const TileOperand &operand, const char *bySide,
                             const char *byDepth) {
  const TileSide &side = p.sideOf(operand);
  bool liesBySide = p.liesBySide(operand);
  return fmt::format("EACH({0}) loadMatrices<{1}>({2}Part[l], &{2}[slot]{3});\n", side.perThread / 2, !liesBySide,
                     operand.name, liesBySide ? bySide : byDepth);
}

/// Of B four matrices are two fragments, one behind the other in the sum; of A they are one.
static std::string multiplyHalves(const TiledProduct &p) {
  constexpr int64_t kTerms = 16;
  static_assert(kFragment.rows == 16 && kFragment.columns == 8);
  std::string text = fmt::format("      unsigned bPart[{}][4];\n      ", p.n.perThread / 2);
  text += loadParts(p, p.operands[1], "[warpN + l * 8 + lane % 8][lane / 8 * 8]", "[lane][warpN + l * 8]");
  text += fmt::format("      _Pragma(\"unroll\") for (int depth = 0; depth < {}; depth += {}) {{\n"
                      "        unsigned aPart[{}][4];\n        ",
                      p.depth, kTerms, p.m.perThread / 2);
  text += loadParts(p, p.operands[0], "[warpM + l * 16 + lane % 16][depth + lane / 16 * 8]",
                    "[depth + lane / 16 * 8 + lane % 8][warpM + l * 16 + lane / 8 % 2 * 8]");
  std::string function = "multiply" + p.term;
  return text + eachFragment(p, function.c_str(), "aPart[i], bPart[j][depth / 8], bPart[j][depth / 8 + 1]") +
         "      }\n";
}

std::string multiplyFragments(const TiledProduct &product) {
  return product.cores == Cores::Tf32 ? multiplySingles(product) : multiplyHalves(product);
}

} // namespace sluice::cuda
