// Malformed module files of every known kind: each is rejected with its location, without a crash or hang.
#include "ir/text/ParseGuard.h"

#include "ir/Dialect.h"
#include "tests/TemporaryFolder.h"
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::ir;

namespace {

std::string repeat(const std::string &text, size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i)
    result += text;
  return result;
}

/// The error in `text`; empty if none.
std::string problem(const std::string &text) {
  mlir::MLIRContext context;
  auto module = parseModuleText(text, "m.mlir", context);
  return module ? "" : llvm::toString(module.takeError());
}

/// The same from the scan alone, which protects the parser's stack.
std::string scanProblem(const std::string &text) { return llvm::toString(checkModuleText(text, "m.mlir")); }

struct BadModule {
  const char *name;
  std::string text;
  std::string message; // prefix of the error
};

/// Names a case for GoogleTest.
void PrintTo(const BadModule &module, std::ostream *out) { *out << module.name; }

class BadModuleTest : public testing::TestWithParam<BadModule> {};

} // namespace

TEST_P(BadModuleTest, IsRefusedWithItsPlace) {
  std::string message = problem(GetParam().text);
  EXPECT_EQ(message.substr(0, GetParam().message.size()), GetParam().message);
}

static const std::string kUse = "sluice.relu %a : (tensor<3xf32>) -> tensor<3xf32>\n";
static const std::string kGraph = "sluice.graph [\"x\"] (%x: tensor<3xf32>) {\n";

