// Tests the view of ops that backends get: numbers, keywords and types, without MLIR text.
#include "ir/Layout.h"
#include "passes/backend/KernelView.h"
#include "tests/ir/op_instance.h"
#include "llvm/ADT/ArrayRef.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace sluice::ir;
using sluice::passes::KernelView;
using sluice::passes::OpViews;
using sluice::test::OpInstance;

namespace {

const sluice_op_view &onlyOp(const KernelView &view) { return *sluice_kernel_op_at(view.get(), 0); }

/// The attribute of the only op, or one without a name.
sluice_attribute_view attributeOf(const KernelView &view, llvm::StringRef name) {
  const sluice_op_view &op = onlyOp(view);
  for (size_t number = 0; number < op.num_attributes; ++number)
    if (sluice_op_attribute_at(&op, number)->name == name)
      return *sluice_op_attribute_at(&op, number);
  return {};
}

std::vector<int64_t> integersOf(const KernelView &view, llvm::StringRef name) {
  sluice_attribute_view attribute = attributeOf(view, name);
  return std::vector<int64_t>(attribute.integers, attribute.integers + attribute.count);
}

using Dim = std::tuple<uint32_t, sluice_layout_part, int64_t>;

std::vector<Dim> layoutOf(const KernelView &view, size_t number) {
  const sluice_type_view &type = *sluice_kernel_value_at(view.get(), number);
  std::vector<Dim> dims;
  for (const sluice_layout_dim &dim : llvm::ArrayRef(type.layout, type.num_layout))
    dims.emplace_back(dim.dimension, dim.part, dim.tile);
  return dims;
}

/// A product whose first operand has layout `layout` in memory.
struct LaidOutProduct : OpInstance {
  explicit LaidOutProduct(AffineMap layout)
      : OpInstance("\"sluice.einsum\"(%0, %1) {equation = \"ab,cb->ac\"} : (tensor<?x8xf32>, tensor<3x8xf32>) -> "
                   "tensor<?x3xf32>") {
    Value a = op->getOperand(0);
    a.setType(withLayout(cast<RankedTensorType>(a.getType()), layout));
  }
};

AffineExpr dim(unsigned number) { return getAffineDimExpr(number, &sluice::test::getContext()); }
AffineMap mapTo(llvm::ArrayRef<AffineExpr> results) {
  return AffineMap::get(2, 0, results, &sluice::test::getContext());
}

} // namespace

TEST(KernelViewTest, EverySampleOfAnOpCanBeSaid) {
  for (const std::string &name : sluice::test::getOpsWith<ReferenceOp>())
    for (const Sample &sample : sluice::test::getSamples(name))
      EXPECT_EQ(KernelView(OpInstance(sample.op).op).unsaid(), "") << sample.op;
}

TEST(KernelViewTest, SaysHowLargeItsStructsAre) {
  OpInstance instance("\"sluice.relu\"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>");
  KernelView view(instance.op);
  EXPECT_EQ(view.get()->struct_size, sizeof(sluice_kernel_view));
  EXPECT_EQ(view.get()->value_size, sizeof(sluice_type_view));
  EXPECT_EQ(view.get()->op_size, sizeof(sluice_op_view));
  EXPECT_EQ(onlyOp(view).attribute_size, sizeof(sluice_attribute_view));
}

