// npy and safetensors files: round trips, and errors that name every invalid header field.
#include "FileContents.h"
#include "runtime/base/Status.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace sluice;
using namespace sluice::runtime;

using namespace sluice::test;

namespace {

class BadNpyTest : public testing::TestWithParam<BadFile> {};
class BadSafetensorsTest : public testing::TestWithParam<BadFile> {};

} // namespace

// npy

TEST(Npy, RoundTripsEveryType) {
  test::TemporaryFolder folder;
  for (DType type : allDTypes()) {
    HostTensor tensor{type, {2, 3}, Bytes(6 * sizeOf(type), std::byte(1))};
    writeNpy(folder / "x.npy", tensor);
    HostTensor back = readNpy(folder / "x.npy");
    EXPECT_EQ(back.dtype, type);
    EXPECT_EQ(back.shape, tensor.shape);
    EXPECT_EQ(back.data, tensor.data);
  }
}

TEST(Npy, RoundTripsScalarsVectorsAndEmptyTensors) {
  test::TemporaryFolder folder;
  for (const Shape &shape : {Shape{}, Shape{5}, Shape{0, 4}, Shape{1, 2, 3, 4, 5}}) {
    HostTensor tensor{DType::u8, shape, Bytes(static_cast<size_t>(elementsOf(shape)), std::byte(3))};
    writeNpy(folder / "x.npy", tensor);
    EXPECT_EQ(test::contentOf(folder / "x.npy").find('\n') % 64, 63u);
    EXPECT_EQ(readNpy(folder / "x.npy").shape, shape);
  }
}

TEST(Npy, ReadsWhatNumPyWrites) {
  std::string content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }  \n",
                            littleEndian(0x3f800000, 4) + littleEndian(0, 4), 2);
  HostTensor tensor = parseNpy(bytesOf(content), "x.npy");
  EXPECT_EQ(tensor.shape, Shape{2});
  EXPECT_EQ(elementAsDouble(tensor.dtype, tensor.data.data(), 0), 1.0);
}

// numpy writes arrays of ml_dtypes.bfloat16 in this format; without ml_dtypes it reads untyped bytes.
TEST(Npy, BytesWithoutAMeaningAreBf16) {
  for (const char *descr : {"<V2", "|V2"}) {
    std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,), }";
    HostTensor tensor = parseNpy(bytesOf(npy(header, littleEndian(0x3fc0, 2))), "x.npy");
    EXPECT_EQ(tensor.dtype, DType::bf16);
    EXPECT_EQ(elementAsDouble(tensor.dtype, tensor.data.data(), 0), 1.5);
  }
}

TEST_P(BadNpyTest, IsRefused) {
  expectInvalid(guarded([&] { parseNpy(bytesOf(GetParam().content), "x.npy"); }), GetParam().message);
}

static const std::string four(4, '\0');

