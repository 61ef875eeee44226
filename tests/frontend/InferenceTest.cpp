// Inferred shapes and dtypes of every function.
#include <sluice/sluice.h>

#include <gtest/gtest.h>

using namespace sluice;

namespace {

struct Inference : testing::Test {
  Graph g{"test"};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 6, 8});
  Tensor image = g.input("image", f32, {Dim{"batch"}, 4, 9, 9});
  Tensor logits = g.input("logits", f32, {Dim{"batch"}, 10});
  Tensor label = g.input("label", i64, {Dim{"batch"}});
  Tensor bytes = g.input("bytes", u8, {Dim{"batch"}, 3});
  Tensor row = g.input("row", f32, {8});
  Tensor column = g.input("column", f32, {6, 1});
  Tensor matrix = g.input("matrix", f32, {8, 5});

  nn::Module root{g};
  Tensor parameter(const char *name, Shape shape) { return root.parameter(name, shape, init::zeros()); }
};

std::string shape(const Tensor &x) { return x.shape().str(); }

} // namespace

TEST_F(Inference, UnaryKeepsShapeAndDType) {
  Tensor y = exp(relu(-x)).tanh();
  EXPECT_EQ(shape(y), "[batch, 6, 8]");
  EXPECT_EQ(y.dtype(), f32);
}

TEST_F(Inference, PredicatesGiveBool) {
  EXPECT_EQ(isnan(x).dtype(), boolean);
  EXPECT_EQ(lt(x, 0).dtype(), boolean);
  EXPECT_EQ(logical_and(gt(x, 0), logical_not(ge(1, x))).dtype(), boolean);
}

TEST_F(Inference, OperandsBroadcastFromTheRight) {
  EXPECT_EQ(shape(x + row), "[batch, 6, 8]");
  EXPECT_EQ(shape(row * x), "[batch, 6, 8]");
  EXPECT_EQ(shape(row - column), "[6, 8]");
  EXPECT_EQ(shape(maximum(x, column)), "[batch, 6, 8]");
  EXPECT_EQ(shape(x / x.sum({1, 2}, true)), "[batch, 6, 8]");
}

TEST_F(Inference, TheBatchBroadcastsAgainstOne) {
  Tensor one = parameter("one", {1, 6, 8});
  EXPECT_EQ(shape(one + x), "[batch, 6, 8]");
}

TEST_F(Inference, NumbersTakeTheTensorsDType) {
  EXPECT_EQ((2 * x + 1.5f).dtype(), f32);
  EXPECT_EQ((label + 1).dtype(), i64);
  EXPECT_EQ((1 - bytes).dtype(), u8);
}

TEST_F(Inference, WhereBroadcastsAllThree) {
  EXPECT_EQ(shape(where(gt(row, 0), x, column)), "[batch, 6, 8]");
  EXPECT_EQ(shape(where(gt(x, 0), x, -1)), "[batch, 6, 8]");
  EXPECT_EQ(shape(where(gt(x, 0), 0.0, x)), "[batch, 6, 8]");
}

TEST_F(Inference, CastChangesTheDType) {
  EXPECT_EQ(bytes.to(f32).dtype(), f32);
  EXPECT_EQ(x.to(boolean).dtype(), boolean);
}

TEST_F(Inference, ReductionsDropOrKeepDimensions) {
  EXPECT_EQ(shape(x.sum()), "[]");
  EXPECT_EQ(shape(x.sum(-1)), "[batch, 6]");
  EXPECT_EQ(shape(x.mean({0, 2})), "[6]");
  EXPECT_EQ(shape(x.mean({-1, 1}, true)), "[batch, 1, 1]");
  EXPECT_EQ(shape(max(x, 1)), "[batch, 8]");
  EXPECT_EQ(shape(min(x, 0)), "[6, 8]");
  EXPECT_EQ(label.sum().dtype(), i64);
}

TEST_F(Inference, ArgmaxGivesIndices) {
  EXPECT_EQ(shape(logits.argmax(1)), "[batch]");
  EXPECT_EQ(shape(logits.argmax(-1, true)), "[batch, 1]");
  EXPECT_EQ(logits.argmax(1).dtype(), i32);
}

TEST_F(Inference, SoftmaxKeepsTheShape) {
  EXPECT_EQ(shape(softmax(x, -1)), "[batch, 6, 8]");
  EXPECT_EQ(shape(x.log_softmax(1)), "[batch, 6, 8]");
}

