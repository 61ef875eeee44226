// Tests the errors of invalid ops: every row is a module that a user might write.
#include "op_instance.h"
#include <gtest/gtest.h>
#include <regex>

using namespace sluice::test;

namespace {

struct WrongOp {
  std::string op, message;
};

} // namespace

static std::string conv(const std::string &attributes, const std::string &types) {
  return "\"sluice.conv2d\"(%0, %1) {" + attributes + "} : (" + types + ") -> tensor<1xf32>";
}

static std::string convAttributes(const std::string &stride, const std::string &padding, const std::string &dilation,
                                  const std::string &groups) {
  return "stride = array<i64: " + stride + ">, padding = array<i64: " + padding +
         ">, dilation = array<i64: " + dilation + ">, groups = " + groups + " : i64";
}

static std::string pool(const std::string &attributes, const std::string &x) {
  return "\"sluice.max_pool2d\"(%0) {" + attributes + "} : (" + x + ") -> (tensor<1xf32>, tensor<1xui8>)";
}

static std::string einsum(const std::string &equation, const std::string &types) {
  return "\"sluice.einsum\"(%0, %1) {equation = \"" + equation + "\"} : " + types;
}

/// With x, and a weight and bias of one shape.
static std::string norm(const std::string &attributes, const std::string &x, const std::string &vector) {
  std::string type = "tensor<" + x + "xf32>", vectors = ", tensor<" + vector + "xf32>, tensor<" + vector + "xf32>";
  return "\"sluice.normalize\"(%0, %1, %2) {" + attributes + "} : (" + type + vectors + ") -> " + type;
}

/// Attention with queries, keys, values and optionally a mask.
static std::string attention(const std::string &attributes, const std::string &q, const std::string &k,
                             const std::string &v, const std::string &mask = "") {
  return "\"sluice.scaled_dot_product_attention\"(%0, %1, %2" + std::string(mask.empty() ? "" : ", %3") + ") {" +
         attributes + "} : (tensor<" + q + "xf32>, tensor<" + k + "xf32>, tensor<" + v + "xf32>" +
         (mask.empty() ? "" : ", tensor<" + mask + ">") + ") -> (tensor<1xf32>, tensor<1xf32>)";
}

static std::string iota(const std::string &attributes, const std::string &type) {
  return "\"sluice.iota\"() {" + attributes + ", type = " + type + "} : () -> " + type;
}

