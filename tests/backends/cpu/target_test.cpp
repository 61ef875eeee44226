// The meaning of target names, and that code only uses the instructions of its target.
#include "contraction_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Target target(const char *text) { return llvm::cantFail(Target::of(text)); }

struct Refusal {
  std::error_code code;
  std::string text;
};
Refusal refusal(const char *text) {
  llvm::Expected<Target> made = Target::of(text);
  if (made) {
    ADD_FAILURE() << text << " is accepted";
    return {};
  }
  Refusal refusal;
  llvm::handleAllErrors(made.takeError(), [&](const llvm::StringError &error) {
    refusal = {error.convertToErrorCode(), error.getMessage()};
  });
  return refusal;
}

TEST(Target, VectorsFollowTheInstructionSet) {
  for (const char *cpu : {"haswell", "znver3", "x86-64-v3", "alderlake"}) {
    EXPECT_EQ(target(cpu).vectorBits, 256) << cpu;
    EXPECT_EQ(target(cpu).numVectorRegisters, 16) << cpu;
    EXPECT_THAT(target(cpu).instructions, Not(Contains("avx512f"))) << cpu;
  }
  for (const char *cpu : {"skylake-avx512", "znver4", "x86-64-v4", "sapphirerapids"}) {
    EXPECT_EQ(target(cpu).vectorBits, 512) << cpu;
    EXPECT_EQ(target(cpu).numVectorRegisters, 32) << cpu;
    EXPECT_EQ(target(cpu).instructions, target("x86-64-v4").instructions) << cpu;
  }
  // AVX-512 without the extensions of Skylake is not enough for vectors of 512 bits.
  EXPECT_EQ(target("knl").vectorBits, 256);
  EXPECT_THAT(target("knl").instructions, Not(Contains("avx512f")));
}

TEST(Target, ANameSaysWhatSpeedDependsOn) {
  EXPECT_EQ(target("znver4").fmaPorts, 1);
  EXPECT_EQ(target("skylake-avx512").fmaPorts, 2);
  EXPECT_EQ(target("haswell").fmaLatency, 5);
  EXPECT_EQ(target("skylake").fmaLatency, 4);
  EXPECT_EQ(target("skylake").issueWidth, 4);
  EXPECT_EQ(target("znver3").issueWidth, 6);
  EXPECT_EQ(target("haswell").l2, 256 << 10);
  EXPECT_EQ(target("haswell:l1=48K,l2=2M").l1, 48 << 10);
  EXPECT_EQ(target("haswell:l1=48K,l2=2M").l2, 2 << 20);
  EXPECT_EQ(target("native:l2=2M").l1, Target::host().l1);
}

TEST(Target, WithoutAvx2AndFmaThereIsNoCode) {
  for (const char *cpu : {"nehalem", "x86-64", "x86-64-v2", "sandybridge", "btver2"}) {
    EXPECT_EQ(refusal(cpu).code, std::errc::not_supported) << cpu;
    EXPECT_THAT(refusal(cpu).text, HasSubstr(cpu));
    EXPECT_THAT(refusal(cpu).text, HasSubstr("is without avx2 and fma"));
  }
  EXPECT_THAT(refusal("bdver2").text, HasSubstr("is without avx2"));
}

TEST(Target, WhatMeansNothingIsRefused) {
  for (const char *text : {"haswel", "", ":", ":l1=32K", "haswell:", "haswell:l1", "haswell:l1=", "haswell:l1=32",
                           "haswell:l3=1M", "haswell:l1=0K", "haswell:l1=-1K", "haswell:l1=32K,", "haswell:l2=9999999M",
                           "haswell:l2=1K5K", "haswell,l1=32K", "Haswell"})
    EXPECT_EQ(refusal(text).code, std::errc::invalid_argument) << text;
}

// A product, with sums in many registers, masks at its tail and a call of exp.
std::string assemblyFor(const Target &target) {
  std::string assembly;
  mlir::MLIRContext context;
  auto loc = mlir::UnknownLoc::get(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  Matmul op;
  op.element = mlir::Float32Type::get(&context);
  op.m = 61, op.n = 91, op.k = 33;
  op.a.strideI = op.k, op.b.strideI = op.n, op.c.strideI = op.n;
  op.a.place.buffer = 0, op.b.place.buffer = 1, op.c.place.buffer = 2, op.workspace.buffer = 3;
  emitMatmul(*module, "product", loc, op, target);
  CodegenOptions options;
  options.assembly = &assembly;
  llvm::cantFail(compileToObject(*module, target, options).takeError());
  return assembly;
}

TEST(Target, CodeKeepsToItsRegisters) {
  for (const char *cpu : {"haswell", "x86-64-v3", "znver3"}) {
    std::string assembly = assemblyFor(target(cpu));
    EXPECT_THAT(assembly, HasSubstr("vfmadd")) << cpu;
    EXPECT_THAT(assembly, HasSubstr("%ymm")) << cpu;
    EXPECT_THAT(assembly, Not(AnyOf(HasSubstr("%zmm"), HasSubstr("%k1"), HasSubstr("%ymm16")))) << cpu;
  }
  EXPECT_THAT(assemblyFor(target("skylake-avx512")), HasSubstr("%zmm31"));
}

// Tests that results beyond the second-level cache are prefetched before the sums are computed. The operands fit in the
// first-level cache.
TEST(Target, FarResultsArePrefetched) {
  EXPECT_THAT(assemblyFor(target("haswell:l1=64K,l2=16K")), HasSubstr("prefetch"));
  EXPECT_THAT(assemblyFor(target("haswell:l1=64K,l2=32K")), Not(HasSubstr("prefetch")));
}

} // namespace
} // namespace sluice::cpu::testing
