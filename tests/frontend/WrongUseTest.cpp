// Invalid uses of the graph API: each is rejected at the user's line, in the API's terms.
#include "frontend/graph/GraphImpl.h"
#include <sluice/sluice.h>

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Runs `use`, expects an error at this line, and stores it.
#define WRONG(use)                                                                                                     \
  do {                                                                                                                 \
    error = Error("no error", SourceLocation());                                                                       \
    try {                                                                                                              \
      use;                                                                                                             \
    } catch (const Error &caught) {                                                                                    \
      error = caught;                                                                                                  \
    }                                                                                                                  \
    EXPECT_EQ(error.location().line, unsigned(__LINE__));                                                              \
  } while (false)

#define SAYS(text) EXPECT_EQ(error.message(), text)

namespace {

struct WrongUse : testing::Test {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 784});
  Tensor image = g.input("image", f32, {Dim{"batch"}, 4, 9, 9});
  Tensor logits = g.input("logits", f32, {Dim{"batch"}, 10});
  Tensor label = g.input("label", i32, {Dim{"batch"}});
  Tensor bytes = g.input("bytes", u8, {Dim{"batch"}, 784});
  Tensor matrix = g.input("matrix", f32, {512, 10});
  Tensor flag = g.input("flag", boolean, {Dim{"batch"}, 784});
  nn::Module root{g};
  Error error{"", SourceLocation()};

  Tensor parameter(const char *name, Shape shape) { return root.parameter(name, shape, init::zeros()); }
};

struct Inner : nn::Module {
  using Module::Module;
  nn::Linear fc{this, "fc", 100, 10};
  static constexpr unsigned line = __LINE__ + 1;
  Tensor forward(Tensor x) override { return fc(x); }
};

struct NoForward : nn::Module {
  using Module::Module;
};

} // namespace

// --- format of a message

TEST_F(WrongUse, ReadsAsACompilersDiagnostic) {
  WRONG(matmul(x, matrix));
  SAYS("matmul: contracting dimensions differ: 784 and 512 ([batch, 784] x [512, 10])");
  EXPECT_THAT(error.what(), StartsWith("WrongUseTest.cpp:" + std::to_string(error.location().line) + ":"));
  EXPECT_THAT(error.what(), HasSubstr(": error: matmul: "));
  EXPECT_THAT(error.what(), HasSubstr(": note: 'matrix' [512, 10] created here"));
}

TEST_F(WrongUse, NotesNameTheLinesOfOperands) {
  Tensor y = x * 2;
  unsigned line = __LINE__ - 1;
  WRONG(matmul(y, matrix));
  ASSERT_EQ(error.notes().size(), 2u);
  EXPECT_EQ(error.notes()[0].message, "[batch, 784] created here");
  EXPECT_EQ(error.notes()[0].location.line, line);
}

TEST_F(WrongUse, LayersFailAtTheLineThatCallsThem) {
  Inner net{g};
  unsigned line = __LINE__ + 2;
  try {
    net(x);
    FAIL() << "no error";
  } catch (const Error &caught) {
    EXPECT_EQ(caught.message(), "linear: contracting dimensions differ: 784 and 100 ([batch, 784] x [10, 100] x [10])");
    EXPECT_EQ(caught.location().line, Inner::line);
    EXPECT_EQ(caught.notes().back().message, "called from here");
    EXPECT_EQ(caught.notes().back().location.line, line);
  }
}

TEST_F(WrongUse, OperatorsKnowTheirLine) {
  WRONG(x + matrix);
  SAYS("+: sizes do not broadcast: 784 and 10 in dimension -1 ([batch, 784] x [512, 10])");
  WRONG(2 * label / logits);
  SAYS("/: dtypes differ: i32 and f32; convert one with .to(...) ([batch] x [batch, 10])");
}

TEST_F(WrongUse, MethodsKnowTheirLine) {
  WRONG(x.sum(2));
  SAYS("sum: dimension 2 is out of range for 2 dimensions ([batch, 784])");
}

// --- operands

TEST_F(WrongUse, EmptyTensor) {
  WRONG(relu(Tensor()));
  SAYS("relu: an operand is an empty tensor");
  EXPECT_THROW(!Tensor(), Error); // an operator has no line
}

TEST_F(WrongUse, ProbabilitiesThatAreNone) {
  WRONG(dropout(x, -0.25));
  SAYS("dropout: p is a probability, within [0, 1], not -0.25 ([batch, 784])");
  WRONG(dropout(x, std::nan("")));
  SAYS("dropout: p is a probability, within [0, 1], not nan ([batch, 784])");
  WRONG(dropout(argmax(x, 1), 0.5));
  SAYS("dropout: works on floats, not i32; convert with .to(f32) ([batch])");
}

TEST_F(WrongUse, MethodsOfAnEmptyTensor) {
  Tensor none;
  WRONG(none.dim());
  SAYS("dim: the tensor is empty");
  WRONG(none.shape());
  SAYS("shape: the tensor is empty");
  WRONG(none.dtype());
  SAYS("dtype: the tensor is empty");
  WRONG(none.size(0));
  SAYS("size: an operand is an empty tensor");
  WRONG(none.device());
  SAYS("device: an operand is an empty tensor");
  WRONG(none.exp());
  SAYS("exp: an operand is an empty tensor");
  WRONG(none.copy_(x));
  SAYS("copy_: an operand is an empty tensor ([batch, 784])");
}

TEST_F(WrongUse, TensorsOfTwoGraphs) {
  Graph other{"other"};
  Tensor y = other.input("y", f32, {3});
  WRONG(x + y);
  SAYS("+: operands of two graphs: 'test' and 'other'");
  WRONG(g.output("y", y));
  SAYS("output: the tensor belongs to another graph, 'other' ([3])");
}

TEST_F(WrongUse, IntegersWhereFloatsBelong) {
  WRONG(exp(bytes));
  SAYS("exp: works on floats, not u8; convert with .to(f32) ([batch, 784])");
  WRONG(bytes.mean());
  SAYS("mean: works on floats, not u8; convert with .to(f32) ([batch, 784])");
  WRONG(conv2d(label, image));
  SAYS("conv2d: works on floats, not i32; convert with .to(f32) ([batch] x [batch, 4, 9, 9])");
}

TEST_F(WrongUse, MixedDTypes) {
  WRONG(maximum(x, bytes));
  SAYS("maximum: dtypes differ: f32 and u8; convert one with .to(...) ([batch, 784] x [batch, 784])");
}

TEST_F(WrongUse, BoolsWhereNumbersBelong) {
  WRONG(flag + flag);
  SAYS("+: works on numbers, not bool; convert with .to(f32) ([batch, 784] x [batch, 784])");
  WRONG(max(flag));
  SAYS("max: works on numbers, not bool; convert with .to(f32) ([batch, 784])");
  WRONG(abs(flag));
  SAYS("abs: works on numbers, not bool; convert with .to(f32) ([batch, 784])");
}

TEST_F(WrongUse, NumbersWhereBoolsBelong) {
  WRONG(where(x, x, x));
  SAYS("where: the condition is f32, not bool ([batch, 784] x [batch, 784] x [batch, 784])");
  WRONG(logical_not(x));
  SAYS("logical_not: the operand is f32, not bool ([batch, 784])");
  WRONG(flag & x);
  SAYS("&: dtypes differ: bool and f32; convert one with .to(...) ([batch, 784] x [batch, 784])");
  WRONG(x | x);
  SAYS("|: works on integers and bool, not f32 ([batch, 784] x [batch, 784])");
  WRONG(logical_or(bytes, bytes));
  SAYS("logical_or: an operand is u8, not bool ([batch, 784] x [batch, 784])");
  WRONG(~x);
  SAYS("~: works on integers and bool, not f32 ([batch, 784])");
  WRONG(flag << 1);
  SAYS("<<: works on integers, not bool ([batch, 784])");
  WRONG(bitwise_right_shift(x, x));
  SAYS("bitwise_right_shift: works on integers, not f32 ([batch, 784] x [batch, 784])");
  WRONG(where(x, 1.0, 0.0));
  SAYS("where: the condition is f32, not bool ([batch, 784])");
}