TEST(Inference, SaysWhatIsWrong) {
  const std::string x = "tensor<?x3x8x8xf32>", w = "tensor<4x3x3x3xf32>";
  const std::string unpadded = ", padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>";
  const WrongOp cases[] = {
      {"\"sluice.add\"(%0, %1) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>", "[2] f32 and [3] f32"},
      {"\"sluice.add\"(%0, %1) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>", "[2] f32 and [2] i32"},
      {"\"sluice.add\"(%0, %1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>", "ranked tensor"},
      {"\"sluice.add\"(%0, %1) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>", "must be ranked tensor"},
      {"\"sluice.where\"(%0, %1, %2) : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
       "the condition's shape differs: [3] and [2]"},
      {"\"sluice.cast\"(%0) {to = tf32} : (tensor<2xf32>) -> tensor<2xtf32>", "tf32"},
      {"\"sluice.cast\"(%0) {to = ui8} : (tensor<2xf32>) -> tensor<3xui8>", "are incompatible with return type"},
      {einsum("ab,bc->ac", "(tensor<?x784xf32>, tensor<512x10xf32>) -> tensor<?x10xf32>"),
       "letter b has two sizes, 784 and 512, in [?, 784] x [512, 10] by 'ab,bc->ac'"},
      {einsum("ab,ac->bc", "(tensor<?x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>"),
       "letter a has two sizes, ? and 3, in [?, 4] x [3, 5] by 'ab,ac->bc'"},
      {einsum("ab,bc->ac", "(tensor<4xf32>, tensor<4x5xf32>) -> tensor<5xf32>"),
       "operand a has shape [4] and 2 letters, 'ab'"},
      {einsum("abc,acd->abd", "(tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<2x3x5xf32>"),
       "letter a has two sizes, 2 and 3, in [2, 3, 4] x [3, 4, 5] by 'abc,acd->abd'"},
      {einsum("ab,bc->ac", "(tensor<2x4xf32>, tensor<4x5xf64>) -> tensor<2x5xf32>"),
       "element types differ: f32 and f64"},
      {einsum("ab,cb->ac", "(tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x?xf32>"),
       "two letters are the rows, a and c, in [?, 4] x [?, 4] by 'ab,cb->ac'"},
      {einsum("ab,bc->ac", "(tensor<1048577x1xf32>, tensor<1x1048577xf32>) -> tensor<1048577x1048577xf32>"),
       "more than 2^40 elements: [1048577, 1048577]"},
      {einsum("ik,kj->ij", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"),
       "the letters of 'ik,kj->ij' are not in the order in which they appear: 'ab,bc->ac' is the same product"},
      {einsum("aab,bc->ac", "(tensor<2x2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"),
       "letter a is twice in an operand 'aab': a product takes no diagonals"},
      {einsum("ab,bc->aac", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x2x5xf32>"),
       "letter a is twice in the result 'aac'"},
      {einsum("ab,bc->ad", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"),
       "letter d of the result 'ad' is in no operand"},
      {einsum("ab,bc->a", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2xf32>"),
       "letter c is in one operand alone and not in the result of 'ab,bc->a': sum over it first"},
      {einsum("ab,Bc->ac", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"),
       "'ab,Bc->ac' is no equation of a product such as 'ab,cb->ac'"},
      {einsum("ab,bc", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"), "'ab,bc' is no equation"},
      {einsum("ab->ba", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"), "'ab->ba' is no equation"},
      {einsum("ab,bc,cd->ad", "(tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>"), "is no equation"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "1"), x + ", tensor<4x2x3x3xf32>"),
       "input channels differ: 3 and 2 in [?, 3, 8, 8] * [4, 2, 3, 3]"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "2"), x + ", " + w),
       "groups do not divide the channels: 2 groups in [?, 3, 8, 8] * [4, 3, 3, 3]"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "0"), x + ", " + w), "0 groups"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "-1"), x + ", " + w), "-1 groups"},
      {conv(convAttributes("0, 1", "0, 0, 0, 0", "1, 1", "1"), x + ", " + w),
       "stride needs numbers from 1 to 2^31 - 1; got 0"},
      {conv(convAttributes("1", "0, 0, 0, 0", "1, 1", "1"), x + ", " + w), "stride needs 2 numbers; got 1"},
      {conv(convAttributes("1, 1", "0, -1, 0, 0", "1, 1", "1"), x + ", " + w),
       "padding needs numbers from 0 to 2^31 - 1; got -1"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 4", "1"), x + ", " + w),
       "the kernel is larger than the padded input: 9 and 8"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 9223372036854775807", "1"), x + ", " + w),
       "dilation needs numbers"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "1"), "tensor<3x?x8x8xf32>, " + w),
       "only the first dimension of a convolution's input may be ?"},
      {conv(convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "1"), "tensor<3x8x8xf32>, " + w),
       "x needs 4 dimensions; got [3, 8, 8]"},
      {"\"sluice.conv2d_input_grad\"(%0, %1) {size = array<i64: 9, 8>, " +
           convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "1") +
           "} : (tensor<?x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<?x3x8x8xf32>",
       "dY differs in shape from the convolution's result: [?, 4, 6, 6] and [?, 4, 7, 6]"},
      {"\"sluice.conv2d_weight_grad\"(%0, %1) {size = array<i64: 3, 0>, " +
           convAttributes("1, 1", "0, 0, 0, 0", "1, 1", "1") +
           "} : (tensor<?x3x8x8xf32>, tensor<?x4x6x6xf32>) -> tensor<4x3x3x3xf32>",
       "size needs numbers from 1"},
      {pool("kernel = array<i64: 9, 9>, stride = array<i64: 1, 1>" + unpadded, x),
       "the kernel is larger than the padded input: 9 and 8"},
      {pool("kernel = array<i64: 9, 11>, stride = array<i64: 3, 3>, ceil_mode" + unpadded, x),
       "the kernel is larger than the padded input: 11 and 8"},
      {"\"sluice.clip\"(%0) {min = 0.5 : f64} : (tensor<2xi32>) -> tensor<2xi32>",
       "the bound 5.000000e-01 is no value of"},
      {"\"sluice.clip\"(%0) {max = 256.0 : f64} : (tensor<2xui8>) -> tensor<2xui8>", "is no value of"},
      {pool("kernel = array<i64: 2, 0>, stride = array<i64: 1, 1>" + unpadded, x),
       "kernel needs numbers from 1 to 2^31 - 1; got 0"},
      {pool("kernel = array<i64: 2, 2>, stride = array<i64: 1, 0>" + unpadded, x),
       "stride needs numbers from 1 to 2^31 - 1; got 0"},
      {pool("kernel = array<i64: 17, 16>, stride = array<i64: 1, 1>" + unpadded, "tensor<1x1x64x64xf32>"),
       "the kernel [17, 16] is too large"},
      {pool("kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>, padding = array<i64: 2, 0, 0, 0>, dilation = "
            "array<i64: 1, 1>",
            x),
       "a window would hold only padding: padding 2 and kernel 2"},
      {pool("kernel = array<i64: 2, 2>, stride = array<i64: 1, 1>" + unpadded, "tensor<8x8xf32>"),
       "needs 4 dimensions; got [8, 8]"},
      {"\"sluice.max_pool2d_grad\"(%0, %1) {size = array<i64: 8, 8>, kernel = array<i64: 2, 2>, stride = array<i64: 2, "
       "2>" +
           unpadded + "} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xui8>) -> tensor<1x1x8x8xf32>",
       "dY differs in shape from the pool's result: [1, 1, 3, 4] and [1, 1, 4, 4]"},
      {"\"sluice.sum\"(%0) {axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>",
       "axis 2 is not a dimension of [2, 3]"},
      {"\"sluice.sum\"(%0) {axes = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<2xf32>",
       "axis -1 is not a dimension of [2, 3]"},
      {"\"sluice.sum\"(%0) {axes = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<3xf32>", "axis 0 is given twice"},
      {"\"sluice.mean\"(%0) {axes = array<i64: 0>} : (tensor<2x3xi32>) -> tensor<3xi32>",
       "needs floating-point operands; got i32"},
      {"\"sluice.softmax\"(%0) {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       "axis 2 is not a dimension of [2, 3]"},
      {"\"sluice.argmax\"(%0) {axis = -5 : i64} : (tensor<2x3xf32>) -> tensor<2xi32>",
       "axis -5 is not a dimension of [2, 3]"},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2xf32>",
       "labels need the logits' dimensions but that of the classes, 1: [2, 3] and [3]"},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<2x3x4xf32>, tensor<2xi32>) -> tensor<2xf32>",
       "labels need the logits' dimensions but that of the classes, 1: [2, 3, 4] and [2]"},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>",
       "axis 1 is not a dimension of [2]"},
      {"\"sluice.softmax_cross_entropy\"(%0, %1) {axis = 0 : i64} : (tensor<?x3xf32>, tensor<3xi32>) -> tensor<3xf32>",
       "the number of classes cannot be ?: [?, 3]"},
      {"\"sluice.soft_cross_entropy\"(%0, %1) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2xf32>",
       "logits and target differ in shape: [2, 3] and [2, 4]"},
      {"\"sluice.soft_cross_entropy\"(%0, %1) : (tensor<2x3xf32>, tensor<2x3xf64>) -> tensor<2xf32>",
       "element types differ: f32 and f64"},
      {"\"sluice.ignore_index\"(%0) {size = 0 : i64, ignored = 1 : i64} : (tensor<2xi32>) -> tensor<2xi32>",
       "size needs numbers from 1 to 2^31 - 1; got 0"},
      {"\"sluice.ignore_index\"(%0) {size = 3 : i64, ignored = 3000000000 : i64} : (tensor<2xi64>) -> tensor<2xi64>",
       "the ignored index 3000000000 is none of 32 bits"},
      {"\"sluice.batch_norm\"(%0, %1, %1, %1, %1) : (tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, "
       "tensor<4xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)",
       "weight differs from the channels: [4] and [2, 3]"},
      {norm("axis = 0 : i64, dims = array<i64: 1>, eps = 1.0 : f64", "?x3", "3"),
       "cannot normalize over the rows of a call: dimensions of [?, 3] from 0 on"},
      {norm("axis = 2 : i64, dims = array<i64: 1>, eps = 1.0 : f64", "?x3", "3"),
       "axis 2 is not a dimension of [?, 3]"},
      {norm("axis = 1 : i64, dims = array<i64: 0>, eps = 1.0 : f64", "?x3", "?"),
       "the weight [?] is not of these dimensions of [?, 3]"},
      {norm("axis = 1 : i64, dims = array<i64: 1>, eps = 1.0 : f64", "?x3", "2"),
       "the weight [2] is not of these dimensions of [?, 3]"},
      {norm("axis = 1 : i64, dims = array<i64: 1, 0>, eps = 1.0 : f64", "2x3", "3x2"), "dims are ascending"},
      {norm("axis = 1 : i64, dims = array<i64: 1>, eps = 0.0 : f64", "2x3", "3"), "eps is above 0; got 0"},
      {"\"sluice.normalize\"(%0, %1, %2) {axis = 1 : i64, dims = array<i64: 1>, eps = 1.0 : f64} : (tensor<2x3xf32>, "
       "tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>",
       "weight and bias differ: [3] and [2]"},
      {"\"sluice.normalize_grad\"(%0, %1, %2) {axis = 1 : i64, dims = array<i64: 1>, eps = 1.0 : f64} : "
       "(tensor<2x3xf32>, "
       "tensor<3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>",
       "dY differs in shape from x: [3, 2] and [2, 3]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x4x7", "?x4x7x8"), "needs 4 dimensions; got [?, 4, 7]"},
      {attention("scale = 1.0 : f64", "2x?x5x8", "2x?x7x8", "2x?x7x8"),
       "only the first dimension of attention may be ?: q [2, ?, 5, 8], k [2, ?, 7, 8], v [2, ?, 7, 8]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "3x4x7x8", "?x4x7x8"),
       "queries, keys and values differ in their first dimension: q [?, 4, 5, 8], k [3, 4, 7, 8], v [?, 4, 7, 8]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x4x7x8", "?x4x6x8"),
       "there is not one value for each key: q [?, 4, 5, 8], k [?, 4, 7, 8], v [?, 4, 6, 8]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x4x7x6", "?x4x7x8"),
       "queries and keys differ in their last dimension: q [?, 4, 5, 8], k [?, 4, 7, 6], v [?, 4, 7, 8]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x3x7x8", "?x3x7x8"),
       "the heads of the keys do not divide those of the queries: q [?, 4, 5, 8], k [?, 3, 7, 8], v [?, 3, 7, 8]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x2x7x8", "?x2x7x8", "?x2x5x7xf32"),
       "a mask has the dimensions of the scores, or 1 in their place, [?, 4, 5, 7]; got [?, 2, 5, 7]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x4x7x8", "?x4x7x8", "5x7xf32"),
       "a mask has the dimensions of the scores, or 1 in their place, [?, 4, 5, 7]; got [5, 7]"},
      {attention("scale = 1.0 : f64", "?x4x5x8", "?x4x7x8", "?x4x7x8", "1x1x5x7xf64"),
       "a mask is of bool or, as the queries are, of f32; got f64"},
      {attention("scale = 0x7FF8000000000000 : f64", "?x4x5x8", "?x4x7x8", "?x4x7x8"), "scale is a number; got"},
      {attention("scale = 1.0 : f64, block = 0 : i64", "?x4x5x8", "?x4x7x8", "?x4x7x8"), "block is 1 to 1024; got 0"},
      {attention("scale = 1.0 : f64, block = 2000 : i64", "?x4x5x8", "?x4x7x8", "?x4x7x8"),
       "block is 1 to 1024; got 2000"},
      {"\"sluice.attention_query_grad\"(%0, %1, %2, %3, %4, %5) {scale = 1.0 : f64} : (tensor<?x1x2x3xf16>, "
       "tensor<?x1x2x3xf16>, tensor<?x1x2x3xf16>, tensor<?x1x2x3xf16>, tensor<?x1x2xf16>, tensor<?x1x2xf16>) -> "
       "tensor<?x1x2x3xf16>",
       "logsumexp and delta have one f32 for each query, [?, 1, 2]; got [?, 1, 2] of f16"},
      {"\"sluice.attention_query_grad\"(%0, %1, %2, %3, %4, %5) {scale = 1.0 : f64} : (tensor<?x1x2x3xf32>, "
       "tensor<?x1x2x3xf32>, tensor<?x1x2x3xf32>, tensor<?x1x3x3xf32>, tensor<?x1x2xf32>, tensor<?x1x2xf32>) -> "
       "tensor<?x1x2x3xf32>",
       "dY differs in shape from y: [?, 1, 3, 3] and [?, 1, 2, 3]"},
      {iota("start = 0.0 : f64, step = 1.0 : f64, axis = 1 : i64", "tensor<3xi32>"),
       "axis 1 is not a dimension of [3]"},
      {iota("start = 0.0 : f64, step = 1.0 : f64, axis = 0 : i64", "tensor<3xui8>"),
       "counts in floats, i32 or i64, not in ui8"},
      {iota("start = 0.5 : f64, step = 1.0 : f64, axis = 0 : i64", "tensor<3xi32>"), "is not a value of i32"},
      {iota("start = 0.0 : f64, step = 2.0e9 : f64, axis = 0 : i64", "tensor<3xi32>"), "is not a value of i32"},
      {"\"sluice.reshape\"(%0) {shape = array<i64: 5>} : (tensor<2x3xf32>) -> tensor<5xf32>",
       "a reshape keeps the number of elements: [2, 3] and [5]"},
      {"\"sluice.reshape\"(%0) {shape = array<i64: 0, 6>} : (tensor<2x3xf32>) -> tensor<0x6xf32>",
       "empty dimension: [0, 6]"},
      {"\"sluice.reshape\"(%0) {shape = array<i64: -2, -3>} : (tensor<2x3xf32>) -> tensor<6xf32>",
       "empty dimension: [-2, -3]"},
      {"\"sluice.reshape\"(%0) {shape = array<i64: 2, -1>} : (tensor<?x2xf32>) -> tensor<2x?xf32>",
       "a reshape needs ? outermost: [?, 2] to [2, ?]"},
      {"\"sluice.transpose\"(%0) {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       "axis 0 is given twice"},
      {"\"sluice.transpose\"(%0) {permutation = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
       "a permutation of 2 dimensions has 1 numbers"},
      {"\"sluice.expand\"(%0) {dims = array<i64: 0>, shape = array<i64: 3, 4>} : (tensor<2xf32>) -> tensor<3x4xf32>",
       "cannot broadcast [2] to [3, 4]: sizes 2 and 3"},
      {"\"sluice.expand\"(%0) {dims = array<i64: 1, 0>, shape = array<i64: 3, 2>} : (tensor<2x3xf32>) -> "
       "tensor<3x2xf32>",
       "the dims of expand do not ascend"},
      {"\"sluice.expand\"(%0) {dims = array<i64>, shape = array<i64: 2>} : (tensor<2xf32>) -> tensor<2xf32>",
       "one of `dims` for each dimension of [2]; got 0"},
      {"\"sluice.slice\"(%0) {start = array<i64: 1>, end = array<i64: 5>, step = array<i64: 1>} : (tensor<4xf32>) -> "
       "tensor<4xf32>",
       "slice [1, 5) with step 1 is empty or outside of dimension 0 of [4]"},
      {"\"sluice.slice\"(%0) {start = array<i64: 1>, end = array<i64: 3>, step = array<i64: 0>} : (tensor<4xf32>) -> "
       "tensor<4xf32>",
       "with step 0"},
      {"\"sluice.slice\"(%0) {start = array<i64: 1>, end = array<i64: 3>, step = array<i64: 1>} : (tensor<?xf32>) -> "
       "tensor<?xf32>",
       "? can only be taken whole: start 1 and step 1"},
      {"\"sluice.slice\"(%0) {start = array<i64>, end = array<i64>, step = array<i64>} : (tensor<4xf32>) -> "
       "tensor<4xf32>",
       "needs 1 starts, ends and steps; got 0, 0 and 0"},
      {"\"sluice.pad\"(%0) {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<?xf32>) -> "
       "tensor<?xf32>",
       "? cannot be padded: dimension 0 of [?]"},
      {"\"sluice.pad\"(%0) {low = array<i64: -1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<4xf32>) -> "
       "tensor<3xf32>",
       "low needs numbers from 0"},
      {"\"sluice.concat\"(%0, %1) {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>",
       "cannot join [2, 3] f32 and [2, 4] f32 along dimension 0"},
      {"\"sluice.concat\"(%0, %1) {axis = 0 : i64} : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>",
       "cannot join [?, 3] f32"},
      {"\"sluice.concat\"() {axis = 0 : i64} : () -> tensor<2xf32>", "concat needs an operand"},
      {"\"sluice.gather\"(%0, %1) {axis = 0 : i64} : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>",
       "the rows of a call cannot be indexed: axis 0 of [?, 3]"},
      {"\"sluice.gather\"(%0, %1) {axis = 2 : i64} : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>",
       "axis 2 is not a dimension of [4, 3]"},
      {"\"sluice.gather\"(%0, %1) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<?x?xf32>",
       "more than one ?: [?, ?]"},
      {"\"sluice.gather\"(%0, %1) {axis = 0 : i64} : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>",
       "must be ranked tensor"},
      {"\"sluice.scatter_add\"(%0, %1) {axis = 0 : i64, size = 0 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> "
       "tensor<2x3xf32>",
       "size needs numbers from 1 to 2^31 - 1; got 0"},
      {"\"sluice.scatter_add\"(%0, %1) {axis = 2 : i64, size = 4 : i64} : (tensor<2x3xf32>, tensor<3xi32>) -> "
       "tensor<2x4xf32>",
       "axis 2 is none of 0 to 1: indices of [3] in [2, 3]"},
      {"\"sluice.scatter_add\"(%0, %1) {axis = 0 : i64, size = 4 : i64} : (tensor<2x3xf32>, tensor<3xi32>) -> "
       "tensor<4x3xf32>",
       "x needs the index's dimensions from 0 on: [2, 3] and [3]"},
      {"\"sluice.dynamic_slice\"(%0, %1) {axis = 0 : i64, size = 2 : i64} : (tensor<?x3xf32>, tensor<i32>) -> "
       "tensor<2x3xf32>",
       "the rows of a call cannot be indexed: axis 0 of [?, 3]"},
      {"\"sluice.dynamic_slice\"(%0, %1) {axis = 1 : i64, size = 4 : i64} : (tensor<?x3xf32>, tensor<i32>) -> "
       "tensor<?x4xf32>",
       "a slice of 4 elements is in no dimension of 3: axis 1 of [?, 3]"},
      {"\"sluice.dynamic_slice\"(%0, %1) {axis = 1 : i64, size = 2 : i64} : (tensor<?x3xf32>, tensor<1xi32>) -> "
       "tensor<?x2xf32>",
       "the index is a scalar, not [1]"},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?x4xf32>, tensor<i32>) "
       "-> "
       "tensor<?x3xf32>",
       "a slice of 4 elements is in no dimension of 3: axis 1 of [?, 3]"},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<2x1xf32>, tensor<i32>) "
       "-> "
       "tensor<?x3xf32>",
       "the part needs x's shape but for axis 1: [?, 3] and [2, 1]"},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?xf32>, tensor<i32>) "
       "-> "
       "tensor<?x3xf32>",
       "the part needs x's shape but for axis 1: [?, 3] and [?]"},
      {"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = 1 : i64} : (tensor<?x3xf32>, tensor<?x1xf64>, tensor<i32>) "
       "-> "
       "tensor<?x3xf32>",
       "x and the part have two element types"},
      {"\"sluice.one_hot\"(%0) {classes = -4 : i64, to = f32} : (tensor<2xi32>) -> tensor<2x4xf32>",
       "classes needs numbers from 1 to 2^31 - 1; got -4"},
      {"\"sluice.full\"() {value = 1.0 : f64, type = tensor<2x!sluice.none>} : () -> tensor<2xf32>", "sluice"},
      {"\"sluice.full\"() {value = 1.0 : f64, type = tensor<2xi7>} : () -> tensor<2xf32>",
       "element type i7 is none of"},
      {"\"sluice.full\"() {value = 1.0 : f64, type = tensor<?x?xf32>} : () -> tensor<?x?xf32>", "more than one ?"},
      {"\"sluice.uniform\"(%0) {stream = 0 : i64, a = 0.0 : f64, b = 1.0 : f64, type = tensor<2xf32>} : "
       "(tensor<3xi32>) -> tensor<2xf32>",
       "a key is [2] i32; got [3] i32"},
      {"\"sluice.uniform\"(%0) {stream = 0 : i64, a = 0.0 : f64, b = 0x7FF0000000000000 : f64, type = tensor<2xf32>} : "
       "(tensor<2xi32>) -> tensor<2xf32>",
       "needs finite numbers"},
      {"\"sluice.normal\"(%0) {stream = 0 : i64, a = 0.0 : f64, b = 1.0 : f64, type = tensor<2xi32>} : (tensor<2xi32>) "
       "-> tensor<2xf32>",
       "random numbers are floats; got i32"},
      {"\"sluice.normal\"(%0) {stream = 0 : i64, a = 0.0 : f64, b = 1.0 : f64, type = tensor<1073741825xf32>} : "
       "(tensor<2xi32>) -> tensor<1073741825xf32>",
       "at most 2^30 random numbers"},
      {"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<2xi32>} : (tensor<3xi32>) -> tensor<2xi32>",
       "a key is [2] i32; got [3] i32"},
      {"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<2xi64>} : (tensor<2xi32>) -> tensor<2xi32>",
       "random bits are i32; got i64"},
      {"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<1073741825xi32>} : (tensor<2xi32>) -> "
       "tensor<1073741825xi32>",
       "at most 2^30 random numbers"},
      {"\"sluice.random_bits\"(%0) {stream = 0 : i64, type = tensor<2x?xi32>} : (tensor<2xi32>) -> tensor<2x?xi32>",
       "random numbers need ? outermost: [2, ?]"},
      {"\"sluice.bernoulli\"(%0) {stream = 0 : i64, p = 1.5 : f64, type = tensor<2xi1>} : (tensor<2xi32>) -> "
       "tensor<2xi1>",
       "a probability is within [0, 1]; got 1.5"},
      {"\"sluice.bernoulli\"(%0) {stream = 0 : i64, p = 0.5 : f64, type = tensor<2xf32>} : (tensor<2xi32>) -> "
       "tensor<2xi1>",
       "what is true or not is i1; got f32"},
      {"\"sluice.bernoulli\"(%0, %1) {stream = 0 : i64, p = 0.5 : f64, type = tensor<2xi1>} : (tensor<2xi32>, "
       "tensor<2xi64>) -> tensor<2xi1>",
       "the number of the first row is a scalar; got [2]"},
      {"\"sluice.dequantize_blocks\"(%0, %1) {axis = 1 : i64} : (tensor<3x40xui8>, tensor<3x1xf16>) -> "
       "tensor<3x40xf32>",
       "axis 1 of [3, 40] is not a multiple of 32"},
      {"\"sluice.dequantize_blocks\"(%0, %1) {axis = 0 : i64} : (tensor<64x3xui8>, tensor<3x2xf16>) -> "
       "tensor<64x3xf32>",
       "scales differ from the blocks: [3, 2] and [2, 3]"},
      {"\"sluice.dequantize_blocks\"(%0, %1) {axis = 1 : i64} : (tensor<?x32xui8>, tensor<?x1xf16>) -> "
       "tensor<?x32xf32>",
       "blocks have known sizes; got [?, 32]"},
      {"\"sluice.dequantize_blocks\"(%0, %1) {axis = 2 : i64} : (tensor<3x32xui8>, tensor<3x1xf16>) -> "
       "tensor<3x32xf32>",
       "axis 2 is not a dimension of [3, 32]"},
      {"\"sluice.power_sum\"(%0, %1) {power = 3 : i64} : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<3xf64>",
       "power is 1 or 2; got 3"},
      {"\"sluice.power_sum\"(%0, %1) {power = 1 : i64} : (tensor<2x3xf32>, tensor<2xf64>) -> tensor<2xf64>",
       "shift differs from the channels: [2] and [2, 3]"},
      {"\"sluice.power_sum\"(%0, %1) {power = 1 : i64} : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf64>",
       "sums for channels need [N, C, ...]"},
      {"\"sluice.dropout\"(%0, %1) {stream = 0 : i64, p = 0x7FF8000000000000 : f64} : (tensor<2xf32>, tensor<2xi32>) "
       "-> "
       "tensor<2xf32>",
       "a probability is within [0, 1]; got"},
      {"\"sluice.dropout\"(%0, %1) {stream = 0 : i64, p = 0.5 : f64} : (tensor<2xf32>, tensor<3xi32>) -> tensor<2xf32>",
       "a key is [2] i32; got [3] i32"},
  };
  for (const WrongOp &test : cases) {
    OpInstance instance(test.op);
    EXPECT_FALSE(instance.op) << test.op;
    EXPECT_NE(instance.error.find(test.message), std::string::npos)
        << test.op << "\nsays: " << instance.error << "\nnot:  " << test.message;
  }
}

