// Products by equations, with letters in every role and in several layouts, against the reference function.
#include "tests/backends/cpu/KernelRun.h"

#include <gtest/gtest.h>
#include <ostream>

namespace sluice::cpu::testing {
namespace {

constexpr int64_t kCapacity = 7;

struct EinsumCase {
  const char *equation, *a, *b, *y;
  const char *layoutOfA = "", *layoutOfB = "", *layoutOfY = ""; // such as "cab": outermost first
};

std::ostream &operator<<(std::ostream &os, const EinsumCase &c) { return os << c.equation << " of " << c.a; }

/// A type whose layout is given as its letters in memory order.
std::string typeOf(const std::string &shape, const std::string &element, const std::string &layout) {
  std::string text = "tensor<" + shape + (shape.empty() ? "" : "x") + element;
  if (layout.empty())
    return text + ">";
  std::string dims, order;
  for (size_t i = 0; i < layout.size(); ++i) {
    dims += (i ? ", d" : "d") + std::to_string(i);
    order += (i ? ", d" : "d") + std::to_string(layout[i] - 'a');
  }
  return text + ", #sluice.at<layout = affine_map<(" + dims + ") -> (" + order + ")>>>";
}

class EinsumKernels : public ::testing::TestWithParam<EinsumCase> {
protected:
  void expectAgrees(const std::string &element, bool hasEpilogue, double tolerance) {
    const EinsumCase &c = GetParam();
    std::string a = typeOf(c.a, element, c.layoutOfA), b = typeOf(c.b, element, c.layoutOfB),
                y = typeOf(c.y, element, c.layoutOfY);
    std::string product =
        std::string("%a = sluice.einsum \"") + c.equation + "\" %0, %1 : (" + a + ", " + b + ") -> " + y;
    KernelRun kernel = hasEpilogue
                           ? KernelRun({a, b, y}, product + "\n%b = sluice.mul %a, %2 : (" + y + ", " + y + ") -> " + y,
                                       "%b, %a : " + y + ", " + y, kCapacity)
                           : KernelRun({a, b}, product, "%a : " + y, kCapacity);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    kernel.randomize(-1, 1);
    for (int64_t rows : {7, 2, 1}) {
      kernel.run(rows);
      EXPECT_LE(kernel.error(), tolerance) << element << " with " << rows << " rows";
      auto inOrder = kernel.bytes(0);
      kernel.run(rows, /*seed=*/3);
      EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
    }
  }
};

TEST_P(EinsumKernels, AgreeWithTheReference) {
  for (bool hasEpilogue : {false, true}) {
    expectAgrees("f32", hasEpilogue, 2e-5);
    expectAgrees("f64", hasEpilogue, 1e-13);
  }
}

const EinsumCase cases[] = {
    // linear on rows of matrices, its gradients, and the same with the rows of the call inside.
    {"abc,dc->abd", "?x3x9", "21x9", "?x3x21"},
    {"abc,cd->abd", "?x3x9", "9x21", "?x3x21"},
    {"abc,abd->cd", "?x3x9", "?x3x21", "9x21"},
    {"abc,dc->abd", "3x?x9", "21x9", "3x?x21"},
    {"abc,abd->cd", "?x5x9", "?x5x21", "9x21"},
    // One element along each free letter of an operand, with a batch innermost.
    {"ab,cab->cb", "3x2", "1x3x2", "1x2"},
    {"abc,adc->bdc", "9x70x8", "9x1x8", "70x1x8"},
    {"abc,adc->bdc", "9x1x8", "9x70x8", "1x70x8", "", "", "acb"},
    {"abc,adc->bdc", "9x1x8", "9x1x8", "1x1x8"},
    {"abcd,aecd->bead", "?x1x3x9", "?x1x3x9", "1x1x?x9"},
    // Several free letters of each operand: adjacent letters merge.
    {"abc,cde->abde", "?x3x9", "9x2x21", "?x3x2x21"},
    {"abc,cde->abde", "?x3x9", "9x3x32", "?x3x3x32"},
    {"abc,dec->abde", "?x3x9", "3x32x9", "?x3x3x32"},
    {"abc,dec->dabe", "?x3x9", "3x32x9", "3x?x3x32"},
    {"abc,bde->dace", "5x9x3", "9x2x21", "2x5x3x21"},
    {"abc,bde->ecda", "?x9x3", "9x2x5", "5x3x2x?"},
    // Attention heads, which are inside of positions, with the rows as the batch and as the positions.
    {"abcd,aecd->acbe", "?x5x2x9", "?x11x2x9", "?x2x5x11"},
    {"abcd,adbe->acbe", "?x2x5x11", "?x11x2x9", "?x5x2x9"},
    {"abcd,aecd->acbe", "2x?x3x9", "2x11x3x9", "2x3x?x11"},
    {"abcd,aecd->acbe", "2x5x3x9", "2x?x3x9", "2x3x5x?"},
    {"abcd,adbe->acbe", "2x3x5x?", "2x?x3x9", "2x5x3x9"},
    // Several summed letters.
    {"abcd,ebcd->ae", "6x2x3x4", "21x2x3x4", "6x21"},
    {"abcd,abce->de", "?x2x3x9", "?x2x3x21", "9x21"},
    {"abc,dabe->dce", "?x3x9", "2x?x3x21", "2x9x21"},
    // Dimensions of size 1 are anywhere.
    {"abc,dc->abd", "1x1x9", "21x9", "1x1x21"},
    {"abcd,abce->bde", "?x1x3x9", "?x1x3x21", "1x9x21"},
    {"abc,acd->abd", "?x4x9", "?x9x1", "?x4x1"},
    // One operand has no free letter, or neither has: a loop nest.
    {"ab,b->a", "?x33", "33", "?"},
    {"abc,b->ac", "?x9x21", "9", "?x21"},
    {"a,ba->b", "33", "?x33", "?"},
    {"ab,ab->a", "?x33", "?x33", "?"},
    {"ab,ab->", "?x33", "?x33", ""},
    {"ab,ab->ab", "?x33", "?x33", "?x33"},
    {"ab,c->cab", "?x9", "3", "3x?x9"},
    {",ab->ba", "", "?x9", "9x?"},
    // Layouts: operands and results whose dimensions have another memory order.
    {"abc,dc->abd", "?x3x9", "21x9", "?x3x21", "acb", "ba"},
    {"abc,dc->abd", "?x3x9", "21x9", "?x3x21", "bac", "", "bac"},
    {"abc,abd->cd", "?x3x9", "?x3x21", "9x21", "cab", "cab", "ba"},
    {"abc,acd->bda", "3x5x9", "3x9x21", "5x21x3", "", "", "cab"},
    {"abc,acd->bda", "?x5x9", "?x9x21", "5x21x?", "", "", "bca"},
};

// Summed letters that are not adjacent in b: a layout makes them adjacent.
const EinsumCase relaid[] = {
    {"abcd,befc->adef", "5x3x4x7", "3x6x2x4", "5x7x6x2", "", "adbc"},
    {"abc,cdb->ad", "6x3x4", "4x21x3", "6x21", "", "cab"},
};

INSTANTIATE_TEST_SUITE_P(Equations, EinsumKernels, ::testing::ValuesIn(cases));
INSTANTIATE_TEST_SUITE_P(RelaidOperands, EinsumKernels, ::testing::ValuesIn(relaid));

} // namespace
} // namespace sluice::cpu::testing
