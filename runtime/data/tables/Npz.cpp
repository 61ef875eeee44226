#include "runtime/data/tables/Npz.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/tables/ZipFile.h"
#include "runtime/io/Npy.h"

#include <algorithm>

namespace sluice::runtime {

static constexpr std::string_view npyEnding = ".npy";

static std::unique_ptr<Column> openNpy(const std::string &path, const std::string &column) {
  auto file = std::make_shared<MappedFile>(path);
  NpyHeader npy = parseNpyHeader(file->read(0, npyStartBytes), file->bytes(), path);
  return mappedColumn(file, ColumnHeader::of(column, path, npy.dtype, npy.shape), npy.begin);
}

/// The name of a column: the file name without folder and extension.
static std::string stemOf(const std::string &path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.ends_with(npyEnding) ? name.substr(0, name.size() - npyEnding.size()) : name;
}

Table npyTable(const std::string &path) {
  return {path, {{stemOf(path), [path](const Shape &) { return openNpy(path, stemOf(path)); }}}};
}

Table npyFolderTable(const std::string &folder, const std::vector<std::string> &files) {
  Table table{folder, {}};
  for (const std::string &file : files)
    if (file.ends_with(npyEnding))
      table.columns.push_back(npyTable(concat(folder, "/", file)).columns.front());
  return table;
}

static Bytes unpack(const MappedFile &file, const ZipMember &member, const NpyHeader &npy) {
  Inflater inflater(file, member);
  auto fail = [&](int64_t have) {
    failInvalid(concat(file.path(), ": ", quote(member.name), " is truncated: ", npy.bytes,
                       " bytes should follow its header, but ", have, " do"));
  };
  Bytes header(static_cast<size_t>(npy.begin));
  inflater.read(header.data(), npy.begin);
  Bytes data = readGrowing(npy.bytes, [&](std::byte *to, int64_t bytes) { return inflater.read(to, bytes); }, fail);
  inflater.checkEnd();
  return data;
}

namespace {

/// A stored member, mapped after its checksum has been verified.
class StoredColumn final : public Column {
public:
  StoredColumn(std::shared_ptr<const MappedFile> file, ZipMember member, ColumnHeader header, int64_t begin)
      : Column(header), file_(std::move(file)), member_(std::move(member)),
        rows_(mappedColumn(file_, std::move(header), begin)) {}

  void load() override { checkStored(*file_, member_); }

private:
  void copy(int64_t row, std::span<std::byte> to) const override { rows_->read(row, to); }

  std::shared_ptr<const MappedFile> file_;
  ZipMember member_;
  std::unique_ptr<Column> rows_;
};

} // namespace

static std::unique_ptr<Column> openMember(const std::shared_ptr<const MappedFile> &file, const ZipMember &member,
                                          const std::string &column) {
  std::string name = concat(file->path(), ": ", quote(member.name));
  Bytes start = member.isDeflated ? Bytes(static_cast<size_t>(std::min(member.bytes, npyStartBytes)))
                                  : file->read(member.begin, std::min(member.bytes, npyStartBytes));
  if (member.isDeflated)
    start.resize(static_cast<size_t>(Inflater(*file, member).read(start.data(), static_cast<int64_t>(start.size()))));
  NpyHeader npy = parseNpyHeader(start, member.bytes, name);
  ColumnHeader header = ColumnHeader::of(column, file->path(), npy.dtype, npy.shape);
  if (!member.isDeflated)
    return std::make_unique<StoredColumn>(file, member, std::move(header), member.begin + npy.begin);
  return std::make_unique<UnpackedColumn>(std::move(header), [=] { return unpack(*file, member, npy); });
}

Table npzTable(const std::string &path) {
  std::shared_ptr<const MappedFile> file = std::make_shared<MappedFile>(path);
  Table table{path, {}};
  for (const ZipMember &member : readZipDirectory(*file)) {
    if (!member.name.ends_with(npyEnding))
      continue;
    std::string column = member.name.substr(0, member.name.size() - npyEnding.size());
    auto isSame = [&](const Table::Source &source) { return source.name == column; };
    if (std::any_of(table.columns.begin(), table.columns.end(), isSame))
      failInvalid(concat(path, ": has two members ", quote(member.name)));
    table.columns.push_back({column, [=](const Shape &) { return openMember(file, member, column); }});
  }
  if (table.columns.empty())
    failInvalid(concat(path, ": has no member that ends in .npy"));
  return table;
}

} // namespace sluice::runtime