static const BadFile badNpy[] = {
    {"Empty", "", "x.npy: not an npy file"},
    {"OtherMagic", "PK\x03\x04 and more text", "not an npy file"},
    {"Version", npy("{}", "", 9), "version 9"},
    {"HeaderBeyondTheEnd", std::string("\x93NUMPY\x01\0", 8) + "\xff\xff" + "{}", "claims 65535 bytes"},
    {"NoDictionary", npy("[1, 2]", ""), "expected '{'"},
    {"NotClosed", npy("{'descr': '<f4'", ""), "expected ',' or '}'"},
    {"StringNotClosed", npy("{'descr: 1", ""), "not closed"},
    {"MissingShape", npy("{'descr': '<f4', 'fortran_order': False}", four),
     "needs 'descr', 'fortran_order' and 'shape'"},
    {"TwiceTheKey", npy("{'descr': '<f4', 'descr': '<f4'}", four), "repeated key 'descr'"},
    {"UnknownKey", npy("{'colour': 'red'}", four), "key 'colour'"},
    {"BigEndian", npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", four), "big-endian"},
    {"LongFloats", npy("{'descr': '<f16', 'fortran_order': False, 'shape': ()}", four), "'<f16' is not supported"},
    {"FourBytes", npy("{'descr': '|V4', 'fortran_order': False, 'shape': ()}", four), "'|V4' is not supported"},
    {"Structured", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four), "structured"},
    {"FortranOrder", npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", four), "Fortran order"},
    {"NegativeSize", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", four), "not a whole number"},
    {"HugeSize", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", four), "too large"},
    {"OverflowingShape", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", four),
     "too large"},
    {"TooFewBytes", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", four), "needs 8 bytes, but 4"},
    {"TooManyBytes", npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", four + four), "needs 4 bytes, but 8"},
    {"ManyDims",
     npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
         "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
         four),
     "more than 32"},
    {"DamagedBool", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\x02"), "neither 0 nor 1"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadNpyTest, testing::ValuesIn(badNpy), nameOfCase);

// safetensors

TEST(SafetensorsFile, RoundTrips) {
  test::TemporaryFolder folder;
  std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> count = {7};
  std::string flags = "\x01";
  writeSafetensors(folder / "w.safetensors",
                   {{"fc.weight", DType::f32, {2, 3}, std::as_bytes(std::span(weight))},
                    {"flags", DType::boolean, {1}, bytesOf(flags)},
                    {"count", DType::i64, {}, std::as_bytes(std::span(count))}},
                   {{"format", "pt"}});
  Safetensors file = readSafetensors(folder / "w.safetensors");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.find("fc.weight")->shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(file.find("fc.weight")->data.data(), weight.data(), 24), 0);
  EXPECT_EQ(elementAsDouble(DType::i64, file.find("count")->data.data(), 0), 7);
  EXPECT_EQ(file.find("fc.bias"), nullptr);
}

TEST(SafetensorsFile, ReadsEmptyTensorsAndPadding) {
  Safetensors file(ownBytes(safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]}}   ", "")),
                   "x");
  EXPECT_EQ(file.find("a")->shape, (Shape{0, 3}));
}

TEST_P(BadSafetensorsTest, IsRefused) {
  expectInvalid(guarded([&] { Safetensors(ownBytes(GetParam().content), "w.safetensors"); }), GetParam().message);
}

static std::string tensorHeader(const std::string &fields) { return "{\"a\":{" + fields + "}}"; }
static const std::string good = "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]";

static const BadFile badSafetensors[] = {
    {"Empty", "", "it has 0 bytes"},
    {"Short", "abc", "it has 3 bytes"},
    {"HugeHeader", littleEndian(UINT64_MAX, 8) + "{}", "more than the limit"},
    {"HeaderBeyondTheEnd", littleEndian(50, 8) + "{}", "claims 50 bytes, the file has 10"},
    {"NotJson", safetensors("{\"a\":", ""), "damaged safetensors header"},
    {"NotAnObject", safetensors("[1]", ""), "does not begin with '{'"},
    {"TrailingText", safetensors("{} x", ""), "damaged safetensors header"},
    {"DeepNesting", safetensors("{\"a\":" + std::string(100'000, '['), ""), "unexpected a list"},
    {"SameTensorTwice",
     safetensors("{\"a\":{" + good + "},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", four + four),
     "'a' appears twice"},
    {"SameKeyTwice", safetensors(tensorHeader("\"dtype\":\"F32\"," + good), four), "repeated key 'dtype'"},
    {"MetadataTwice", safetensors("{\"__metadata__\":{},\"__metadata__\":{}}", ""), "appears twice"},
    {"MetadataNumber", safetensors("{\"__metadata__\":{\"a\":1}}", ""), "unexpected a number"},
    {"MissingOffsets", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[1]"), four), "lacks one of"},
    {"OneOffset", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), four),
     "1 data offsets"},
    {"UnknownType", safetensors(tensorHeader("\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,4]"), four), "'F4'"},
    {"NegativeSize", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), four),
     "negative number"},
    {"FractionalSize", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]"), four),
     "fraction"},
    {"HugeSize",
     safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[18446744073709551615],\"data_offsets\":[0,4]"), four),
     "too large"},
    {"OverflowingShape",
     safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), four),
     "too large"},
    {"WrongSize", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), four),
     "needs 8 bytes, its range has 4"},
    {"BeyondTheEnd", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"), four),
     "the file has 4 bytes"},
    {"BackwardsRange", safetensors(tensorHeader("\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,0]"), four),
     "[4, 0)"},
    {"Overlap", safetensors("{\"a\":{" + good + "},\"b\":{" + good + "}}", four), "an overlap"},
    {"Hole", safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", four + four), "a hole"},
    {"TrailingData", safetensors(tensorHeader(good), four + four), "end at 4, but the file has 8"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadSafetensorsTest, testing::ValuesIn(badSafetensors), nameOfCase);

// Changing any byte of a valid file must not crash the reader.
TEST(SafetensorsFile, SurvivesDamageAnywhere) {
  std::string content = safetensors("{\"__metadata__\":{\"k\":\"v\"},\"a\":{" + good +
                                        "},\"b\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[4,6]}}",
                                    four + "xy");
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = content;
    for (uint32_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0)
      damaged.resize(random() % damaged.size());
    Status status = guarded([&] { Safetensors(ownBytes(damaged), "x"); });
    ASSERT_TRUE(status.ok() || status.code == ExitCode::invalid) << status.message;
  }
}

TEST(Npy, SurvivesDamageAnywhere) {
  std::string content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", four + four);
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = content;
    for (uint32_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0)
      damaged.resize(random() % damaged.size());
    Status status = guarded([&] { parseNpy(bytesOf(damaged), "x"); });
    ASSERT_TRUE(status.ok() || status.code == ExitCode::invalid) << status.message;
  }
}

// Files

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  test::TemporaryFolder folder;
  folder.write("x", "old");
  {
    AtomicFile file(folder / "x");
    file.write("new");
    EXPECT_EQ(test::contentOf(folder / "x"), "old");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
  AtomicFile file(folder / "x");
  file.write("new");
  file.commit();
  EXPECT_EQ(test::contentOf(folder / "x"), "new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"x"});
}

TEST(AtomicFile, KeepsASymbolicLink) {
  test::TemporaryFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  AtomicFile file(folder / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(test::contentOf(folder / "target"), "new");
}

TEST(AtomicFile, FailuresNameTheFile) {
  test::TemporaryFolder folder;
  expectInvalid(guarded([&] { AtomicFile(folder / "none/x"); }), "none/x: cannot create: No such file");
  expectInvalid(guarded([&] { AtomicFile(folder.path()); }), "cannot write: Is a directory");
  expectInvalid(guarded([&] { AtomicFile("/dev/full").write("x"); }), "/dev/full: cannot write: No space left");
  expectInvalid(guarded([&] { readFile(folder.path()); }), "cannot read: Is a directory");
  expectInvalid(guarded([&] { readFile("/dev/zero"); }), "not a regular file");
  expectInvalid(guarded([&] { readFile(folder / "none"); }), "No such file or directory");
}
