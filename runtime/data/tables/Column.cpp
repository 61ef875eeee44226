#include "runtime/data/tables/Column.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

ColumnHeader ColumnHeader::of(const std::string &name, const std::string &file, DType dtype, const Shape &whole) {
  if (whole.empty())
    failInvalid(concat(file, ": column ", quote(name), " is one number and has no rows"));
  return {name, file, dtype, Shape(whole.begin() + 1, whole.end()), whole.front()};
}

std::string Column::where(int64_t row) const {
  auto [file, number] = place(row);
  return concat(file, ": column ", quote(header_.name), ", row ", number);
}

void Column::read(int64_t row, std::span<std::byte> to) const {
  copy(row, to);
  auto isNoBool = [](std::byte byte) { return std::to_integer<int>(byte) > 1; };
  if (header_.dtype == DType::boolean && std::any_of(to.begin(), to.end(), isNoBool))
    failInvalid(concat(where(row), ": a boolean is neither 0 nor 1"));
}

const MappedRows &MappedColumn::partWith(int64_t &row) const {
  auto part = parts_.begin();
  for (; row >= part->rows; ++part)
    row -= part->rows;
  return *part;
}

void MappedColumn::copy(int64_t row, std::span<std::byte> to) const {
  const MappedRows &part = partWith(row);
  part.file->read(part.begin + row * part.stride, to);
}

std::pair<std::string, int64_t> MappedColumn::place(int64_t row) const {
  const MappedRows &part = partWith(row);
  return {part.file->path(), row};
}

std::unique_ptr<Column> mappedColumn(const std::shared_ptr<const MappedFile> &file, ColumnHeader header,
                                     int64_t begin) {
  MappedRows rows{file, begin, header.rowBytes(), header.rows};
  return std::make_unique<MappedColumn>(std::move(header), std::vector{std::move(rows)});
}

void UnpackedColumn::copy(int64_t row, std::span<std::byte> to) const {
  std::memcpy(to.data(), data_.data() + static_cast<size_t>(row) * to.size(), to.size());
}

Bytes readGrowing(int64_t bytes, const std::function<int64_t(std::byte *, int64_t)> &read,
                  const std::function<void(int64_t)> &failShort) {
  constexpr int64_t first = INT64_C(1) << 20;
  Bytes data;
  for (int64_t have = 0; have < bytes;) {
    int64_t wanted = std::min(bytes - have, std::max(first, have));
    data.resize(static_cast<size_t>(have + wanted));
    int64_t count = read(data.data() + have, wanted);
    have += count;
    if (count < wanted)
      failShort(have);
  }
  return data;
}

} // namespace sluice::runtime