static const BadModule kBadModules[] = {
    {"empty_brackets", "}", "m.mlir:1:1: error: "},
    {"not_mlir",
     "\x7f"
     "ELF and more",
     "m.mlir:1:1: error: "},
    {"nul_byte", std::string("module {\n  \0}", 13), "m.mlir:2:3: error: a NUL byte: not a text file"},
    {"bytecode", "ML\xefR\x06", "m.mlir:1:1: error: is MLIR bytecode"},
    {"open_string", "module attributes {a = \"x", "m.mlir:1:24: error: this string has no end"},
    {"open_region", "module {\n", "m.mlir:1:9: error: "},
    {"deep_regions", repeat("module {\n", 3000) + repeat("}", 3000), "m.mlir:257:8: error: nested more than 256 deep"},
    {"deep_arrays", "module attributes {a = " + repeat("[", 100000) + repeat("]", 100000) + "} {}",
     "m.mlir:1:279: error: nested more than 256 deep"},
    {"deep_types", "module attributes {a = " + repeat("tuple<", 100000) + repeat(">", 100000) + "} {}",
     "m.mlir:1:1559: error: nested more than 256 deep"},
    {"deep_after_arrow", "module attributes {a = " + repeat("() -> (", 5000) + "}", "m.mlir:1:"},
    {"brackets_hidden_by_comparison",
     "module attributes {a = affine_set<(d0) : (" + repeat("(", 9000) + "d0 >= 0)>} {}", "m.mlir:1:"},
    {"long_negation", "module attributes {a = affine_map<(d0) -> (" + repeat("-", 100000) + "d0)>} {}",
     "m.mlir:1:1068: error: an expression of more than 1024 operators"},
    {"long_sum", "module attributes {a = affine_map<(d0) -> (d0" + repeat(" + d0", 100000) + ")>} {}",
     "m.mlir:1:5167: error: an expression of more than 1024 operators"},
    {"long_modulo", "module attributes {a = affine_map<(d0) -> (d0" + repeat(" mod 2", 100000) + ")>} {}",
     "m.mlir:1:6194: error: an expression of more than 1024 operators"},
    {"long_number", "module attributes {a = " + repeat("9", 1000000) + "} {}",
     "m.mlir:1:24: error: a number of 1000000 characters"},
    {"huge_dimension", "module attributes {a = tensor<9223372036854775808xf32>} {}",
     "m.mlir:1:31: error: a dimension of 9223372036854775808 elements does not fit in 63 bits"},
    {"huge_product", "module attributes {a = tensor<4294967296 x 4294967296x?xf32>} {}",
     "m.mlir:1:31: error: a type of too many elements to address"},
    {"huge_beside_zero", "module attributes {a = tensor<0x4294967296x4294967296xf32>} {}",
     "m.mlir:1:31: error: a type of too many elements to address"},
    {"huge_vector", "module attributes {a = vector<[4294967296]x4294967296xf32>} {}",
     "m.mlir:1:31: error: a type of too many elements to address"},
    {"huge_rank", "module attributes {a = tensor<" + repeat("1x", 100) + "f32>} {}",
     "m.mlir:1:31: error: a type of more than 64 dimensions"},
    {"huge_with_capacity",
     "module {\n  sluice.model \"m\" format 2 phase \"model\" capacity 1048576\n"
     "  sluice.graph [\"x\"] {\n  ^bb0(%x: tensor<?x1099511627776xf32>):\n  }\n}",
     "m.mlir:"},
    {"capacity_not_a_number", "module { sluice.model \"m\" format 2 phase \"model\" capacity many }", "m.mlir:1:"},
    {"capacity_negative", "module { sluice.model \"m\" format 2 phase \"model\" capacity -1 }",
     "m.mlir:1:10: error: 'sluice.model' op capacity must be a number of rows from 0 to 2147483647, but is -1"},
    {"capacity_too_wide", "module { sluice.model \"m\" format 2 phase \"model\" capacity 99999999999999999999 }",
     "m.mlir:1:"},
    {"wire_of_halves", "module { sluice.model \"m\" format 2 phase \"model\" replicas 2 wire f16 }",
     "m.mlir:1:10: error: 'sluice.model' op wire must be f32 or bf16"},
    {"another_format", "module { sluice.model \"m\" format 7 phase \"model\" }",
     "m.mlir:1:10: error: the text is of format 7; this Sluice reads and writes format 2"},
    {"generic_form_of_another_format",
     "\"builtin.module\"() ({ \"sluice.model\"() <{format = 3 : i64, name = \"m\", phase = \"model\"}> : () -> () }) : "
     "() -> ()",
     "m.mlir:1:24: error: the text is of format 3; this Sluice reads and writes format 2"},
    {"before_formats", "module attributes {sluice.capacity = 4 : i64} {}",
     "m.mlir:1:20: error: the text is of a time before format 1, by its 'sluice.capacity'; this Sluice reads"},
    {"two_models",
     "module {\n  sluice.model \"m\" format 2 phase \"model\"\n  sluice.model \"m\" format 2 phase \"model\"\n}",
     "m.mlir:2:3: error: 'sluice.model' op is one of two in a module"},
    {"unknown_dialect", "module {\n  \"torch.conv\"() : () -> ()\n}", "m.mlir:2:15: error: "},
    {"unknown_op", "module {\n  sluice.no_such_op\n}", "m.mlir:2:3: error: "},
    {"self_reference", "module {\n  %0 = \"sluice.neg\"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n}",
     "m.mlir:2:8: error: 'sluice.neg' op uses a value before it is defined"},
    {"reference_cycle",
     "module {\n  %0 = \"sluice.neg\"(%1) : (tensor<2xf32>) -> tensor<2xf32>\n"
     "  %1 = \"sluice.neg\"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n}",
     "m.mlir:2:21: error: '%1' is used before it is defined"},
    {"use_above_a_region_cut_short", kUse + kGraph + "  %a = sluice.relu %x : (tensor<3xf32>) -> tensor<3xf32>\n",
     "m.mlir:1:13: error: '%a' is used before it is defined"},
    {"use_beside_a_region_cut_short", "\"sluice.graph\"() ({ " + kUse + "}, { %a = sluice.relu %b : (tensor<3xf32>)",
     "m.mlir:1:33: error: '%a' is used"},
    {"use_above_the_arguments_of_a_block", kUse + "\"sluice.graph\"() ({ ^bb0(%a: tensor<3xf32>):\n",
     "m.mlir:1:13: error: '%a'"},
    {"use_after_the_region_of_its_definition",
     kGraph + "  %a = sluice.relu %x : (tensor<3xf32>) -> tensor<3xf32>\n}\n" + kUse + kGraph +
         "  %a = sluice.relu %x :",
     "m.mlir:4:13: error: '%a' is used before it is defined"},
    {"result_defined_again_in_its_region",
     "%a = sluice.kernel \"k\" () -> tensor<3xf32> {\n" + kUse + "sluice.kernel \"j\" () {\n  %a = sluice.relu",
     "m.mlir:4:3: error: '%a' is used before it is defined here"},
    {"operand_defined_in_the_kernel",
     "sluice.kernel \"k\" (%b = %a : tensor<3xf32>) -> tensor<3xf32> {\n"
     "  %a = sluice.relu %b : (tensor<3xf32>) -> tensor<3xf32>\n  sluice.yield %a : tensor<3xf32>\n}\n",
     "m.mlir:1:25: error: '%a' is used before it is defined"},
    {"arguments_of_no_region", "sluice.graph [] (%a: tensor<3xf32>) attributes {a} {\n}\n" + kUse,
     "m.mlir:3:13: error: '%a'"},
    {"result_without_number", "%a = sluice.relu %a#4294967295 : (tensor<3xf32>) -> tensor<3xf32>",
     "m.mlir:1:18: error: result number 4294967295; an op has fewer than 65536"},
    {"sparse_elements", "module attributes {a = sparse<0, 1> : tensor<2xf32>} {}",
     "m.mlir:1:24: error: 'sparse' elements are not supported; write all elements as dense<...>"},
    {"sparse_constant",
     "module {\n  %0 = sluice.constant {value = sparse<0,1> : tensor<10xf32>} : () -> tensor<10xf32>\n}",
     "m.mlir:2:33: error: 'sparse' elements are not supported"},
    {"elements_of_a_resource", "module attributes {a = dense_resource<b> : tensor<2xf32>} {}",
     "m.mlir:1:24: error: 'dense_resource' elements are not supported"},
    {"resources", "module {}\n{-# dialect_resources: {builtin: {b: \"0x03000000\"}} #-}",
     "m.mlir:2:1: error: resources are not supported"},
    {"cut_short", "module {\n  sluice.state parameter @w : tensor<2x", "m.mlir:2:"},
};

