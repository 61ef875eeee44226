// Texts of single kernels, cut out of the PTX and the listing of a unit.
#include "backends/cuda/compiler/nvrtc/KernelTexts.h"
#include "tests/TemporaryFolder.h"
#include <gtest/gtest.h>

namespace sluice::cuda::test {

using sluice::test::contentOf;

namespace {

// As NVRTC 13 writes it, shortened. Inline assembly may have braces at the begin of a line.
constexpr const char *kPtx = R"(.version 9.0
.target sm_90
	// .globl	k0_relu
.extern .shared .align 16 .b8 s[];
.visible .entry k0_relu(
	.param .u64 k0_relu_param_0
)
{
	mov.b32 	{%rs1, %rs2}, %r1;
{ // begin inline asm
}
	first.ret;

}
.func  (.param .b32 func_retval0) _Z1ff(
)
{
	shared.ret;
}
	// .globl	k0_relu_pad
.visible .entry k0_relu_pad(
)
{
	second.ret;
}
	// .globl	k1_add
.visible .entry k1_add(
)
{
	third.ret;
}
)";

constexpr const char *kListing = R"(	.headerflags	@"EF_CUDA_SM90"
	.section	.text.k0_relu,"ax",@progbits
        /*0000*/  FIRST ;
	.section	.nv.info,"",@"SHT_CUDA_INFO"
        /*0000*/  OTHER ;
	.section	.text.k1_add,"ax",@progbits
        /*0000*/  SECOND ;
)";

} // namespace

TEST(KernelTexts, PtxHasTheFunctionsOfTheKernel) {
  std::string whole = kPtx, first = ptxOf(kPtx, {"k0_relu", "k0_relu_pad"});
  EXPECT_EQ(first, whole.substr(0, whole.find("\t// .globl\tk1_add"))) << "with the header and the shared functions";
}

TEST(KernelTexts, OtherFunctionsEndAtTheirLastBrace) {
  std::string third = ptxOf(kPtx, {"k1_add"});
  for (const char *part : {".target sm_90", ".extern .shared", "shared.ret", ".globl\tk1_add", "third.ret"})
    EXPECT_NE(third.find(part), std::string::npos) << part << "\n" << third;
  for (const char *part : {"k0_relu", "first.ret", "second.ret", "inline asm"})
    EXPECT_EQ(third.find(part), std::string::npos) << part << "\n" << third;
}

TEST(KernelTexts, CodeWithoutTheKernelHasNoPtx) {
  EXPECT_EQ(ptxOf(kPtx, {"k2_exp"}), "");
  EXPECT_EQ(ptxOf("no PTX", {"k0_relu"}), "");
}

TEST(KernelTexts, ListingsOfNvdisasmAreCut) {
  EXPECT_EQ(sassOf(kListing, {"k0_relu"}), "\t.section\t.text.k0_relu,\"ax\",@progbits\n        /*0000*/  FIRST ;\n");
  EXPECT_EQ(sassOf(kListing, {"k0_rel"}), "");
}

TEST(KernelTexts, ListingsOfCuobjdumpAreCut) {
  const char *listing = "\tcode for sm_90\n\t\tFunction : k0_relu\n\t.headerflags\t@\"x\"\n  FIRST ;\n\t\tFunction : "
                        "k1_add\n  SECOND ;\n";
  EXPECT_EQ(sassOf(listing, {"k1_add"}), "\t\tFunction : k1_add\n  SECOND ;\n");
}

TEST(KernelTexts, SaysWhereItCannotWrite) {
  sluice::test::TemporaryFolder folder;
  GridKernel kernel;
  kernel.text = "source";
  kernel.functions.push_back({"k0_relu", 12, 4, 64});
  KernelTexts texts(folder / "absent");
  texts.add("relu", kernel, "");
  EXPECT_NE(llvm::toString(texts.write({UnitText{}}, 16)).find("absent/relu.txt: "), std::string::npos);
  KernelTexts written(folder.path());
  written.add("relu", kernel, "library: some\n");
  EXPECT_EQ(llvm::toString(written.write({UnitText{kPtx, ""}}, 16)), "");
  EXPECT_TRUE(contentOf(folder / "relu.txt")
                  .starts_with("library: some\nfunction: k0_relu, 12 tasks per 4 rows of 64 threads\nsass: none ("));
  EXPECT_EQ(contentOf(folder / "relu.cu"), "source");
  EXPECT_EQ(contentOf(folder / "relu.ptx"), ptxOf(kPtx, {"k0_relu"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "relu.sass"));
}

} // namespace sluice::cuda::test