TEST_F(WrongUse, KeysAndShapesOfRandomNumbers) {
  Tensor key = g.input("key", i32, {2});
  WRONG(random::split(label));
  SAYS("random::split: a key is [2] i32; got [batch] i32 ([batch])");
  WRONG(random::split(key, 0));
  SAYS("random::split: the number of keys must be from 1 to 2^29: 0 ([2])");
  WRONG(random::bits(key, {Dim{"batch"}, 2}));
  SAYS("random::bits: the shape [batch, 2] must be static: it has a dimension without a size ([2])");
  WRONG(random::bits(key, {1 << 15, 1 << 16}));
  SAYS("random::bits: at most 2^30 random numbers can be drawn at once: [32768, 65536] ([2])");
  WRONG(random::uniform(key, {2}, 1, 0));
  SAYS("random::uniform: the bounds of uniform numbers are reversed: 1 and 0 ([2])");
  WRONG(random::uniform(key, {2}, 0, 1, i64));
  SAYS("random::uniform: random numbers are floats; got i64 ([2])");
  WRONG(random::normal(key, {2}, 0, -1));
  SAYS("random::normal: a deviation cannot be negative: -1 ([2])");
}

TEST_F(WrongUse, DiagonalsGridsAndTolerances) {
  WRONG(diag(logits));
  SAYS("diag: would move the rows of a call, which stand for themselves ([batch, 10])");
  WRONG(diag(image));
  SAYS("diag: the input has 4 dimensions, not 1 or 2 ([batch, 4, 9, 9])");
  WRONG(diag(matrix, 10));
  SAYS("diag: the matrix has no diagonal 10: diagonals are from -511 to 9 ([512, 10])");
  WRONG(diag(matrix.select(0, 0), -(1 << 20)));
  SAYS("diag: a matrix with diagonal -1048576 has more than 1048576 rows ([10])");
  WRONG(trace(label));
  SAYS("trace: the input has 1 dimensions, not 2 ([batch])");
  WRONG(tile(matrix, {0}));
  SAYS("tile: a dimension is there once or more, not 0 times ([512, 10])");
  WRONG(meshgrid({matrix}));
  SAYS("meshgrid: each tensor is a vector or a scalar, not [512, 10] ([512, 10])");
  WRONG(meshgrid({matrix.select(0, 0), label}));
  SAYS("meshgrid: dtypes differ: f32 and i32; convert one with .to(...) ([10] x [batch])");
  WRONG(isclose(flag, flag));
  SAYS("isclose: works on numbers, not bool; convert with .to(f32) ([batch, 784] x [batch, 784])");
  WRONG(allclose(x, x, -1));
  SAYS("allclose: the tolerances must not be negative: rtol is -1, atol is 1e-08 ([batch, 784] x [batch, 784])");
}

TEST_F(WrongUse, NumbersThatTheDTypeCannotHold) {
  WRONG(label * 0.5);
  SAYS("*: the number 0.5 is not a value of i32; convert with .to(f32) ([batch])");
  WRONG(256 - bytes);
  SAYS("-: the number 256 is not a value of u8; convert with .to(f32) ([batch, 784])");
  WRONG(clip(label, 0.5, 3));
  SAYS("clip: the bound 0.500000 is not a value of i32; convert with .to(f32) ([batch])");
  WRONG(clamp(bytes, 256));
  EXPECT_THAT(error.message(), StartsWith("clamp: the minimum 256.000000 is above the maximum 255"));
}

TEST_F(WrongUse, AssignmentsThatChangeWhatTheyAssignTo) {
  WRONG(bytes /= 2);
  SAYS("/=: the result is f32 [batch, 784], which cannot be assigned to a tensor of u8; declare a new tensor ([batch, "
       "784])");
  WRONG(matrix += g.zeros({2, 512, 10}));
  SAYS("+=: the result is f32 [2, 512, 10], which cannot be assigned to a tensor of f32; declare a new tensor ([512, "
       "10])");
  WRONG(x *= bytes);
  SAYS("*=: dtypes differ: f32 and u8; convert one with .to(...) ([batch, 784] x [batch, 784])");
}

TEST_F(WrongUse, BatchAgainstAFixedSize) {
  Tensor five = parameter("five", {5, 784});
  WRONG(x - five);
  SAYS("-: sizes do not broadcast: batch and 5 in dimension -2 ([batch, 784] x [5, 784])");
}

TEST_F(WrongUse, ClipsBoundsTheWrongWayRound) {
  WRONG(clip(x, 1.0, 0.5));
  EXPECT_THAT(error.message(), HasSubstr("clip: the minimum 1"));
}

// --- shapes

TEST_F(WrongUse, DimensionsGivenTwice) {
  WRONG(x.mean({1, -1}));
  SAYS("mean: dimension 1 is given twice ([batch, 784])");
}

TEST_F(WrongUse, ReshapesThatChangeTheCount) {
  WRONG(x.reshape({Dim{"batch"}, 28, 29}));
  SAYS("reshape: cannot turn [batch, 784] into [batch, 28, 29] ([batch, 784])");
  WRONG(x.reshape({-1, 100}));
  SAYS("reshape: cannot turn [batch, 784] into [-1, 100] ([batch, 784])");
  WRONG(matrix.reshape({Dim{"batch"}, 10}));
  SAYS("reshape: cannot turn [512, 10] into [batch, 10] ([512, 10])");
}

TEST_F(WrongUse, ReshapesWithSizesThatAreNone) {
  WRONG(matrix.reshape({-1, -1}));
  SAYS("reshape: only one size can be -1: [-1, -1] ([512, 10])");
  WRONG(matrix.reshape({0, 10}));
  SAYS("reshape: sizes are positive or -1, not 0 ([512, 10])");
  WRONG(matrix.reshape({Dim{"time"}, 10}));
  SAYS("reshape: no dimension is called 'time' ([512, 10])");
  WRONG(matrix.reshape({std::int64_t(1) << 62, 16}));
  SAYS("reshape: cannot turn [512, 10] into [4611686018427387904, 16] ([512, 10])");
}

TEST_F(WrongUse, FlatteningTheBatch) {
  WRONG(flatten(image, 3, 1));
  SAYS("flatten: start_dim 3 comes after end_dim 1 ([batch, 4, 9, 9])");
  WRONG(image.transpose(0, 1).flatten(0, 1));
  SAYS("flatten: would mix rows: 4 elements lie before the batch dimension, and in the result 1 ([4, batch, 9, 9])");
}

TEST_F(WrongUse, MergedRowsWhereTheBatchIsNeeded) {
  Tensor tokens = image.flatten(0, 1).flatten(1), labels = g.input("labels", i32, {Dim{"batch"}, 4});
  WRONG(g.output("tokens", tokens));
  SAYS("output: needs the batch as a separate dimension, but it is merged with one of size 4; reshape it first "
       "([batch*4, 81])");
  WRONG(tokens.select(0, 1));
  SAYS("select: cannot work along batch*4: the batch, merged with another dimension ([batch*4, 81])");
  WRONG(tokens + image.flatten(1).slice(1, 0, 81));
  SAYS("+: sizes do not broadcast: [batch*4, 81] and [batch, 81] in dimension -2 ([batch*4, 81] x [batch, 81])");
  WRONG(matmul(tokens.t(), tokens));
  SAYS("matmul: the batch, merged with another dimension, can only be the rows of the first operand; use einsum "
       "([81, batch*4] x [batch*4, 81])");
  WRONG(einsum("na,nb->ab", tokens, logits));
  SAYS("einsum: the letter 'n' has two sizes: [batch*4, 81] and [batch, 10] ([batch*4, 81] x [batch, 10])");
  WRONG(cross_entropy(tokens, labels));
  SAYS("cross_entropy: label needs the shape [batch*4], not [batch, 4] ([batch*4, 81] x [batch, 4])");
  WRONG(tokens.reshape({Dim{"batch"} * 5, -1, 9}));
  SAYS("reshape: cannot turn [batch*4, 81] into [batch*5, -1, 9] ([batch*4, 81])");
  WRONG(cat({tokens, tokens.reshape({Dim{"batch"}, 4, 81})}, 1));
  SAYS("cat: a tensor has 3 dimensions, not 2 ([batch*4, 81] x [batch, 4, 81])");
  WRONG(g.input("many", f32, {Dim{"batch"} * 4, 3}));
  SAYS("input 'many': batch*4 is only allowed as a dimension of reshape; use two dimensions: 'batch' and 4");
}

