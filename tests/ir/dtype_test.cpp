// Tests the IR's side of the table of element types: exactly its entries are tensor types.
#include "ir/Layout.h"
#include "mlir/IR/MLIRContext.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice::ir;

namespace {

struct Entry {
  sluice_dtype dtype;
  const char *ir;
  int64_t bytes;
};

#define SLUICE_TEST_ENTRY(name, number, type, text, ir, ...) {SLUICE_DTYPE_##name, ir, sizeof(type)},
constexpr Entry kTable[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_TEST_ENTRY)};
#undef SLUICE_TEST_ENTRY

std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace

TEST(DTypes, EachIsATypeOfTheIr) {
  MLIRContext context;
  for (const Entry &entry : kTable) {
    Type type = typeOf(&context, entry.dtype);
    EXPECT_EQ(print(type), entry.ir);
    ASSERT_TRUE(succeeded(dtypeOf(type))) << entry.ir;
    EXPECT_EQ(*dtypeOf(type), entry.dtype);
    EXPECT_EQ(getElementBytes(type), entry.bytes) << entry.ir;
  }
}

TEST(DTypes, ElementsAreReadAsTheyAreWritten) {
  MLIRContext context;
  for (const Entry &entry : kTable) {
    Type type = typeOf(&context, entry.dtype);
    char memory[16];
    std::memset(memory, 0x5a, sizeof memory);
    writeElement(type, memory, 1);
    EXPECT_EQ(readElement(type, memory), 1) << entry.ir;
    EXPECT_EQ(memory[entry.bytes], 0x5a) << entry.ir << " is longer than " << entry.bytes << " bytes";
    EXPECT_EQ(roundTo(type, 1), 1) << entry.ir;
  }
}

// Another two-byte float is not mistaken for i64, u8 or f64.
TEST(DTypes, OthersAreNone) {
  MLIRContext context;
  Builder b(&context);
  for (Type type : {Type(b.getTF32Type()), Type(FloatType::getFloat8E5M2(&context)), Type(FloatType::getF80(&context)),
                    Type(b.getIndexType()), Type(b.getIntegerType(8)), Type(b.getIntegerType(8, /*isSigned=*/true)),
                    Type(b.getIntegerType(1, /*isSigned=*/false)), Type(b.getIntegerType(16)),
                    Type(b.getIntegerType(32, /*isSigned=*/false)), Type(b.getIntegerType(64, /*isSigned=*/true)),
                    Type(ComplexType::get(b.getF32Type()))})
    EXPECT_TRUE(failed(dtypeOf(type))) << print(type);
}

// Except two-byte floats, which are added in f32.
TEST(DTypes, SumsAreOfTheTypeThatStoresThem) {
  MLIRContext context;
  for (const Entry &entry : kTable) {
    Type type = typeOf(&context, entry.dtype);
    bool isHalf = entry.dtype == SLUICE_DTYPE_f16 || entry.dtype == SLUICE_DTYPE_bf16;
    EXPECT_EQ(getAccumulator(type), isHalf ? Type(Float32Type::get(&context)) : type) << entry.ir;
  }
}

// Tests ties and overflows, and that rounding goes through f32: 1 + 2^-8 + 2^-40 is a tie there.
TEST(DTypes, HalvesRoundToNearestEven) {
  MLIRContext context;
  Type f16 = Float16Type::get(&context), bf16 = BFloat16Type::get(&context);
  EXPECT_EQ(roundTo(bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(roundTo(bf16, 1 + 0x1p-8 + 0x1p-40), 1);
  EXPECT_EQ(roundTo(bf16, 1 + 0x3p-8), 1 + 0x1p-6);
  EXPECT_EQ(roundTo(f16, 1 + 0x1p-11), 1);
  EXPECT_EQ(roundTo(f16, 65519), 65504);
  EXPECT_EQ(roundTo(f16, 65520), INFINITY);
  EXPECT_EQ(roundTo(f16, 0x1p-25), 0);
  EXPECT_TRUE(std::isnan(roundTo(f16, NAN)) && std::isnan(roundTo(bf16, NAN)));
}