TEST_F(Inference, ReshapeWorksOutOneSize) {
  EXPECT_EQ(shape(x.reshape({Dim{"batch"}, 48})), "[batch, 48]");
  EXPECT_EQ(shape(x.reshape({-1, 4, 12})), "[batch, 4, 12]");
  EXPECT_EQ(shape(x.reshape({Dim{"batch"}, 3, -1})), "[batch, 3, 16]");
  EXPECT_EQ(shape(matrix.reshape({-1})), "[40]");
  EXPECT_EQ(shape(x.reshape({x.size(0), 48})), "[batch, 48]");
}

TEST_F(Inference, FlattenMergesARange) {
  EXPECT_EQ(shape(image.flatten(1)), "[batch, 324]");
  EXPECT_EQ(shape(image.flatten(1, 2)), "[batch, 36, 9]");
  EXPECT_EQ(shape(matrix.flatten()), "[40]");
  EXPECT_EQ(shape(label.flatten()), "[batch]");
}

TEST_F(Inference, DimensionsOfOneComeAndGo) {
  EXPECT_EQ(shape(label.unsqueeze(1)), "[batch, 1]");
  EXPECT_EQ(shape(row.unsqueeze(0)), "[1, 8]");
  EXPECT_EQ(shape(row.unsqueeze(-1)), "[8, 1]");
  EXPECT_EQ(shape(label.unsqueeze(0)), "[1, batch]");
  EXPECT_EQ(shape(column.squeeze(1)), "[6]");
  EXPECT_EQ(shape(column.squeeze(0)), "[6, 1]");
  EXPECT_EQ(shape(x.sum({1, 2}, true).squeeze()), "[batch]");
}

TEST_F(Inference, DimensionsChangeOrder) {
  EXPECT_EQ(shape(image.permute({0, 2, 3, 1})), "[batch, 9, 9, 4]");
  EXPECT_EQ(shape(x.transpose(1, -1)), "[batch, 8, 6]");
  EXPECT_EQ(shape(matrix.t()), "[5, 8]");
}

TEST_F(Inference, ExpandRepeats) {
  EXPECT_EQ(shape(row.expand({6, -1})), "[6, 8]");
  EXPECT_EQ(shape(column.expand({Dim{"batch"}, 6, 8})), "[batch, 6, 8]");
}

TEST_F(Inference, SlicesCountFromTheEndAndClamp) {
  EXPECT_EQ(shape(x.slice(2, 1, 7, 2)), "[batch, 6, 3]");
  EXPECT_EQ(shape(x.slice(-1, -3)), "[batch, 6, 3]");
  EXPECT_EQ(shape(x.slice(1, 0, 100)), "[batch, 6, 8]");
  EXPECT_EQ(shape(x.select(1, -1)), "[batch, 8]");
}

TEST_F(Inference, PadTakesTheLastDimensionFirst) {
  EXPECT_EQ(shape(pad(x, {1, 2})), "[batch, 6, 11]");
  EXPECT_EQ(shape(pad(x, {0, 0, 3, 0}, 1.0)), "[batch, 9, 8]");
}

TEST_F(Inference, TensorsJoin) {
  EXPECT_EQ(shape(cat({x, x, x}, 1)), "[batch, 18, 8]");
  EXPECT_EQ(shape(concat({matrix, matrix}, -1)), "[8, 10]");
}

TEST_F(Inference, MatmulFollowsNumPy) {
  EXPECT_EQ(shape(matmul(column.t(), matrix.slice(0, 0, 6))), "[1, 5]");
  EXPECT_EQ(shape(matmul(x, matrix)), "[batch, 6, 5]");
  EXPECT_EQ(shape(matmul(x, x.transpose(1, 2))), "[batch, 6, 6]");
  EXPECT_EQ(shape(matmul(x, row)), "[batch, 6]");
  EXPECT_EQ(shape(matmul(row, matrix)), "[5]");
  EXPECT_EQ(shape(row.matmul(row)), "[]");
}