TEST_F(WrongUse, BranchesThatAreNotAlike) {
  auto one = [&] { return x; };
  WRONG(cond(x > 0.5, one, one));
  SAYS("cond: the condition must be one bool; its dtype is bool; reduce it with any() or all(), or choose by where() "
       "([batch, 784])");
  Tensor isLarge = x.mean() > 0.5;
  WRONG(cond(isLarge, one, [&] { return logits; }));
  SAYS("cond: the branches give [batch, 784] and [batch, 10] ([])");
  WRONG(cond(isLarge, one, [&] { return bytes; }));
  SAYS("cond: dtypes differ: f32 and u8; convert one with .to(...) ([])");
  WRONG(cond(isLarge, [&] { return std::vector<Tensor>{x}; }, [&] { return std::vector<Tensor>{x, x}; }));
  SAYS("cond: one branch gives 1 values, the other 2 ([])");
}

TEST_F(WrongUse, OrdersThatAreNone) {
  Tensor index = g.input("index", i32, {Dim{"batch"}, 3});
  WRONG(topk(x, 785));
  SAYS("topk: k is from 1 to the size of the dimension, 784, not 785 ([batch, 784])");
  WRONG(topk(x, 1, 0));
  SAYS("topk: would put the rows of the batch in order ([batch, 784])");
  WRONG(sort(flag));
  SAYS("sort: works on numbers, not bool; convert with .to(f32) ([batch, 784])");
  WRONG(cumsum(x, 0));
  SAYS("cumsum: would add rows of the batch to each other, one after another ([batch, 784])");
  WRONG(gather(x, 0, index));
  SAYS("gather: cannot choose rows of the batch, whose size is only known at the call ([batch, 784] x [batch, 3])");
  WRONG(gather(x, 1, x));
  SAYS("gather: indices are i32 or i64, not f32 ([batch, 784] x [batch, 784])");
  WRONG(gather(image, 1, index));
  SAYS("gather: the index and the operand differ in their dimensions ([batch, 4, 9, 9] x [batch, 3])");
}

TEST_F(WrongUse, ReshapesThatMixRows) {
  WRONG(image.permute({1, 0, 2, 3}).reshape({Dim{"batch"}, 4, 81}));
  SAYS("reshape: would mix rows: 4 elements lie before the batch dimension, and in the result 1 ([4, batch, 9, 9])");
}

TEST_F(WrongUse, PermutationsThatAreNone) {
  WRONG(image.permute({0, 1, 2}));
  SAYS("permute: names 3 dimensions of 4 ([batch, 4, 9, 9])");
  WRONG(image.permute({0, 1, 2, 2}));
  SAYS("permute: dimension 2 is given twice ([batch, 4, 9, 9])");
  WRONG(image.t());
  SAYS("t: the operand has 4 dimensions, not 2 ([batch, 4, 9, 9])");
}

TEST_F(WrongUse, ExpandingASize) {
  WRONG(matrix.expand({512, 20}));
  SAYS("expand: size 10 cannot become 20 ([512, 10])");
}

TEST_F(WrongUse, SlicesOfNothing) {
  WRONG(x.slice(1, 800));
  EXPECT_THAT(error.message(), StartsWith("slice: takes nothing: from 800 to "));
  WRONG(x.slice(1, 0, 10, 0));
  SAYS("slice: the step is positive, not 0 ([batch, 784])");
  WRONG(x.select(1, 784));
  SAYS("select: index 784 is out of range for 784 ([batch, 784])");
}

TEST_F(WrongUse, TheBatchIsTakenWhole) {
  WRONG(x.slice(0, 1));
  SAYS(
      "slice: would take a part of the batch; a result has all rows of a call, or a size that is known before ([batch, "
      "784])");
  WRONG(x.select(0, 1));
  SAYS("select: would take one row of the batch; a result has all rows of a call, or a size that is known before "
       "([batch, "
       "784])");
  WRONG(cat({x, x}));
  SAYS("cat: would join along the batch; a result has all rows of a call, or a size that is known before ([batch, 784] "
       "x "
       "[batch, 784])");
  WRONG(pad(x, {0, 0, 1, 1}));
  SAYS("pad: would pad or crop the batch; a result has all rows of a call, or a size that is known before ([batch, "
       "784])");
}

TEST_F(WrongUse, PaddingThatFitsNoDimension) {
  WRONG(pad(x, {1}));
  SAYS("pad: takes a pair (before, after) for each dimension from the last; got 1 numbers for 2 dimensions ([batch, "
       "784])");
  WRONG(pad(x, {-700, -84}));
  SAYS("pad: leaves nothing of dimension 1: -700 and -84 of 784 ([batch, 784])");
}

TEST_F(WrongUse, JoiningWhatDoesNotFit) {
  WRONG(cat({}));
  SAYS("cat: needs at least one tensor");
  WRONG(cat({x, logits, image}, 1));
  SAYS("cat: a tensor has 4 dimensions, not 2 ([batch, 784] x [batch, 10] x [batch, 4, 9, 9])");
  WRONG(cat({x, matrix}, 1));
  SAYS("cat: sizes differ in dimension 0: batch and 512 ([batch, 784] x [512, 10])");
}

// --- products, windows, losses

TEST_F(WrongUse, ProductsOfScalars) {
  WRONG(matmul(x.sum(), x));
  SAYS("matmul: a scalar has no matrix product; use * ([] x [batch, 784])");
}

TEST_F(WrongUse, EquationsOfProducts) {
  WRONG(einsum("ij,jk->ik", x, matrix));
  SAYS("einsum: the letter 'j' has two sizes: 784 and 512 ([batch, 784] x [512, 10])");
  EXPECT_THAT(error.what(), HasSubstr(": note: 'matrix' [512, 10] created here"));
  WRONG(einsum("ijk,jk->ik", x, matrix));
  SAYS("einsum: 'ijk' are 3 letters for 2 dimensions ([batch, 784] x [512, 10])");
  WRONG(einsum("ii,jk->ik", x, matrix));
  SAYS("einsum: the letter 'i' is twice in 'ii': diagonals are not taken ([batch, 784] x [512, 10])");
  WRONG(einsum("....i,ij->...j", x, matrix));
  SAYS("einsum: the equation has '.' where a letter or '...' should be ([batch, 784] x [512, 10])");
  WRONG(einsum("...ijk,ij->...k", x, matrix));
  SAYS("einsum: '...ijk' are 3 letters for 2 dimensions ([batch, 784] x [512, 10])");
  WRONG(einsum("i1,1j->ij", x, matrix));
  SAYS("einsum: the equation has '1' where a letter should be ([batch, 784] x [512, 10])");
  WRONG(einsum("ij,jk->il", x, matrix));
  SAYS("einsum: the letter 'l' of the result is in no operand ([batch, 784] x [512, 10])");
  WRONG(einsum("ij,jk->ik", x));
  SAYS("einsum: the equation 'ij,jk->ik' is one of 2 operands; there are 1 ([batch, 784])");
  WRONG(einsum("ij,kj->ik", x, x * 2));
  SAYS("einsum: two different dimensions of the product are the batch ([batch, 784] x [batch, 784])");
}

TEST_F(WrongUse, BiasOfAnotherSize) {
  Tensor weight = parameter("weight", {10, 784}), bias = parameter("bias", {784});
  WRONG(linear(x, weight, bias));
  SAYS("linear: bias has 784 elements for 10 outputs ([batch, 784] x [10, 784] x [784])");
}

TEST_F(WrongUse, ConvolutionsThatDoNotFit) {
  Tensor weight = parameter("weight", {8, 3, 3, 3}), large = parameter("large", {8, 4, 11, 3});
  WRONG(conv2d(image, weight));
  SAYS("conv2d: input channels differ: 4 and 3 ([batch, 4, 9, 9] x [8, 3, 3, 3])");
  WRONG(conv2d(image, large));
  SAYS("conv2d: the window of 11 is larger than the padded input of 9 ([batch, 4, 9, 9] x [8, 4, 11, 3])");
  WRONG(conv2d(x, weight));
  SAYS("conv2d: the input has 2 dimensions, not 4 ([batch, 784] x [8, 3, 3, 3])");
  WRONG(conv2d(image, weight, {}, {.groups = 3}));
  SAYS("conv2d: 3 groups do not divide 4 input and 8 output channels ([batch, 4, 9, 9] x [8, 3, 3, 3])");
  WRONG(conv2d(image, weight, {}, {.stride = 0}));
  SAYS("conv2d: stride is positive, not 0 ([batch, 4, 9, 9] x [8, 3, 3, 3])");
  WRONG(conv2d(image, weight, {}, {.padding = -1}));
  SAYS("conv2d: padding is at least 0, not -1 ([batch, 4, 9, 9] x [8, 3, 3, 3])");
}

