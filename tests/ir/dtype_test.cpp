// The table of element types as the IR has it: every entry, and nothing else, is a type of a tensor.
#include "ir/Layout.h"
#include "mlir/IR/MLIRContext.h"
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

// A float of two bytes is no i64, no u8 and no double, whatever asks.
TEST(DTypes, OthersAreNone) {
  MLIRContext context;
  Builder b(&context);
  for (Type type : {Type(b.getF16Type()), Type(b.getBF16Type()), Type(FloatType::getF80(&context)),
                    Type(b.getIndexType()), Type(b.getIntegerType(8)), Type(b.getIntegerType(8, /*isSigned=*/true)),
                    Type(b.getIntegerType(1, /*isSigned=*/false)), Type(b.getIntegerType(16)),
                    Type(b.getIntegerType(32, /*isSigned=*/false)), Type(b.getIntegerType(64, /*isSigned=*/true)),
                    Type(ComplexType::get(b.getF32Type()))})
    EXPECT_TRUE(failed(dtypeOf(type))) << print(type);
}

TEST(DTypes, SumsAreOfTheTypeThatStoresThem) {
  MLIRContext context;
  for (const Entry &entry : kTable)
    EXPECT_EQ(getAccumulator(typeOf(&context, entry.dtype)), typeOf(&context, entry.dtype)) << entry.ir;
}