TEST_F(Inference, EinsumFollowsPyTorch) {
  EXPECT_EQ(shape(einsum("bij,jk->bik", x, matrix.slice(0, 0, 8))), "[batch, 6, 5]");
  EXPECT_EQ(shape(einsum("b i j, b k j", x, x)), "[6, 6]");
  EXPECT_EQ(shape(einsum("bij", x)), "[batch, 6, 8]");
  EXPECT_EQ(shape(einsum("jbi->ijb", x.permute({2, 0, 1}))), "[6, 8, batch]");
}

TEST_F(Inference, LinearWorksOnTheLastDimension) {
  Tensor weight = parameter("weight", {3, 10}), bias = parameter("bias", {3});
  EXPECT_EQ(shape(linear(logits, weight, bias)), "[batch, 3]");
  EXPECT_EQ(shape(linear(logits, weight)), "[batch, 3]");
}

TEST_F(Inference, ConvolutionsFollowPyTorch) {
  Tensor weight = parameter("weight", {12, 4, 3, 3}), grouped = parameter("grouped", {12, 2, 3, 2});
  EXPECT_EQ(shape(conv2d(image, weight)), "[batch, 12, 7, 7]");
  EXPECT_EQ(shape(conv2d(image, weight, {}, {.stride = 2, .padding = 1})), "[batch, 12, 5, 5]");
  EXPECT_EQ(shape(conv2d(image, weight, {}, {.padding = {1, 0}, .dilation = {1, 2}})), "[batch, 12, 9, 5]");
  EXPECT_EQ(shape(conv2d(image, grouped, {}, {.groups = 2})), "[batch, 12, 7, 8]");
}

TEST_F(Inference, TransposedConvolutionsFollowPyTorch) {
  Tensor weight = parameter("weight", {4, 6, 3, 3}), grouped = parameter("grouped", {4, 3, 2, 3});
  EXPECT_EQ(shape(conv_transpose2d(image, weight)), "[batch, 6, 11, 11]");
  EXPECT_EQ(shape(conv_transpose2d(image, weight, {}, {.stride = 2, .padding = 1, .output_padding = {1, 0}})),
            "[batch, 6, 18, 17]");
  EXPECT_EQ(shape(conv_transpose2d(image, grouped, {}, {.stride = {3, 1}, .groups = 2, .dilation = {2, 3}})),
            "[batch, 6, 27, 15]");
  nn::ConvTranspose2d up{&root, "up", 4, 8, 2, {.stride = 2, .groups = 2}};
  EXPECT_EQ(shape(up(image)), "[batch, 8, 18, 18]");
  EXPECT_EQ(shape(up.weight), "[4, 4, 2, 2]");
}

TEST_F(Inference, LinesFollowPyTorch) {
  nn::Conv1d conv{&root, "conv", 6, 4, 3, {.stride = 2, .padding = 1, .groups = 2}};
  EXPECT_EQ(shape(conv(x)), "[batch, 4, 4]");
  EXPECT_EQ(shape(conv.weight), "[4, 3, 3]");
}

TEST_F(Inference, NormsKeepTheShape) {
  nn::LayerNorm layer{&root, "layer", {6, 8}};
  nn::RMSNorm rms{&root, "rms", 8};
  nn::GroupNorm group{&root, "group", 2, 4};
  EXPECT_EQ(shape(layer(x)), "[batch, 6, 8]");
  EXPECT_EQ(shape(layer.weight), "[6, 8]");
  EXPECT_EQ(shape(rms(x)), "[batch, 6, 8]");
  EXPECT_EQ(shape(group(image)), "[batch, 4, 9, 9]");
  EXPECT_EQ(shape(group.bias), "[4]");
  EXPECT_EQ(shape(layer_norm(x.permute({1, 0, 2}), 8)), "[6, batch, 8]");
}

TEST_F(Inference, PoolsFollowPyTorch) {
  EXPECT_EQ(shape(max_pool2d(image, 2)), "[batch, 4, 4, 4]");
  EXPECT_EQ(shape(max_pool2d(image, 2, {.ceil_mode = true})), "[batch, 4, 5, 5]");
  EXPECT_EQ(shape(max_pool2d(image, 3, {.stride = 2, .padding = 1})), "[batch, 4, 5, 5]");
  EXPECT_EQ(shape(avg_pool2d(image, {2, 3})), "[batch, 4, 4, 3]");
  EXPECT_EQ(shape(adaptive_avg_pool2d(image, {3, 1})), "[batch, 4, 3, 1]");
  EXPECT_EQ(shape(interpolate(image, {3, 2})), "[batch, 4, 27, 18]");
  EXPECT_EQ(shape(avg_pool2d(image, 3, {.stride = 1, .count_include_pad = false})), "[batch, 4, 7, 7]");
}