TEST_F(WrongUse, PoolsThatDoNotFit) {
  WRONG(max_pool2d(image, 10));
  SAYS("max_pool2d: the window of 10 is larger than the padded input of 9 ([batch, 4, 9, 9])");
  WRONG(avg_pool2d(image, 2, {.padding = 2}));
  SAYS("avg_pool2d: padding is at most half the kernel's size ([batch, 4, 9, 9])");
  WRONG(avg_pool2d(image, 2, {.padding_end = Size2(0, 2)}));
  SAYS("avg_pool2d: padding is less than the dilated kernel's size ([batch, 4, 9, 9])");
  WRONG(max_pool2d(image, 2, {.padding = 3, .dilation = 2, .padding_end = Size2(0)}));
  SAYS("max_pool2d: padding is less than the dilated kernel's size ([batch, 4, 9, 9])");
  WRONG(max_pool2d(image, 3, {.padding_end = Size2(0, -1)}));
  SAYS("max_pool2d: padding_end is at least 0, not -1 ([batch, 4, 9, 9])");
  WRONG(avg_pool2d(image, 12, {.stride = 3, .ceil_mode = true}));
  SAYS("avg_pool2d: the window of 12 is larger than the padded input of 9 and hangs over it by more than 2 ([batch, 4, "
       "9, "
       "9])");
  WRONG(max_pool2d(image, 0));
  SAYS("max_pool2d: kernel_size is positive, not 0 ([batch, 4, 9, 9])");
}

TEST_F(WrongUse, AbsurdNumbers) {
  std::int64_t huge = std::int64_t(1) << 62;
  Tensor weight = parameter("weight", {8, 4, 3, 3});
  WRONG(max_pool2d(image, 3, {.dilation = huge}));
  SAYS("max_pool2d: dilation is at most 2147483647, not 4611686018427387904 ([batch, 4, 9, 9])");
  WRONG(conv2d(image, weight, {}, {.padding = huge}));
  SAYS("conv2d: padding is at most 2147483647, not 4611686018427387904 ([batch, 4, 9, 9] x [8, 4, 3, 3])");
  WRONG(pad(x, {huge, huge}));
  EXPECT_THAT(error.message(), StartsWith("pad: "));
  WRONG(one_hot(label, huge));
  EXPECT_THAT(error.message(), StartsWith("one_hot: "));
  WRONG(x.expand({huge, -1, -1}));
  EXPECT_THAT(error.message(), StartsWith("expand: "));
}

TEST_F(WrongUse, IndicesThatAreNone) {
  WRONG(index_select(matrix, 0, matrix));
  SAYS("index_select: indices are i32 or i64, not f32 ([512, 10] x [512, 10])");
  WRONG(index_select(logits, 0, label));
  SAYS("index_select: cannot choose rows of the batch, whose size is only known at the call ([batch, 10] x [batch])");
  WRONG(index_select(logits, 1, label));
  SAYS("index_select: both have the batch: each row would choose from all ([batch, 10] x [batch])");
  WRONG(embedding(label, image));
  SAYS("embedding: the weight has 4 dimensions, not 2 ([batch] x [batch, 4, 9, 9])");
  WRONG(embedding(label, matrix, 512));
  SAYS("embedding: padding_idx 512 is no row of [512, 10] ([batch] x [512, 10])");
  WRONG((nn::Embedding{&root, "words", 5, 3, {.padding_idx = -6}}));
  SAYS("Embedding: padding_idx -6 is no row of 5");
  WRONG(root.parameter("p", {3}, {.zero_row = 3}));
  SAYS("'p' cannot begin so: [3] has no row 3");
}

TEST_F(WrongUse, LabelsThatAreNone) {
  WRONG(cross_entropy(logits, bytes));
  SAYS("cross_entropy: labels are i32 or i64, not u8 ([batch, 10] x [batch, 784])");
  WRONG(cross_entropy(image, label));
  SAYS("cross_entropy: label needs the shape [batch, 9, 9], not [batch] ([batch, 4, 9, 9] x [batch])");
  WRONG(nll_loss(logits, flag.to(i64)));
  SAYS("nll_loss: label needs the shape [batch], not [batch, 784] ([batch, 10] x [batch, 784])");
  WRONG(accuracy(matrix, label));
  SAYS("accuracy: label needs the shape [512], not [batch] ([512, 10] x [batch])");
  WRONG(cross_entropy(bytes, label));
  SAYS("cross_entropy: works on floats, not u8; convert with .to(f32) ([batch, 784] x [batch])");
}

TEST_F(WrongUse, ScoresOfNoClasses) {
  WRONG(cross_entropy(logits.sum(), label));
  SAYS("cross_entropy: logits has no dimension of classes ([] x [batch])");
  WRONG(nll_loss(logits.t(), label));
  SAYS("nll_loss: log_probabilities has the batch in dimension 1, that of the classes ([10, batch] x [batch])");
}

TEST_F(WrongUse, OptionsOfCrossEntropy) {
  WRONG(cross_entropy(logits, label, {.label_smoothing = 1.5}));
  SAYS("cross_entropy: label_smoothing is between 0 and 1, not 1.500000 ([batch, 10] x [batch])");
  WRONG(cross_entropy(logits, label, {.label_smoothing = NAN}));
  SAYS("cross_entropy: label_smoothing is between 0 and 1, not nan ([batch, 10] x [batch])");
  WRONG(cross_entropy(logits, label, {.weight = matrix}));
  SAYS("cross_entropy: weight needs the shape [10], not [512, 10] ([batch, 10] x [batch] x [512, 10])");
  WRONG(nll_loss(logits, label, {.weight = matrix.sum(0).to(f64)}));
  SAYS("nll_loss: dtypes differ: f32 and f64; convert one with .to(...) ([batch, 10] x [batch] x [10])");
  WRONG(nll_loss(logits, label, {.ignore_index = std::int64_t(1) << 40}));
  SAYS("nll_loss: ignore_index is a number of 32 bits, not 1099511627776 ([batch, 10] x [batch])");
}

TEST_F(WrongUse, SharesOfClasses) {
  WRONG(cross_entropy(logits, x));
  SAYS("cross_entropy: target needs the shape [batch, 10], not [batch, 784] ([batch, 10] x [batch, 784])");
  WRONG(cross_entropy(logits, logits.to(f64)));
  SAYS("cross_entropy: dtypes differ: f32 and f64; convert one with .to(...) ([batch, 10] x [batch, 10])");
  WRONG(cross_entropy(logits, logits, {.ignore_index = 3}));
  SAYS("cross_entropy: ignore_index is a label, and the target has shares of the classes ([batch, 10] x [batch, 10])");
  WRONG(cross_entropy(logits, logits, {.weight = matrix}));
  SAYS("cross_entropy: weight needs the shape [10], not [512, 10] ([batch, 10] x [batch, 10] x [512, 10])");
}

TEST_F(WrongUse, NumbersOfTheBest) {
  WRONG(top_k_accuracy(logits, label, 0));
  SAYS("top_k_accuracy: k is from 1 to the number of classes, 10, not 0 ([batch, 10] x [batch])");
  WRONG(top_k_accuracy(logits, label, 11));
  SAYS("top_k_accuracy: k is from 1 to the number of classes, 10, not 11 ([batch, 10] x [batch])");
  WRONG(top_k_accuracy(logits, logits, 2));
  SAYS("top_k_accuracy: labels are i32 or i64, not f32 ([batch, 10] x [batch, 10])");
}

TEST_F(WrongUse, TargetsOfAnotherShape) {
  WRONG(mse_loss(x, logits));
  SAYS("mse_loss: shapes differ: [batch, 784] and [batch, 10] ([batch, 784] x [batch, 10])");
  WRONG(l1_loss(x, logits));
  SAYS("l1_loss: shapes differ: [batch, 784] and [batch, 10] ([batch, 784] x [batch, 10])");
  WRONG(huber_loss(x, bytes));
  SAYS("huber_loss: dtypes differ: f32 and u8; convert one with .to(...) ([batch, 784] x [batch, 784])");
  WRONG(smooth_l1_loss(bytes, bytes));
  SAYS("smooth_l1_loss: works on floats, not u8; convert with .to(f32) ([batch, 784] x [batch, 784])");
  WRONG(binary_cross_entropy_with_logits(x, logits));
  SAYS("binary_cross_entropy_with_logits: target needs the shape [batch, 784], not [batch, 10] ([batch, 784] x [batch, "
       "10])");
}