/// `text` with the inferred result types from an error message; empty if the error has none.
static std::string withInferredTypes(const std::string &text, const std::string &error) {
  std::smatch types;
  if (!std::regex_search(error, types, std::regex("inferred type\\(s\\) (.*) are incompatible")))
    return "";
  return text.substr(0, text.rfind(") -> ") + 5) + "(" + std::regex_replace(types[1].str(), std::regex("'"), "") + ")";
}

static bool isSmall(mlir::Value value) {
  return cast<mlir::RankedTensorType>(value.getType()).clone(mlir::Float64Type::get(&getContext())).getNumElements() <
         100000;
}

/// Runs every query of the passes on an accepted op.
static void use(OpInstance &instance, const sluice::ir::Sample &sample) {
  mlir::OpBuilder builder(instance.op->getBlock()->getTerminator());
  if (auto differentiable = mlir::dyn_cast<sluice::ir::DifferentiableOp>(instance.op)) {
    llvm::SmallVector<mlir::Value> dResults(instance.op->getNumResults());
    dResults[0] = instance.op->getResult(0);
    differentiable.buildGradient(builder, dResults);
  }
  bool isStatic = llvm::all_of(instance.op->getResults(), [](mlir::Value value) {
    return cast<mlir::ShapedType>(value.getType()).hasStaticShape();
  });
  if (isStatic && llvm::all_of(instance.op->getResults(), isSmall))
    instance.run(drawOperands(instance, sample));
}