INSTANTIATE_TEST_SUITE_P(ParseGuard, BadModuleTest, testing::ValuesIn(kBadModules),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(ParseGuard, DepthIsCountedThroughAliases) {
  std::string text = "#a0 = [1]\n";
  for (int i = 1; i < 100000; ++i)
    text += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + "]\n";

  EXPECT_EQ(scanProblem(text), "m.mlir:129:10: error: nested more than 256 deep through the alias '#a127'");
}

TEST(ParseGuard, AliasesAreReadAsTheParserDoes) {
  for (std::string sigil : {"#a-", "#", "#$", "!a-"}) {
    std::string text = sigil + "0 = [1]\n";
    for (int i = 1; i < 200; ++i)
      text += sigil + std::to_string(i) + " = [" + sigil + std::to_string(i - 1) + "]\n";

    EXPECT_THAT(scanProblem(text), testing::HasSubstr("deep through the alias '" + sigil + "127'"));
  }
}

TEST(ParseGuard, NamesAreKnownInTheirRegion) {
  std::string relu = " = sluice.relu %x : (tensor<3xf32>) -> tensor<3xf32>\n";
  std::string kernel = "%k, %k2 = sluice.kernel \"k\" (%x2 = %x : tensor<3xf32>, %b = %x : tensor<3xf32>) -> "
                       "(tensor<3xf32>, tensor<3xf32>) attributes {sluice.pin = \"cpu\"} {\n"
                       "  sluice.yield %x2, %b : tensor<3xf32>, tensor<3xf32>\n}\n";
  std::string uses = "%sum = sluice.add %k, %k2 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n";

  EXPECT_EQ(scanProblem(kGraph + "%a" + relu + kUse + kernel + uses + "}\n" + kGraph + "%a" + relu + "}"), "");
  EXPECT_EQ(scanProblem("\"op\"() ({\n^bb0(%x: tensor<3xf32>, %y: i1):\n%a:2" + relu + "\"op\"(%a#1, %y, %x)\n})"), "");
}

TEST(ParseGuard, DepthOfAModuleIsNotTakenForItsAliases) {
  std::string body = repeat("  \"x\"() {a = [[#dev]]} : () -> ()\n", 1000);

  EXPECT_EQ(scanProblem("#dev = 1 : i32\nmodule {\n" + body + "}"), "");
}

TEST(ParseGuard, TextInStringsAndCommentsIsNotCounted) {
  std::string many = repeat("[({<", 1000);

  EXPECT_EQ(problem("// " + many + "\nmodule attributes {builtin.a = \"" + many +
                    " \\\" tensor<99999999999999999999x>\"} {}"),
            "");
}

TEST(ParseGuard, ComparisonsAndArrowsAreNotBrackets) {
  std::string maps;
  for (int i = 0; i < 400; ++i)
    maps += "#s" + std::to_string(i) + " = affine_set<(d0) : (d0 >= 0, 8 - d0 >= 0)>\n#m" + std::to_string(i) +
            " = affine_map<(d0) -> (d0 floordiv 8)>\n";

  EXPECT_EQ(problem(maps + "module attributes {builtin.a = #s399, builtin.b = #m399} {}"), "");
}

TEST(ParseGuard, NestingUpToTheLimitParses) { EXPECT_EQ(problem(repeat("module {", 256) + repeat("}", 256)), ""); }

TEST(ParseGuard, AFileThatIsNotThereIsNamed) {
  mlir::MLIRContext context;
  auto module = parseModuleFile("no/such.mlir", context);

  ASSERT_FALSE(static_cast<bool>(module));
  EXPECT_EQ(llvm::toString(module.takeError()), "no/such.mlir: cannot open: No such file or directory");
}

TEST(ParseGuard, AFolderIsNotAModel) {
  mlir::MLIRContext context;
  auto module = parseModuleFile("/", context);

  ASSERT_FALSE(static_cast<bool>(module));
  EXPECT_EQ(llvm::toString(module.takeError()), "/: cannot read: Is a directory");
}

TEST(ParseGuard, AFileTooLargeIsNotRead) {
  sluice::test::TemporaryFolder folder;
  std::string path = folder / "large.mlir";
  std::ofstream(path).seekp(static_cast<std::streamoff>(kMaxModelBytes)).write("}}", 2); // sparse
  mlir::MLIRContext context;
  auto module = parseModuleFile(path, context);

  ASSERT_FALSE(static_cast<bool>(module));
  EXPECT_EQ(llvm::toString(module.takeError()), path + ": has 1073741826 bytes; at most 1073741824 are read");
}