TEST_F(WrongUse, BordersOfLosses) {
  WRONG(huber_loss(x, x, Reduction::mean, 0));
  SAYS("huber_loss: delta is positive, not 0.000000 ([batch, 784] x [batch, 784])");
  WRONG(smooth_l1_loss(x, x, Reduction::mean, -1));
  SAYS("smooth_l1_loss: beta is not negative, and not -1.000000 ([batch, 784] x [batch, 784])");
}

TEST_F(WrongUse, WeightsOfBinaryCrossEntropy) {
  WRONG(binary_cross_entropy_with_logits(logits, logits, {.weight = label.to(f32)}));
  EXPECT_THAT(error.message(), StartsWith("binary_cross_entropy_with_logits: sizes do not broadcast: 10 and batch"));
  WRONG(binary_cross_entropy_with_logits(matrix, matrix, {.pos_weight = image}));
  EXPECT_THAT(error.message(), StartsWith("binary_cross_entropy_with_logits: sizes do not broadcast"));
  WRONG(binary_cross_entropy_with_logits(matrix.sum(0), matrix.sum(0), {.pos_weight = matrix}));
  SAYS("binary_cross_entropy_with_logits: pos_weight [512, 10] does not broadcast to [10] ([10] x [10] x [512, 10])");
}

TEST_F(WrongUse, WhatIsNotNormalised) {
  Tensor four = parameter("four", {4}), weight = parameter("weight", {784});
  WRONG(layer_norm(bytes, 784));
  SAYS("layer_norm: works on floats, not u8; convert with .to(f32) ([batch, 784])");
  WRONG(layer_norm(x, 10));
  SAYS("layer_norm: the last dimensions are not normalized_shape [10] ([batch, 784])");
  WRONG(layer_norm(x, {1, 2, 784}));
  SAYS("layer_norm: the last dimensions are not normalized_shape [1, 2, 784] ([batch, 784])");
  WRONG(layer_norm(x, Shape()));
  SAYS("layer_norm: normalized_shape needs at least one dimension ([batch, 784])");
  WRONG(layer_norm(x, {Dim{"batch"}, 784}));
  SAYS("layer_norm: cannot normalize over the batch; use batch_norm ([batch, 784])");
  WRONG(layer_norm(x, 784, four));
  SAYS("layer_norm: weight and bias are [784], not [4] ([batch, 784] x [4])");
  WRONG(layer_norm(x, 784, weight, weight.to(f64)));
  SAYS("layer_norm: dtypes differ: f32 and f64; convert one with .to(...) ([batch, 784] x [784] x [784])");
  WRONG(layer_norm(x, 784, weight, {}, 0));
  SAYS("layer_norm: eps is positive, not 0.000000 ([batch, 784] x [784])");
  WRONG(rms_norm(x, 784, four));
  SAYS("rms_norm: weight and bias are [784], not [4] ([batch, 784] x [4])");
  WRONG(group_norm(image, 3));
  SAYS("group_norm: 3 groups do not divide 4 channels ([batch, 4, 9, 9])");
  WRONG(group_norm(image, 2, weight));
  SAYS("group_norm: weight and bias are [4], not [784] ([batch, 4, 9, 9] x [784])");
  WRONG(group_norm(label.to(f32), 1));
  SAYS("group_norm: the input has 1 dimensions, not at least 2 ([batch])");
  WRONG(group_norm(image.permute({1, 0, 2, 3}), 1));
  SAYS("group_norm: cannot normalize over the batch; use batch_norm ([4, batch, 9, 9])");
  WRONG((nn::GroupNorm{&root, "norm", 3, 8}));
  SAYS("GroupNorm: 3 groups do not divide 8 channels");
}

TEST_F(WrongUse, AttentionOfOtherShapes) {
  Tensor q = g.input("q", f32, {Dim{"batch"}, 4, 5, 8}), k = g.input("k", f32, {Dim{"batch"}, 4, 7, 8}),
         few = g.input("few", f32, {Dim{"batch"}, 3, 7, 8}), flat = g.input("flat", f32, {Dim{"batch"}, 7, 8});
  WRONG(scaled_dot_product_attention(bytes, bytes, bytes));
  EXPECT_THAT(error.message(), StartsWith("scaled_dot_product_attention: works on floats, not u8"));
  WRONG(scaled_dot_product_attention(q, k.to(f64), k));
  EXPECT_THAT(error.message(), StartsWith("scaled_dot_product_attention: dtypes differ: f32 and f64"));
  WRONG(scaled_dot_product_attention(q, flat, flat));
  EXPECT_THAT(error.message(), StartsWith("scaled_dot_product_attention: queries, keys and values differ in how many "
                                          "dimensions they have: 4 and 3"));
  WRONG(scaled_dot_product_attention(q, few, few));
  EXPECT_THAT(error.message(),
              HasSubstr("the heads of the keys do not divide those of the queries: q [batch, 4, 5, 8], "
                        "k [batch, 3, 7, 8], v [batch, 3, 7, 8]"));
  WRONG(scaled_dot_product_attention(q, k, k, {.attn_mask = parameter("mask", {5, 6})}));
  EXPECT_THAT(error.message(), HasSubstr("a mask has the dimensions of the scores, or 1 in their place, [batch, 4, 5, "
                                         "7]; got [1, 1, 5, 6]"));
  WRONG(scaled_dot_product_attention(flat, flat, flat, {.attn_mask = parameter("deep", {1, 1, 7, 7})}));
  EXPECT_THAT(error.message(), HasSubstr("the mask has 4 dimensions, the queries 3"));
  WRONG(scaled_dot_product_attention(label.to(f32), label.to(f32), label.to(f32)));
  EXPECT_THAT(error.message(), HasSubstr("queries, keys and values have 2 to 4 dimensions, not 1"));
  WRONG((nn::MultiheadAttention{&root, "attention", 10, 3}));
  SAYS("MultiheadAttention: 3 heads do not divide an embed_dim of 10");
}

TEST_F(WrongUse, VariancesThatAreNone) {
  WRONG(x.var());
  SAYS("var: cannot reduce over the batch; only batch_norm computes the variance of its rows ([batch, 784])");
  WRONG(matrix.std(1, 10));
  SAYS("std: correction is from 0 to below the number of elements, 10, not 10 ([512, 10])");
  WRONG(var(matrix, 1, -1));
  SAYS("var: correction is from 0 to below the number of elements, 10, not -1 ([512, 10])");
  WRONG(bytes.var(1));
  SAYS("var: works on floats, not u8; convert with .to(f32) ([batch, 784])");
  WRONG(logsumexp(label));
  SAYS("logsumexp: works on floats, not i32; convert with .to(f32) ([batch])");
}

TEST_F(WrongUse, CountsThatAreNone) {
  WRONG(g.arange(0));
  SAYS("arange: there is no number from 0.000000 to below 0.000000 in steps of 1.000000");
  WRONG(g.arange(0, 5, 0));
  SAYS("arange: there is no number from 0.000000 to below 5.000000 in steps of 0.000000");
  WRONG(g.arange(0, 1, 0.25));
  SAYS("arange: the number 0.250000 is not a value of i64");
  WRONG(g.arange(3, u8));
  SAYS("arange: counts in floats, i32 or i64, not in u8");
  WRONG(g.eye(0));
  SAYS("eye: the sizes must be at least 1: 0 and 0");
  WRONG(g.linspace(0, 1, 0));
  SAYS("linspace: the number of steps must be at least 1: 0");
  WRONG(g.linspace(0, 1, 3, i32));
  SAYS("linspace: the dtype must be a float, not i32");
  WRONG(g.linspace(0, 1e6, 3, f16));
  SAYS("linspace: f16 cannot represent 1e+06");
  WRONG(g.arange(1e15));
  SAYS("arange: the shape [1000000000000000] has more than 2^40 elements");
  WRONG(tril(label));
  SAYS("tril: the input has 1 dimensions, not at least 2 ([batch])");
  WRONG(triu(x));
  SAYS("triu: would count the rows of a call, which stand for themselves ([batch, 784])");
}