TEST_F(Inference, LayersThatAreFormulasFollowPyTorch) {
  nn::PReLU each{&root, "each", 4}, one{&root, "one"};
  nn::InstanceNorm2d plain{&root, "plain", 4}, instance{&root, "instance", 4, {.affine = true}};
  nn::LocalResponseNorm response{&root, "response", 5};
  nn::PixelShuffle shuffle{&root, "shuffle", 2};
  nn::Upsample smooth{&root, "smooth", {2, 3}, {.mode = Interpolation::bilinear}};
  EXPECT_EQ(shape(response(instance(plain(one(each(image)))))), "[batch, 4, 9, 9]");
  EXPECT_EQ(shape(shuffle(image)), "[batch, 1, 18, 18]");
  EXPECT_EQ(shape(smooth(image)), "[batch, 4, 18, 27]");
  EXPECT_EQ(shape(each.weight), "[4]");
  EXPECT_EQ(shape(one.weight), "[1]");
  EXPECT_FALSE(bool(plain.weight));
  EXPECT_EQ(shape(instance.bias), "[4]");
  EXPECT_EQ(shape(adaptive_avg_pool2d(image, {2, 4})), "[batch, 4, 2, 4]");
}

TEST_F(Inference, FormulasTakeMergedRows) {
  Tensor tokens = x.flatten(0, 1);
  for (const Tensor &y :
       {remainder(tokens, 2.0), prelu(tokens, root.parameter("slope", {8}, init::ones())),
        masked_fill(tokens, gt(tokens, 0.0), 1.0), normalize(tokens), flip(tokens, 1), roll(tokens, 3, 1)})
    EXPECT_EQ(shape(y), "[batch*6, 8]");
  EXPECT_EQ(shape(norm(tokens, 2, 1)), "[batch*6]");
  EXPECT_EQ(shape(argmin(tokens, 1)), "[batch*6]");
  EXPECT_EQ(shape(einsum("...i,ij->...j", tokens, root.parameter("weight", {8, 3}, init::ones()))), "[batch*6, 3]");
}

TEST_F(Inference, LossesReduceAsAsked) {
  EXPECT_EQ(shape(cross_entropy(logits, label)), "[]");
  EXPECT_EQ(shape(cross_entropy(logits, label, Reduction::sum)), "[]");
  EXPECT_EQ(shape(cross_entropy(logits, label, Reduction::none)), "[batch]");
  EXPECT_EQ(shape(nll_loss(log_softmax(logits, 1), label, Reduction::none)), "[batch]");
  EXPECT_EQ(shape(cross_entropy(logits, logits * 2, Reduction::none)), "[batch]");
  EXPECT_EQ(shape(cross_entropy(matrix, matrix.sum(1).to(i32), {.reduction = Reduction::none})), "[8]");
  EXPECT_EQ(shape(cross_entropy(matrix.sum(0), matrix.sum().to(i32), Reduction::none)), "[]");
  EXPECT_EQ(shape(mse_loss(x, x * 2)), "[]");
  EXPECT_EQ(shape(accuracy(logits, label)), "[]");
  EXPECT_EQ(accuracy(logits, label).dtype(), f32);
  EXPECT_EQ(shape(one_hot(label, 7)), "[batch, 7]");
}

TEST_F(Inference, IndicesTakeADimensionsPlace) {
  Tensor ids = g.input("ids", i32, {Dim{"batch"}, 3}), three = g.input("three", i64, {3});
  EXPECT_EQ(shape(index_select(matrix, 0, ids)), "[batch, 3, 5]");
  EXPECT_EQ(shape(index_select(matrix, -1, label)), "[8, batch]");
  EXPECT_EQ(shape(x.index_select(1, three)), "[batch, 3, 8]");
  EXPECT_EQ(shape(embedding(ids, matrix, -1)), "[batch, 3, 5]");
  nn::Embedding layer{&root, "layer", 10, 4};
  EXPECT_EQ(shape(layer(label)), "[batch, 4]");
  EXPECT_EQ(shape(layer.weight), "[10, 4]");
  EXPECT_EQ(index_select(bytes, 1, three).dtype(), u8);
}