// Replaces every number in every sample's attributes by hostile ones: the outcome is an error or a result, never a
// crash.
TEST(Inference, SurvivesHostileNumbers) {
  const char *hostile[] = {
      "-1", "0", "1", "3", "257", "2147483647", "-9223372036854775808", "9223372036854775807", "1099511627776"};
  const std::regex number("(i64: |, |= )(-?[0-9]+)(?=[,>]| : i64)");
  size_t tried = 0, accepted = 0;
  for (const std::string &name : getOpsWith<sluice::ir::ReferenceOp>())
    for (const sluice::ir::Sample &sample : getSamples(name))
      for (auto match = std::sregex_iterator(sample.op.begin(), sample.op.end(), number);
           match != std::sregex_iterator(); ++match)
        for (const char *replacement : hostile)
          // The result type is also wrong once the op is accepted; the message contains the inferred one.
          for (std::string text =
                   std::string(sample.op).replace(size_t(match->position(2)), size_t(match->length(2)), replacement);
               !text.empty();) {
            OpInstance instance(text);
            ++tried;
            text = withInferredTypes(text, instance.error);
            if (!instance.op)
              continue;
            ++accepted;
            use(instance, sample);
          }
  printf("tried %zu ops, of which %zu are valid\n", tried, accepted);
  EXPECT_GT(accepted, 200u);
}