TEST_F(WrongUse, PartsThatAreNone) {
  WRONG(x.split(1));
  SAYS("split: would take the batch apart; a result has all rows of a call, or a size that is known before ([batch, "
       "784])");
  WRONG(x.split(0, 1));
  SAYS("split: parts have a positive size, not 0 ([batch, 784])");
  WRONG(split(matrix, {5, 6}, 1));
  SAYS("split: the sizes of parts do not add up to 10 ([512, 10])");
  WRONG(split(matrix, {5, 4}, 1));
  SAYS("split: the sizes of parts do not add up to 10 ([512, 10])");
  WRONG(split(matrix, {-2, 12}, 1));
  SAYS("split: parts have a positive size, not -2 ([512, 10])");
  WRONG(chunk(matrix, 0));
  SAYS("chunk: the number of chunks is positive, not 0 ([512, 10])");
  WRONG(chunk(x, 2));
  EXPECT_THAT(error.message(), StartsWith("chunk: would take the batch apart"));
  WRONG(stack({x, logits}));
  SAYS("stack: shapes differ: [batch, 784] and [batch, 10] ([batch, 784] x [batch, 10])");
  WRONG(stack({x, bytes}));
  EXPECT_THAT(error.message(), StartsWith("stack: dtypes differ"));
  WRONG(stack({}));
  SAYS("stack: needs at least one tensor");
  WRONG(stack({x}, 3));
  SAYS("stack: dimension 3 is out of range for 3 dimensions ([batch, 784])");
}

