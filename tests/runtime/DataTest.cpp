// Data files and folders: rows are read individually, and every invalid field is an error with file, column and row.
#include "FileContents.h"
#include "runtime/base/Text.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/OpenData.h"
#include "runtime/data/images/Idx.h"
#include "tests/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sys/stat.h>

using namespace sluice;
using namespace sluice::runtime;
using namespace sluice::test;

namespace {

std::string textOf(const Bytes &bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

std::string rowOf(const Column &column, int64_t row) {
  Bytes bytes(static_cast<size_t>(column.header().rowBytes()));
  column.read(row, bytes);
  return textOf(bytes);
}

/// All rows of a loaded column.
std::string contentOf(Column &column) {
  column.load();
  std::string content;
  for (int64_t row = 0; row < column.header().rows; ++row)
    content += rowOf(column, row);
  return content;
}

std::string contentOf(const Table &table, const std::string &column) { return contentOf(*table.open(column)); }

std::vector<std::string> namesOf(const Table &table) {
  std::vector<std::string> names;
  for (const Table::Source &source : table.columns)
    names.push_back(source.name);
  return names;
}

/// Opens all columns of a path and reads them to the end.
void readAll(const std::string &path) {
  DataPath data(path);
  std::vector<std::optional<Table>> tables;
  if (data.hasParts())
    tables = {data.part(DataPart::train), data.part(DataPart::test)};
  else
    tables.emplace_back(data.whole());
  for (const std::optional<Table> &table : tables)
    for (const Table::Source &source : table ? table->columns : std::vector<Table::Source>())
      contentOf(*source.open({}));
}

void expectRefused(const std::string &path, const std::string &message) {
  expectInvalid(guarded([&] { readAll(path); }), message);
}

class BadIdxTest : public testing::TestWithParam<BadFile> {};
class BadNpzTest : public testing::TestWithParam<BadFile> {};
class BadDataNpyTest : public testing::TestWithParam<BadFile> {};

const std::string floats = npyOf("<f4", "(2, 1)", std::string("\0\0\x80\x3f\0\0\0\x40", 8)), // 1 and 2
    bytes = npyOf("|u1", "(2, 3)", "abcdef");

} // namespace

// IDX

TEST(Idx, ReadsPlainAndGzipped) {
  TemporaryFolder folder;
  std::string content = idx({2, 1, 2}, "abcd");
  auto plain = openIdx(folder.write("x", content), "image", 3),
       packed = openIdx(folder.write("x.gz", gzipped(content)), "image", 3);
  EXPECT_EQ(plain->header().shape, (Shape{1, 2}));
  EXPECT_EQ(plain->header().rows, 2);
  EXPECT_EQ(contentOf(*plain), "abcd");
  EXPECT_EQ(contentOf(*packed), "abcd");
}

TEST(Idx, ReadsTheShippedImages) {
  DataPath data(SLUICE_MNIST);
  Dataset train(*data.part(DataPart::train), {{"image", {}}, {"label", {}}}),
      test(*data.part(DataPart::test), {{"label", {}}, {"image", {}}});
  EXPECT_EQ(train.rows(), 8000);
  EXPECT_EQ(test.rows(), 2000);
  EXPECT_EQ(train.column(0).header().shape, (Shape{28, 28}));
  EXPECT_EQ(test.column(0).header().shape, Shape{});
}

TEST(Idx, FolderWithoutImages) {
  TemporaryFolder folder;
  expectRefused(folder.path(), "has no data; supported: IDX files, as MNIST's");
  expectRefused(folder / "none", "No such file or directory");
  expectRefused(folder.write("file", "x"), "is neither an .npy, .npz, .bin nor .txt file");
}

TEST(Idx, CountsThatDiffer) {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", idx({2, 1, 2}, "abcd"));
  folder.write("train-labels-idx1-ubyte", idx({3}, "abc"));
  Table table = *DataPath(folder.path()).part(DataPart::train);
  expectInvalid(guarded([&] { Dataset(table, {{"image", {}}, {"label", {}}}); }),
                "train-labels-idx1-ubyte: column 'label' has 3 rows, but " + folder.path() +
                    "/train-images-idx3-ubyte: column 'image' has 2");
}

/// Two megabytes may unpack to two gigabytes. Nothing is unpacked before the headers match and the column is requested.
TEST(Idx, NothingIsUnpackedThatIsNotWanted) {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte.gz", gzipped(idx({20, 28, 28}, std::string(100, 'x')))); // fewer bytes than in
                                                                                                 // the header
  folder.write("train-labels-idx1-ubyte", idx({20}, std::string(20, '\0')));
  Dataset data(*DataPath(folder.path()).part(DataPart::train), {{"image", {}}, {"label", {}}});
  EXPECT_EQ(data.column(0).header().shape, (Shape{28, 28}));
  expectInvalid(guarded([&] { data.load(); }), "15680 bytes, but 100 are there");
}

TEST(Idx, APlainFileGoesBeforeAGzippedOne) {
  TemporaryFolder folder;
  folder.write("train-labels-idx1-ubyte", idx({2}, "ab"));
  folder.write("train-labels-idx1-ubyte.gz", gzipped(idx({2}, "cd")));
  Table table = *DataPath(folder.path()).part(DataPart::train);
  EXPECT_EQ(namesOf(table), std::vector<std::string>{"label"});
  EXPECT_EQ(contentOf(table, "label"), "ab");
}

TEST(Idx, MoreThanGzipCouldHold) {
  TemporaryFolder folder;
  std::string path = folder.write("x.gz", gzipped(idx({60000, 28, 28}, "")));
  expectInvalid(guarded([&] { openIdx(path, "image", 3); }), "47040000 bytes, but at most");
}

TEST(Idx, NoImagesAtAll) {
  TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", idx({0, 28, 28}, ""));
  Table table = *DataPath(folder.path()).part(DataPart::train);
  expectInvalid(guarded([&] { Dataset(table, {{"image", {}}}); }), "column 'image' has no rows");
}

TEST_P(BadIdxTest, IsRefused) {
  TemporaryFolder folder;
  std::string name = std::string(GetParam().name).starts_with("Gz") ? "x.gz" : "x";
  std::string path = folder.write(name, GetParam().content);
  expectInvalid(guarded([&] { contentOf(*openIdx(path, "image", 3)); }), GetParam().message);
}

static const std::string wholeGz =
    gzipped(idx({1, 8, 8}, "0123456789012345678901234567890123456789012345678901234567890123"));

static const BadFile badIdx[] = {
    {"Empty", "", "0 bytes, but the header alone has 16"},
    {"ShortHeader", bigEndian({0x803, 1}), "8 bytes, but the header alone has 16"},
    {"OtherMagic", "PNG image, surely", "not an IDX file"},
    {"Floats", bigEndian({0xd03, 1, 1, 1}) + "x", "not an IDX file of bytes"},
    {"OtherRank", bigEndian({0x801, 4}) + "abcdefghijkl", "has 1 dimensions, expected 3"},
    {"Truncated", idx({2, 2, 2}, "abc"), "8 bytes, but 3 are there"},
    {"TooLong", idx({1, 1, 2}, "abc"), "more than the 2 bytes"},
    {"HugeCounts", idx({0xffffffff, 0xffffffff, 0xffffffff}, "abc"), "more than the limit"},
    {"LargeLie", idx({0x10000, 0x400, 0x400}, "abc"), "but 3 are there"},
    {"GzNotGzip", idx({1, 1, 1}, "a"), "not gzip data"},
    {"GzTruncated", wholeGz.substr(0, wholeGz.size() - 12), "truncated"},
    {"GzDamaged", wholeGz.substr(0, 12) + "\xff\xff\xff" + wholeGz.substr(15), "x.gz"},
    {"GzBomb", gzipped(idx({1, 1, 1}, std::string(1 << 20, '\0'))), "more than the 1 bytes"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadIdxTest, testing::ValuesIn(badIdx), nameOfCase);

// npy and npz

TEST(Npz, ReadsStoredDeflatedAndLargeMembers) {
  for (bool isLarge : {false, true}) {
    TemporaryFolder folder;
    std::string path =
        folder.write("d.npz", zip({{.name = "x.npy", .content = floats, .isLarge = isLarge},
                                   {.name = "readme.txt", .content = "not a column"},
                                   {.name = "a/b.npy", .content = bytes, .isDeflated = true, .isLarge = isLarge}},
                                  "a comment"));
    DataPath data(path);
    EXPECT_FALSE(data.hasParts());
    Table table = data.whole();
    EXPECT_EQ(namesOf(table), (std::vector<std::string>{"x", "a/b"}));
    EXPECT_EQ(table.open("x")->header().dtype, DType::f32);
    EXPECT_EQ(table.open("x")->header().shape, Shape{1});
    EXPECT_EQ(contentOf(table, "x"), floats.substr(floats.size() - 8));
    EXPECT_EQ(contentOf(table, "a/b"), "abcdef");
  }
}

TEST(Npz, AFileOfEveryTypeAndRank) {
  TemporaryFolder folder;
  for (const char *descr : {"<f4", "<f8", "<i4", "<i8", "|u1", "|b1"})
    for (const char *shape : {"(2,)", "(2, 1)", "(2, 1, 1, 1, 1)"}) {
      std::string data(2 * static_cast<size_t>(descr[2] - '0'), '\1');
      std::string path = folder.write("x.npy", npyOf(descr, shape, data));
      EXPECT_EQ(contentOf(DataPath(path).whole(), "x"), data) << descr << shape;
    }
}

TEST(Npz, WhatIsNotWantedMayBeOfAnyKind) {
  TemporaryFolder folder;
  std::string path =
      folder.write("d.npz", zip({{.name = "x.npy", .content = bytes},
                                 {.name = "names.npy", .content = npyOf("<U3", "(2,)", std::string(24, '\0'))},
                                 {.name = "n.npy", .content = npyOf("<i8", "()", std::string(8, '\0'))}}));
  EXPECT_EQ(Dataset(DataPath(path).whole(), {{"x", {}}}).rows(), 2);
  expectInvalid(guarded([&] { Dataset(DataPath(path).whole(), {{"names", {}}}); }), "'names.npy': element type '<U3'");
  expectInvalid(guarded([&] { Dataset(DataPath(path).whole(), {{"n", {}}}); }),
                "column 'n' is one number and has no rows");
  expectInvalid(guarded([&] { Dataset(DataPath(path).whole(), {{"y", {}}}); }),
                "d.npz: has no column 'y' (columns: 'x', 'names', 'n')");
}

TEST_P(BadNpzTest, IsRefused) {
  TemporaryFolder folder;
  expectRefused(folder.write("d.npz", GetParam().content), GetParam().message);
}

static ZipEntry member(bool isDeflated = false) {
  return {.name = "x.npy", .content = npyOf("|u1", "(300, 10)", std::string(3000, 'x')), .isDeflated = isDeflated};
}

static ZipEntry with(ZipEntry entry, void (*change)(ZipEntry &)) {
  change(entry);
  return entry;
}

static std::string damagedAt(std::string content, size_t at) {
  content[at] = static_cast<char>(content[at] ^ 0x55);
  return content;
}

/// The directory of one member, which begins 22 + 46 + 5 bytes before the end, with `other` at offset `at`.
static std::string directoryWith(size_t at, const std::string &other) {
  std::string archive = zip({member()});
  return archive.replace(archive.size() - 73 + at, other.size(), other);
}

static const BadFile badNpz[] = {
    {"OnlyTheBeginning", "PK\x03\x04", "no directory at its end"},
    {"Truncated", zip({member()}).substr(0, 2000), "no directory at its end"},
    {"NoMembers", zip({}), "has no member that ends in .npy"},
    {"NoArrays", zip({{.name = "x.txt", .content = "x"}}), "has no member that ends in .npy"},
    {"TwoOfOneName", zip({member(), member()}), "has two members 'x.npy'"},
    {"Encrypted", zip({with(member(), [](ZipEntry &entry) { entry.flags = 1; })}), "'x.npy' is encrypted"},
    {"OtherMethod", zip({with(member(), [](ZipEntry &entry) { entry.method = 12; })}), "compressed by method 12"},
    {"MoreThanThere", zip({with(member(), [](ZipEntry &entry) { entry.bytes = entry.packedBytes = 4000; })}),
     "reaches beyond the members"},
    {"StoredSizesDiffer", zip({with(member(), [](ZipEntry &entry) { entry.bytes = 4000; })}), "promises 4000 bytes"},
    {"MoreThanDeflateCouldHold", zip({with(member(true), [](ZipEntry &entry) { entry.bytes = 1 << 30; })}),
     "promises 1073741824 bytes, but at most"},
    {"FewerThanPromised", zip({with(member(true), [](ZipEntry &entry) { entry.bytes = 4000; })}),
     "needs 3000 bytes, but"},
    {"MoreThanPromised",
     zip({with(member(true),
               [](ZipEntry &entry) {
                 entry.content += "more";
                 entry.bytes = static_cast<uint32_t>(entry.content.size() - 4);
               })}),
     "has more than the"},
    {"PlaceBeyondTheEnd", zip({with(member(), [](ZipEntry &entry) { entry.begin = 1 << 20; })}), "beyond the members"},
    {"PlaceInTheMiddle", zip({with(member(), [](ZipEntry &entry) { entry.begin = 5; })}),
     "not where the directory says"},
    {"Overlap",
     zip({member(), with(member(),
                         [](ZipEntry &entry) {
                           entry.begin = 0;
                           entry.name = "y.npy";
                         })}),
     "overlap"},
    {"WrongChecksum", zip({with(member(true), [](ZipEntry &entry) { entry.checksum = 7; })}),
     "its checksum does not fit"},
    {"WrongChecksumOfStored", zip({with(member(), [](ZipEntry &entry) { entry.checksum = 7; })}),
     "'x.npy' is damaged: its checksum does not fit its content"},
    {"DamagedStored", damagedAt(zip({member()}), 2000), "'x.npy' is damaged: its checksum does not fit its content"},
    {"DamagedDeflate", damagedAt(zip({member(true)}), 40), "'x.npy'"},
    {"NoNpyInside", zip({{.name = "x.npy", .content = "text"}}), "'x.npy': not an npy file"},
    {"EmptyMember", zip({{.name = "x.npy", .content = "", .isDeflated = true}}), "'x.npy': not an npy file"},
    {"ShapeLies", zip({{.name = "x.npy", .content = npyOf("<f4", "(9, 9)", "four"), .isDeflated = true}}),
     "needs 324 bytes, but 4 follow"},
    {"HugeShape", zip({{.name = "x.npy", .content = npyOf("<f4", "(4294967296, 4294967296)", "four")}}), "too large"},
    {"ManyMembers", directoryWith(59, "\xff\xff\xff\xff"), "cannot have 65535 members"},
    {"OtherDisk", directoryWith(55, "\x01"), "one of several disks"},
    {"DirectoryBeyondTheEnd", directoryWith(67, "\xff\xff\xff\x7f"), "lies beyond the end"},
    {"DirectoryEndsEarly", directoryWith(28, "\xff\x7f"), "in the middle of a member"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadNpzTest, testing::ValuesIn(badNpz), nameOfCase);

TEST_P(BadDataNpyTest, IsRefused) {
  TemporaryFolder folder;
  expectRefused(folder.write("x.npy", GetParam().content), GetParam().message);
}

static const BadFile badDataNpy[] = {
    {"OnlyTheMagic", "\x93NUMPY\x01", "not an npy file"},
    {"Truncated", floats.substr(0, floats.size() - 1), "x.npy: f32[2, 1] needs 8 bytes, but 7 follow the header"},
    {"TooLong", floats + "x", "needs 8 bytes, but 9 follow"},
    {"OneNumber", npyOf("<f4", "()", "four"), "column 'x' is one number and has no rows"},
    {"LongHeader", npy(std::string(100'000, ' '), "", 2), "claims 100000 bytes, more than the limit"},
    {"DamagedBool", npyOf("|b1", "(3, 2)", std::string("\0\1\1\0\1\2", 6)),
     "x.npy: column 'x', row 2: a boolean is neither 0 nor 1"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadDataNpyTest, testing::ValuesIn(badDataNpy), nameOfCase);

// Changing any byte of a valid archive must not crash the reader.
TEST(Npz, SurvivesDamageAnywhere) {
  TemporaryFolder folder;
  std::string content = zip(
      {{.name = "x.npy", .content = floats, .isLarge = true}, {.name = "y.npy", .content = bytes, .isDeflated = true}});
  std::mt19937 random(5);
  for (int i = 0; i < 1'500; ++i) {
    std::string damaged = content;
    for (uint32_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0)
      damaged.resize(random() % damaged.size());
    std::string path = folder.write("d.npz", damaged);
    Status status = guarded([&] { readAll(path); });
    ASSERT_TRUE(status.ok() || status.code == ExitCode::invalid) << status.message;
  }
}

/// The data file is truncated while mapped: an error, although the system would end the process by default.
TEST(Npz, AFileThatShrinksIsAnError) {
  TemporaryFolder folder;
  std::string path = folder.write("x.npy", npyOf("|u1", "(100, 4096)", std::string(409600, 'x')));
  auto column = DataPath(path).whole().open("x");
  EXPECT_EQ(rowOf(*column, 99), std::string(4096, 'x'));
  std::filesystem::resize_file(path, 8192);
  expectInvalid(guarded([&] { rowOf(*column, 99); }), "x.npy: cannot read: it shrank");
  expectInvalid(guarded([&] { rowOf(*column, 0); }), "x.npy: cannot read: it shrank");
}

// CIFAR

/// A row of a CIFAR file: its labels, and an image of one color.
static std::string cifarRow(const std::string &labels, char colour) { return labels + std::string(3072, colour); }

TEST(Cifar, ReadsItsParts) {
  TemporaryFolder folder;
  for (char batch = '1'; batch <= '5'; ++batch)
    folder.write(concat("data_batch_", std::string(1, batch), ".bin"),
                 cifarRow(std::string(1, batch), 'r') + cifarRow("x", batch));
  folder.write("test_batch.bin", cifarRow("t", 'g'));
  DataPath data(folder.path());
  Dataset train(*data.part(DataPart::train), {{"image", {}}, {"label", {}}});
  EXPECT_EQ(train.rows(), 10);
  EXPECT_EQ(train.column(0).header().shape, (Shape{3, 32, 32}));
  EXPECT_EQ(rowOf(train.column(0), 5), std::string(3072, '3'));
  EXPECT_EQ(contentOf(*data.part(DataPart::train), "label"), "1x2x3x4x5x");
  EXPECT_EQ(contentOf(*data.part(DataPart::test), "label"), "t");
  EXPECT_EQ(train.column(1).where(7), folder / "data_batch_4.bin: column 'label', row 1");
}

TEST(Cifar, OfAHundredClassesHasTwoLabels) {
  TemporaryFolder folder;
  folder.write("train.bin", cifarRow("cf", 'x') + cifarRow("CF", 'y'));
  DataPath data(folder.path());
  Table train = *data.part(DataPart::train);
  EXPECT_EQ(contentOf(train, "label"), "fF");
  EXPECT_EQ(contentOf(train, "coarse_label"), "cC");
  EXPECT_EQ(contentOf(train, "image"), std::string(3072, 'x') + std::string(3072, 'y'));
  EXPECT_FALSE(data.part(DataPart::test));
}

TEST(Cifar, OfSizesThatCannotBe) {
  TemporaryFolder folder;
  folder.write("test_batch.bin", cifarRow("t", 'g') + "x");
  expectRefused(folder.path(), "test_batch.bin: has 3074 bytes, not a multiple of the 3073 of a row");
  folder.write("test_batch.bin", "");
  Table test = *DataPath(folder.path()).part(DataPart::test);
  expectInvalid(guarded([&] { Dataset(test, {{"label", {}}}); }), "column 'label' has no rows");
  folder.write("data_batch_1.bin", cifarRow("t", 'g'));
  expectRefused(folder.path(), "data_batch_2.bin: cannot open: No such file");
}

// Folders

TEST(DataFolder, OfNpzAndNpyHasParts) {
  TemporaryFolder npz, npyFolders;
  npz.write("train.npz", zip({{.name = "x.npy", .content = bytes}}));
  std::filesystem::create_directory(npyFolders / "train");
  std::filesystem::create_directory(npyFolders / "test");
  npyFolders.write("train/x.npy", bytes);
  npyFolders.write("test/x.npy", npyOf("|u1", "(1, 3)", "tes"));
  EXPECT_EQ(contentOf(*DataPath(npz.path()).part(DataPart::train), "x"), "abcdef");
  EXPECT_FALSE(DataPath(npz.path()).part(DataPart::test));
  EXPECT_EQ(contentOf(*DataPath(npyFolders.path()).part(DataPart::train), "x"), "abcdef");
  EXPECT_EQ(contentOf(*DataPath(npyFolders.path()).part(DataPart::test), "x"), "tes");
}

TEST(DataFolder, OfNpyFilesIsOneSetOfRows) {
  TemporaryFolder folder;
  folder.write("x.npy", bytes);
  folder.write("y.npy", floats);
  folder.write("notes.txt", "");
  DataPath data(folder.path());
  EXPECT_FALSE(data.hasParts());
  EXPECT_EQ(namesOf(data.whole()), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(Dataset(data.whole(), {{"y", {}}, {"x", {}}}).rows(), 2);
}

TEST(DataFolder, OfTwoKindsIsRefused) {
  TemporaryFolder folder;
  folder.write("x.npy", bytes);
  folder.write("train.npz", zip({{.name = "x.npy", .content = bytes}}));
  expectRefused(folder.path(), "has both train.npz and test.npz and .npy files; name one of them");
}

TEST(DataFolder, WhatIsNoFileIsRefused) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expectRefused(folder / "pipe", "pipe: not a regular file");
  expectRefused("/dev/zero", "not a regular file");
  std::filesystem::create_symlink("/dev/zero", folder / "x.npy");
  expectRefused(folder.path(), "x.npy: not a regular file");
}

TEST(DataFolder, RowsWithoutElementsAreRefused) {
  TemporaryFolder folder;
  std::string path = folder.write("x.npy", npyOf("<f4", "(4000000000, 0)", ""));
  expectInvalid(guarded([&] { Dataset(DataPath(path).whole(), {{"x", {}}}); }), "has rows without elements: f32[0]");
}

//===- tokens -----------------------------------------------------------------------------------------------------===//

namespace {

/// The windows of a column, `length` tokens per row: "1 2 3|4 5 6".
std::string windowsOf(const Table &table, const std::string &column, int64_t length) {
  std::unique_ptr<Column> windows = table.open(column, {length});
  windows->load();
  std::string text;
  for (int64_t row = 0; row < windows->header().rows; ++row) {
    std::vector<int32_t> tokens(static_cast<size_t>(length));
    windows->read(row, std::as_writable_bytes(std::span(tokens)));
    for (size_t i = 0; i < tokens.size(); ++i)
      text += (i > 0 ? " " : row > 0 ? "|" : "") + std::to_string(tokens[i]);
  }
  return text;
}

class TokensTest : public testing::Test {
protected:
  std::string write(const std::string &name, const std::string &content) const { return folder.write(name, content); }
  TemporaryFolder folder;
};

} // namespace

TEST_F(TokensTest, ATextIsItsBytes) {
  Table table = DataPath(write("x.txt", std::string("abc\xff\0ef", 7))).whole();
  EXPECT_EQ(windowsOf(table, "tokens", 2), "97 98|99 255|0 101");
  EXPECT_EQ(windowsOf(table, "label", 2), "98 99|255 0|101 102");
  EXPECT_EQ(windowsOf(table, "tokens", 6), "97 98 99 255 0 101");
}

TEST_F(TokensTest, ABinaryFileHasNumbersOfTwoOrFourBytes) {
  std::string numbers("\1\0\0\1\xff\xff\7\0", 8);
  EXPECT_EQ(windowsOf(DataPath(write("x.bin", numbers)).whole(), "tokens", 1), "1|256|65535");
  EXPECT_EQ(windowsOf(DataPath(write("x.i32.bin", numbers)).whole(), "tokens", 1), "16777217");
  EXPECT_EQ(windowsOf(DataPath(write("x.i32.bin", numbers)).whole(), "label", 1), "524287");
}

TEST_F(TokensTest, AnArrayIsAStreamWhereAnInputTakesSeveral) {
  std::string path = write("tokens.npy", npyOf("<i4", "(4,)", std::string("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0", 16)));
  EXPECT_EQ(windowsOf(DataPath(path).whole(), "tokens", 3), "1 2 3");
  EXPECT_EQ(windowsOf(DataPath(path).whole(), "label", 3), "2 3 4");
  EXPECT_EQ(DataPath(path).whole().open("tokens")->header().rows, 4);
  std::string wide = write("x.npy", npyOf("<i8", "(2,)", std::string("\1\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0", 16)));
  expectInvalid(guarded([&] { windowsOf(DataPath(wide).whole(), "label", 1); }),
                "x.npy: token 1 is 4294967298, which is beyond 32 bits");
  EXPECT_EQ(namesOf(DataPath(write("f.npy", floats)).whole()), std::vector<std::string>{"f"});
}

TEST_F(TokensTest, PartsAreFilesOfAFolder) {
  write("train.txt", "abcd");
  write("test.txt", "xyz");
  DataPath texts(folder.path());
  EXPECT_EQ(windowsOf(*texts.part(DataPart::test), "tokens", 2), "120 121");
  TemporaryFolder other;
  other.write("train.bin", std::string("\1\0\2\0", 4));
  other.write("val.bin", std::string("\3\0\4\0", 4));
  DataPath binary(other.path());
  EXPECT_EQ(windowsOf(*binary.part(DataPart::train), "label", 1), "2");
  EXPECT_EQ(windowsOf(*binary.part(DataPart::test), "label", 1), "4");
}

TEST_F(TokensTest, WhatIsTooShortIsRefused) {
  expectInvalid(guarded([&] { windowsOf(DataPath(write("x.txt", "")).whole(), "tokens", 2); }), "x.txt: is empty");
  expectInvalid(guarded([&] { windowsOf(DataPath(write("x.txt", "abc")).whole(), "tokens", 3); }),
                "x.txt: has 3 tokens, but a row has 3 and needs one more for its last label");
  expectInvalid(guarded([&] { windowsOf(DataPath(write("x.bin", "abc")).whole(), "tokens", 1); }),
                "x.bin: has 3 bytes, which are no tokens of 2 bytes each");
}