// The numbers of an op's operands differ between kernels, although the kernels share the view of the op.
TEST(KernelViewTest, KernelsThatShareAnOpNumberItsOperandsThemselves) {
  OpInstance instance("\"sluice.sub\"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>");
  OpBuilder builder(instance.op->getBlock()->getTerminator());
  Operation *first = instance.op, *second = builder.clone(*first);
  second->setOperands({first->getOperand(1), first->getResult(0)});
  OpViews views;
  KernelView both({first, second}, second->getResults(), views), alone(second, second->getResults(), views);
  auto operandsOf = [](const KernelView &view, size_t op) {
    const sluice_op_view &its = *sluice_kernel_op_at(view.get(), op);
    return std::vector<size_t>(its.operands, its.operands + its.num_operands);
  };
  EXPECT_EQ(both.get()->num_operands, 2u);
  EXPECT_EQ(operandsOf(both, 0), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(operandsOf(both, 1), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(both.get()->results[0], 3u);
  EXPECT_EQ(operandsOf(alone, 0), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(alone.get()->results[0], 2u);
}

// A view that cannot represent a type is not given to a backend, whichever kernel made the view of the op first.
TEST(KernelViewTest, KernelsThatShareAnOpShareWhatCannotBeSaid) {
  LaidOutProduct skewed(mapTo({dim(0) + dim(1), dim(1)}));
  OpViews views;
  EXPECT_NE(KernelView(skewed.op, skewed.op->getResults(), views).unsaid(), "");
  EXPECT_NE(KernelView(skewed.op, skewed.op->getResults(), views).unsaid(), "");
}

TEST(KernelViewTest, AWordOfAnEnumIsTheWordAlone) {
  OpInstance instance("\"sluice.compare\"(%0, %1) {predicate = #sluice<predicate lt>} : (tensor<2xf32>, tensor<2xf32>) "
                      "-> tensor<2xi1>");
  KernelView view(instance.op);
  EXPECT_EQ(attributeOf(view, "predicate").kind, SLUICE_ATTRIBUTE_WORD);
  EXPECT_STREQ(attributeOf(view, "predicate").word, "lt");
}

TEST(KernelViewTest, TheBatchDimensionIsMinusOne) {
  OpInstance instance("\"sluice.reshape\"(%0) {shape = array<i64: -1, 4, 2>} : (tensor<?x8xf32>) -> tensor<?x4x2xf32>");
  instance.op->setAttr("shape", DenseI64ArrayAttr::get(&sluice::test::getContext(), {ShapedType::kDynamic, 4, 2}));
  KernelView view(instance.op);
  EXPECT_EQ(sluice_kernel_value_at(view.get(), 0)->shape[0], -1);
  EXPECT_EQ(integersOf(view, "shape"), (std::vector<int64_t>{-1, 4, 2}));
}

TEST(KernelViewTest, ATypeIsADtypeAndSizes) {
  OpInstance full("\"sluice.full\"() {value = 2.5 : f64, type = tensor<?x2xf64>} : () -> tensor<?x2xf64>");
  KernelView ofTensors(full.op);
  EXPECT_EQ(attributeOf(ofTensors, "type").kind, SLUICE_ATTRIBUTE_TYPE);
  EXPECT_EQ(attributeOf(ofTensors, "type").dtype, SLUICE_DTYPE_f64);
  EXPECT_EQ(integersOf(ofTensors, "type"), (std::vector<int64_t>{-1, 2}));
  OpInstance byte("\"sluice.cast\"(%0) {to = ui8} : (tensor<20xf64>) -> tensor<20xui8>");
  KernelView ofElements(byte.op);
  EXPECT_EQ(attributeOf(ofElements, "to").dtype, SLUICE_DTYPE_u8);
  EXPECT_EQ(attributeOf(ofElements, "to").count, 0u);
}

TEST(KernelViewTest, FlagsAndBooleansAreZeroOrOne) {
  LaidOutProduct product(mapTo({dim(0), dim(1)}));
  EXPECT_EQ(attributeOf(KernelView(product.op), "equation").kind, SLUICE_ATTRIBUTE_WORD);
  OpInstance constant("\"sluice.constant\"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>");
  EXPECT_EQ(integersOf(KernelView(constant.op), "value"), (std::vector<int64_t>{1, 0}));
}

TEST(KernelViewTest, WhatOthersNoteOnAnOpIsNotItsAttribute) {
  OpInstance instance("\"sluice.relu\"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>");
  instance.op->setAttr("note", ArrayAttr::get(&sluice::test::getContext(), {}));
  KernelView view(instance.op);
  EXPECT_EQ(onlyOp(view).num_attributes, 0u);
  EXPECT_EQ(view.unsaid(), "");
}

TEST(KernelViewTest, LayoutsAreNumbers) {
  LaidOutProduct rowMajor(mapTo({dim(0), dim(1)})), transposed(mapTo({dim(1), dim(0)})),
      panels(mapTo({dim(1).floorDiv(4), dim(0), dim(1) % 4}));
  EXPECT_EQ(layoutOf(KernelView(rowMajor.op), 0), std::vector<Dim>{});
  EXPECT_EQ(layoutOf(KernelView(transposed.op), 0),
            (std::vector<Dim>{{1, SLUICE_LAYOUT_WHOLE, 0}, {0, SLUICE_LAYOUT_WHOLE, 0}}));
  EXPECT_EQ(layoutOf(KernelView(panels.op), 0),
            (std::vector<Dim>{
                {1, SLUICE_LAYOUT_TILE_NUMBER, 4}, {0, SLUICE_LAYOUT_WHOLE, 0}, {1, SLUICE_LAYOUT_PLACE_IN_TILE, 4}}));
}

TEST(KernelViewTest, ALayoutThatNumbersCannotSayIsNamed) {
  LaidOutProduct skewed(mapTo({dim(0) + dim(1), dim(1)}));
  EXPECT_EQ(KernelView(skewed.op).unsaid(),
            "backends cannot be told of a layout that is not made of dimensions and their tiles");
}

// Uses an op that is not an op on values, because all attributes of those are representable.
TEST(KernelViewTest, AnAttributeThatCannotBeSaidIsNamedWithItsOp) {
  OpInstance instance("\"sluice.relu\"(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>");
  EXPECT_EQ(KernelView(instance.entry).unsaid(), "backends cannot be told of the attribute 'inputs' of 'sluice.entry'");
}