TEST_F(WrongUse, TransposedConvolutionsThatDoNotFit) {
  Tensor weight = parameter("weight", {4, 6, 3, 3}), line = parameter("line", {6, 4, 3});
  WRONG(conv_transpose2d(image, weight, {}, {.output_padding = 1}));
  SAYS("conv_transpose2d: output_padding is below the stride, 1, or the dilation, 1, not 1; any number is valid with "
       "padding_end ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG(conv_transpose2d(image, weight, {}, {.padding_end = Size2(-1, 0)}));
  SAYS("conv_transpose2d: padding_end is at least 0, not -1 ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG(conv_transpose2d(image, weight, {}, {.padding_end = Size2(0, 11)}));
  SAYS("conv_transpose2d: nothing is left of the result: 0 elements ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG(conv_transpose2d(image, weight, {}, {.padding = 6}));
  SAYS("conv_transpose2d: nothing is left of the result: -1 elements ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG(conv_transpose2d(image, weight, {}, {.groups = 3}));
  SAYS("conv_transpose2d: 3 groups do not divide 4 input channels ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG(conv_transpose2d(image, parameter("other", {6, 4, 3, 3})));
  SAYS("conv_transpose2d: input channels differ: 4 and 6 ([batch, 4, 9, 9] x [6, 4, 3, 3])");
  WRONG(conv_transpose2d(image, weight, {}, {.output_padding = -1}));
  SAYS("conv_transpose2d: output_padding is at least 0, not -1 ([batch, 4, 9, 9] x [4, 6, 3, 3])");
  WRONG((nn::ConvTranspose2d{&root, "up", 4, 6, 3, {.groups = 4}}));
  SAYS("ConvTranspose2d: 4 groups do not divide 4 input and 6 output channels");
  WRONG((nn::Conv1d{&root, "conv", 4, 6, 3, {.groups = 3}}));
  SAYS("Conv1d: 3 groups do not divide 4 input and 6 output channels");
  WRONG(conv1d(image, line));
  SAYS("conv1d: the input has 4 dimensions, not 3 ([batch, 4, 9, 9] x [6, 4, 3])");
  WRONG(conv1d(image.flatten(2), weight));
  SAYS("conv1d: weight has 4 dimensions, not 3 ([batch, 4, 81] x [4, 6, 3, 3])");
  WRONG(conv1d(image.flatten(2).permute({1, 2, 0}), line));
  SAYS("conv1d: the batch dimension cannot be the channels or the length ([4, 81, batch] x [6, 4, 3])");
  WRONG(conv1d(image.flatten(2), line, {}, {.groups = 4}));
  SAYS("conv1d: 4 groups do not divide 4 input and 6 output channels ([batch, 4, 81] x [6, 4, 3])");
}

TEST_F(WrongUse, ImagesThatDoNotDivide) {
  WRONG(adaptive_avg_pool2d(image, 0));
  SAYS("adaptive_avg_pool2d: a size is from 1 to 65535, not 0 ([batch, 4, 9, 9])");
  WRONG(interpolate_to(image, 65536));
  SAYS("interpolate_to: a size is from 1 to 65535, not 65536 ([batch, 4, 9, 9])");
  WRONG(interpolate(image, 2, {.align_corners = true}));
  SAYS("interpolate_to: align_corners requires bilinear interpolation ([batch, 4, 9, 9])");
  WRONG(interpolate(image, 0));
  SAYS("interpolate: scale_factor is positive, not 0 ([batch, 4, 9, 9])");
  WRONG(interpolate(x, 2));
  SAYS("interpolate: the input has 2 dimensions, not 4 ([batch, 784])");
}

TEST_F(WrongUse, FormulasThatCannotBe) {
  Tensor three = g.input("three", f32, {3}), index = g.input("places", i32, {Dim{"batch"}, 4, 9, 9});
  WRONG(prelu(image, three));
  SAYS("prelu: the weight has 3 elements for 4 channels ([batch, 4, 9, 9] x [3])");
  WRONG(norm(x, 3));
  SAYS("norm: p is 1, 2 or infinity, not 3 ([batch, 784])");
  WRONG(repeat(x, {2, 1}));
  SAYS("repeat: would repeat the rows of a call, which stand for themselves ([batch, 784])");
  WRONG(repeat(x, {2}));
  SAYS("repeat: names 1 dimensions of 2 ([batch, 784])");
  WRONG(flip(x, 0));
  SAYS("flip: would move the rows of a call, which stand for themselves ([batch, 784])");
  WRONG(pad(image, {9, 0}, PadMode::reflect));
  SAYS("pad: padding is from 0 to 8 in a dimension of 9, not 9 and 0 ([batch, 4, 9, 9])");
  WRONG(pixel_shuffle(image, 3));
  SAYS("pixel_shuffle: 4 channels are no multiple of the square of 3 ([batch, 4, 9, 9])");
  WRONG(pixel_unshuffle(image, 2));
  SAYS("pixel_unshuffle: the image's sides are no multiples of 2 ([batch, 4, 9, 9])");
  WRONG(scatter_add(image, 1, index.slice(2, 0, 5), image.slice(2, 0, 5)));
  SAYS("scatter_add: the values to add have shape [batch, 4, 5, 9], not [batch, 4, 9, 9] "
       "([batch, 4, 9, 9] x [batch, 4, 5, 9] x [batch, 4, 5, 9])");
  WRONG(rope(image));
  SAYS("rope: elements are turned in pairs, and there are 9 ([batch, 4, 9, 9])");
  WRONG(instance_norm(x));
  SAYS("instance_norm: the input has 2 dimensions, not at least 3 ([batch, 784])");
  WRONG(local_response_norm(image, 0));
  SAYS("local_response_norm: size is positive, not 0 ([batch, 4, 9, 9])");
  WRONG((nn::LSTM{&root, "lstm", 4, 4, {.stateful = true, .bidirectional = true}}));
  SAYS("a stateful layer cannot be bidirectional: the reverse direction needs the next batch");
}

TEST_F(WrongUse, BatchNormWithoutStates) {
  Tensor four = g.input("four", f32, {4});
  WRONG(batch_norm(image, four, four));
  EXPECT_THAT(error.message(), StartsWith("batch_norm: can only update buffers of a module"));
}

// --- graphs

TEST_F(WrongUse, NamesThatAreNone) {
  WRONG(Graph("two words"));
  SAYS("'two words' cannot name a graph: a name starts with a letter or '_', and continues with letters, digits, '_', "
       "'-' and '.'");
  EXPECT_EQ(Graph("_two-words.1").name(), "_two-words.1");
  WRONG(g.input("", f32, {3}));
  SAYS("'' cannot name an input: a name is not empty");
  WRONG(g.input("two\nlines", f32, {3}));
  SAYS("'two\\0Alines' cannot name an input: a name has no control characters");
  WRONG(g.output("next\u0085line", x));
  SAYS("'next\\C2\\85line' cannot name an output: a name has no control characters");
  WRONG(g.output("\xff", x));
  SAYS("'\\FF' cannot name an output: a name is UTF-8");
  WRONG(g.input(std::string(5000, 'n'), f32, {3}));
  EXPECT_THAT(error.message(), EndsWith("n...' cannot name an input: a name has at most 1024 bytes, not 5000"));
  WRONG(g.hyper("x y", 1));
  EXPECT_THAT(error.message(), StartsWith("'x y' cannot name a hyperparameter: a name starts with a letter"));
}

TEST_F(WrongUse, NamesOfStatesThatAreNone) {
  detail::GraphImpl &graph = *detail::Access::graph(g);
  auto type = mlir::RankedTensorType::get({2}, graph.elementType(f32));
  auto add = [&](const std::string &name, std::source_location where = std::source_location::current()) {
    graph.addState(ir::StateKind::Parameter, name, type, init::zeros(), /*device=*/{}, where);
  };
  WRONG(add("a\tb"));
  SAYS("'a\\09b' cannot name a parameter: a name has no control characters");
  WRONG(add("__metadata__"));
  SAYS("'__metadata__' cannot name a parameter: weights files use the name");
  WRONG(add("predict"));
  SAYS("'predict' is an entry point of the program; give the parameter another name");
  WRONG(add(std::string(1025, 'n')));
  EXPECT_THAT(error.message(), EndsWith("a name has at most 1024 bytes, not 1025"));
}

TEST_F(WrongUse, NamesThatAreTaken) {
  WRONG(g.input("x", f32, {3}));
  SAYS("there is already an input 'x'");
  g.output("y", x);
  WRONG(g.metric("y", x.mean()));
  SAYS("there is already an output or metric 'y'");
  parameter("p", {3});
  WRONG(root.parameter("p", {4}, init::zeros()));
  SAYS("there is already a parameter 'p'");
  WRONG(root.parameter("lr", {}, init::zeros()));
  SAYS("'lr' is a state of the optimizer; choose another name for the parameter");
}

TEST_F(WrongUse, NamedDimensionsThatDisagree) {
  g.input("a", f32, {Dim{"classes", 10}});
  WRONG(g.input("b", f32, {Dim{"classes", 12}}));
  SAYS("input 'b': dimension 'classes' has two sizes: 10 and 12");
  WRONG(g.input("c", f32, {Dim{"batch"}, Dim{"time"}}));
  SAYS("input 'c': a second dimension without a size: 'time', after 'batch'; give it a size: Dim{\"time\", 32}");
  WRONG(g.input("d", f32, {Dim{"batch", 64}}));
  SAYS("input 'd': dimension 'batch' has no size elsewhere and 64 here");
  WRONG(g.input("e", f32, {Dim{"batch"}, Dim{"batch"}}));
  SAYS("input 'e': dimension 'batch' occurs twice in [batch, batch]");
}

TEST_F(WrongUse, SizesThatAreNone) {
  WRONG(g.input("a", f32, {Dim{"batch"}, 0}));
  SAYS("input 'a': sizes are positive, not 0 in [batch, 0]");
  WRONG(g.input("a", f32, {Dim{"classes", -5}}));
  SAYS("input 'a': sizes are positive, not -5 in [-5]");
  WRONG(g.input("a", f32, {1 << 30, 1 << 30, 1 << 30}));
  SAYS("input 'a': the shape [1073741824, 1073741824, 1073741824] has more than 2^40 elements");
}

TEST_F(WrongUse, ParametersWithTheBatch) {
  WRONG(root.parameter("p", {Dim{"batch"}, 3}, init::zeros()));
  SAYS("parameter 'p': the shape [batch, 3] has a dimension without a size");
  WRONG(nn::Linear(&root, "fc", 0, 10));
  SAYS("parameter 'fc.weight': sizes are positive, not 0 in [10, 0]");
}

TEST_F(WrongUse, InitialValuesThatAreNone) {
  WRONG(root.parameter("p", {3}, init::normal(0, -1)));
  SAYS("'p' cannot begin so: a deviation cannot be negative: -1");
  WRONG(root.parameter("p", {3}, init::uniform(-3e38, 3e38)));
  SAYS("'p' cannot begin so: numbers out of the range of f32: -3e+38 and 3e+38");
  WRONG(root.parameter("p", {3}, init::constant(1e308)));
  SAYS("'p' cannot begin so: 1e+308 is not a value of f32");
  WRONG(nn::Linear(&root, "fc", 65536, 32768));
  SAYS("'fc.weight' cannot begin so: at most 2^30 random numbers can be drawn at once: [32768, 65536]");
  WRONG(root.initialize("*.gamma", init::ones()));
  SAYS("no parameter or statistic of 'test' matches '*.gamma'");
}

TEST_F(WrongUse, ModulesThatAreNone) {
  WRONG(nn::Linear(nullptr, "fc", 3, 4));
  SAYS("the module 'fc' has no parent; pass `this`");
  WRONG(nn::Linear(&root, "a.b", 3, 4));
  SAYS("'a.b' cannot name a module: a name is not empty and has no dot, '*', '\"' or space; a dot follows the name of "
       "each module around it");
  WRONG(nn::Conv2d(&root, "conv", 4, 6, 3, {.groups = 4}));
  SAYS("Conv2d: 4 groups do not divide 4 input and 6 output channels");
  WRONG(nn::Dropout(&root, "drop", 1.5));
  SAYS("Dropout: p is a probability, within [0, 1], not 1.5");
  NoForward part{&root, "part"};
  WRONG(part(x));
  SAYS("the module 'part' has no forward(Tensor)");
}

TEST_F(WrongUse, Settings) {
  WRONG(g.set_data(""));
  WRONG(g.set_data("a\nb"));
  WRONG(g.set_capacity(0));
  SAYS("the capacity is between 1 and 2^31 - 1 rows, not 0");
  WRONG(g.set_capacity(INT64_C(1) << 31));
  SAYS("the capacity is between 1 and 2^31 - 1 rows, not 2147483648");
  WRONG(g.set_dtype(i32));
  SAYS("parameters are floats, not i32");
}

TEST_F(WrongUse, Halves) {
  Tensor narrow = x.to(f16), brain = x.to(bf16);
  WRONG(narrow + brain);
  SAYS("+: dtypes differ: f16 and bf16; convert one with .to(...) ([batch, 784] x [batch, 784])");
  WRONG(narrow * 65520.0);
  SAYS("*: the number 65520 is not a value of f16; convert with .to(f32) ([batch, 784])");
  WRONG(brain + 1e39);
  SAYS("+: the number 1e+39 is not a value of bf16; convert with .to(f32) ([batch, 784])");
}

TEST_F(WrongUse, LossesThatAreNone) {
  WRONG(g.minimize(x, optim::SGD{}));
  SAYS("minimize: needs a scalar; reduce it with mean or sum ([batch, 784])");
  WRONG(g.minimize(x.mean(), optim::SGD{}));
  SAYS("minimize: the loss depends on no parameter ([])");
  Tensor p = parameter("p", {784});
  WRONG(g.minimize((x * p).mean(), optim::SGD{.lr = -1}));
  SAYS("minimize: SGD: lr cannot be -1.000000 ([])");
  WRONG(g.minimize((x * p).mean(), optim::SGD{.lr = 0.1, .nesterov = true}));
  SAYS("minimize: SGD: Nesterov's momentum needs a momentum and no dampening ([])");
  g.minimize((x * p).mean(), optim::SGD{.lr = 0.1});
  WRONG(g.minimize((x * p).sum(), optim::SGD{.lr = 0.1}));
  SAYS("minimize: the graph has a loss already");
}

TEST_F(WrongUse, OptimizersNumbers) {
  Tensor loss = (x * parameter("p", {784})).mean();
  WRONG(g.minimize(loss, optim::SGD{.momentum = -0.5}));
  SAYS("minimize: SGD: momentum cannot be -0.500000 ([])");
  WRONG(g.minimize(loss, optim::SGD{.dampening = NAN}));
  SAYS("minimize: SGD: dampening cannot be nan ([])");
  WRONG(g.minimize(loss, optim::Adam{.lr = INFINITY}));
  SAYS("minimize: Adam: lr cannot be inf ([])");
  WRONG(g.minimize(loss, optim::Adam{.betas = {1, 0.999}}));
  SAYS("minimize: Adam: betas[0] cannot be 1.000000 ([])");
  WRONG(g.minimize(loss, optim::Adam{.betas = {0.9, -0.1}}));
  SAYS("minimize: Adam: betas[1] cannot be -0.100000 ([])");
  WRONG(g.minimize(loss, optim::Adam{.eps = -1}));
  SAYS("minimize: Adam: eps cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, optim::AdamW{.weight_decay = -1}));
  SAYS("minimize: AdamW: weight_decay cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, optim::RMSprop{.alpha = -1}));
  SAYS("minimize: RMSprop: alpha cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, optim::RMSprop{.eps = -1}));
  SAYS("minimize: RMSprop: eps cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, optim::RMSprop{.weight_decay = NAN}));
  SAYS("minimize: RMSprop: weight_decay cannot be nan ([])");
  WRONG(g.minimize(loss, optim::RMSprop{.momentum = -1}));
  SAYS("minimize: RMSprop: momentum cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, optim::RMSprop{.lr = -1}));
  SAYS("minimize: RMSprop: lr cannot be -1.000000 ([])");
}

TEST_F(WrongUse, OptionsOfTraining) {
  Tensor loss = (x * parameter("p", {784})).mean();
  optim::SGD sgd{};
  WRONG(g.minimize(loss, sgd, {.clip_grad_norm = 0}));
  SAYS("minimize: clip: clip_grad_norm cannot be 0.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.clip_grad_value = -1}));
  SAYS("minimize: clip: clip_grad_value cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.ema = optim::EMA{.decay = 1}}));
  SAYS("minimize: EMA: decay cannot be 1.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.init_scale = 0}}));
  SAYS("minimize: LossScale: init_scale cannot be 0.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.init_scale = 0x1p128}}));
  SAYS("minimize: LossScale: init_scale cannot be 340282366920938463463374607431768211456.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.growth_factor = 0.5}}));
  SAYS("minimize: LossScale: growth_factor cannot be 0.500000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.growth_factor = INFINITY}}));
  SAYS("minimize: LossScale: growth_factor cannot be inf ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.backoff_factor = 1}}));
  SAYS("minimize: LossScale: backoff_factor cannot be 1.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.backoff_factor = 0}}));
  SAYS("minimize: LossScale: backoff_factor cannot be 0.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.loss_scale = optim::LossScale{.growth_interval = 0}}));
  SAYS("minimize: LossScale: growth_interval is a number of steps, from 1 to 2^31 - 1, not 0 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::StepLR{.step_size = 0}}));
  SAYS("minimize: StepLR: step_size is a number of steps, from 1 to 2^31 - 1, not 0 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::StepLR{.step_size = 1, .gamma = -1}}));
  SAYS("minimize: StepLR: gamma cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::LinearLR{.start_factor = 0}}));
  SAYS("minimize: LinearLR: start_factor cannot be 0.000000 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::LinearLR{.end_factor = 1.5}}));
  SAYS("minimize: LinearLR: end_factor cannot be 1.500000 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::LinearLR{.total_iters = -3}}));
  SAYS("minimize: LinearLR: total_iters is a number of steps, from 1 to 2^31 - 1, not -3 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::CosineAnnealingLR{.T_max = INT64_C(1) << 31}}));
  SAYS("minimize: CosineAnnealingLR: T_max is a number of steps, from 1 to 2^31 - 1, not 2147483648 ([])");
  WRONG(g.minimize(loss, sgd, {.schedule = optim::CosineAnnealingLR{.T_max = 1, .eta_min = -1}}));
  SAYS("minimize: CosineAnnealingLR: eta_min cannot be -1.000000 ([])");
}

TEST_F(WrongUse, SchedulesOneAfterAnother) {
  Tensor loss = (x * parameter("p", {784})).mean();
  optim::SequentialLR sequence{.schedulers = {optim::LinearLR{}, optim::StepLR{.step_size = 2}}, .milestones = {}};
  WRONG(g.minimize(loss, optim::SGD{}, {.schedule = sequence}));
  SAYS("minimize: SequentialLR: 2 schedules need one milestone fewer, not 0 ([])");
  sequence.milestones = {0};
  WRONG(g.minimize(loss, optim::SGD{}, {.schedule = sequence}));
  SAYS("minimize: SequentialLR: a milestone is a number of steps, from 1 to 2^31 - 1, not 0 ([])");
  sequence.schedulers.push_back(optim::LinearLR{});
  sequence.milestones = {5, 5};
  WRONG(g.minimize(loss, optim::SGD{}, {.schedule = sequence}));
  SAYS("minimize: SequentialLR: milestones must increase, but 5 follows 5 ([])");
}

TEST_F(WrongUse, GroupsOfParameters) {
  nn::Linear fc{&root, "fc", 784, 3};
  parameter("unused", {2});
  Tensor loss = fc(x).square().mean();
  optim::AdamW adam{};
  WRONG(g.minimize(loss, adam, {.groups = {{.params = {"fc.bais"}}}}));
  SAYS("minimize: no parameter that the loss depends on matches 'fc.bais' ([])");
  WRONG(g.minimize(loss, adam, {.groups = {{.params = {"unused"}}}}));
  SAYS("minimize: no parameter that the loss depends on matches 'unused' ([])");
  WRONG(g.minimize(loss, adam, {.groups = {{.params = {"fc.*"}}, {.params = {"*.bias"}}}}));
  SAYS("minimize: the parameter 'fc.bias' is in two groups, by 'fc.*' and by '*.bias' ([])");
  WRONG(g.minimize(loss, adam, {.groups = {{.params = {"fc.*"}, .lr_factor = -1}}}));
  SAYS("minimize: a group: lr_factor cannot be -1.000000 ([])");
  WRONG(g.minimize(loss, adam, {.groups = {{.params = {"fc.*"}, .weight_decay = -1}}}));
  SAYS("minimize: AdamW: weight_decay cannot be -1.000000 ([])");
}

TEST_F(WrongUse, Scans) {
  auto same = [](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    return ScanStep{carried, slices};
  };
  Tensor words = g.input("words", f32, {Dim{"batch"}, 5, 3}), longer = g.input("longer", f32, {Dim{"batch"}, 6, 3});
  Tensor state = g.input("state", f32, {Dim{"batch"}, 3});
  WRONG(scan({state}, {}, 1, same));
  SAYS("scan: needs something to go along ([batch, 3])");
  WRONG(scan({state}, {words}, 0, same));
  SAYS("scan: cannot go along the batch ([batch, 3] x [batch, 5, 3])");
  WRONG(scan({}, {words, longer}, 1, same));
  SAYS("scan: the steps differ: [batch, 5, 3] and [batch, 6, 3] ([batch, 5, 3] x [batch, 6, 3])");
  WRONG(scan({state}, {words}, 1, [](auto &, auto &slices) { return ScanStep{{}, slices}; }));
  SAYS("scan: carries 1 values, and a step leaves 0 ([batch, 3] x [batch, 5, 3])");
  WRONG(scan({state}, {words}, 1, [](auto &, auto &slices) { return ScanStep{{slices[0].sum(1)}, {}}; }));
  SAYS("scan: a value that is carried begins as [batch, 3], and a step leaves [batch] ([batch, 3] x [batch, 5, 3])");
  WRONG(scan({}, {words}, 1, [](auto &, auto &slices) { return ScanStep{{}, {slices[0].sum({0, 1})}}; }));
  SAYS("scan: cannot stack [] along dimension 1 ([batch, 5, 3])");
  nn::LSTM lstm{&root, "lstm", 3, 4};
  WRONG(lstm(state));
  SAYS("a recurrent layer takes three dimensions, steps, batch and features, not [batch, 3]");
  nn::LSTM stateful{&root, "stateful", 3, 4, {.batch_first = true, .stateful = true}};
  WRONG(stateful(g.ones({2, 5, 3})));
  SAYS("a stateful layer takes the batch dimension, which [2, 5, 3] has not");
  stateful(words);
  WRONG(stateful(words));
  SAYS("there is already a slot 'stateful.h_l0'");
  WRONG(root.buffer("rows", {Dim{"batch"}, 4}, init::ones()));
  SAYS("statistic 'rows' is carried by rows, which begin with zeros");
  WRONG(root.buffer("rows", {4, Dim{"batch"}}, init::zeros()));
  SAYS("statistic 'rows': the shape [4, batch] has a dimension without a size");
  WRONG(nn::GRU(&root, "gru", 3, 0));
  SAYS("input_size, hidden_size and num_layers are at least 1, not 3, 0 and 1");
}

TEST_F(WrongUse, MetricsThatAreNotScalars) {
  WRONG(g.metric("m", x));
  SAYS("metric: needs a scalar; reduce it with mean or sum ([batch, 784])");
}
