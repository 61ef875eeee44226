#include "runtime/data/Feed.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {

/// The columns that fill the inputs, in their order.
static std::vector<std::string> columnsFor(const Entry &entry, const std::vector<NamedText> &renamed) {
  std::vector<std::string> inputs, columns;
  for (const Value &input : entry.inputs) {
    inputs.push_back(input.name);
    auto isOf = [&](const NamedText &item) { return item.name == input.name; };
    auto found = std::find_if(renamed.begin(), renamed.end(), isOf);
    if (std::count_if(renamed.begin(), renamed.end(), isOf) > 1)
      failUsage(concat("--column: ", quote(input.name), " is given twice"));
    columns.push_back(found == renamed.end() ? input.name : found->text);
  }
  for (const NamedText &item : renamed)
    if (std::find(inputs.begin(), inputs.end(), item.name) == inputs.end())
      failUsage(concat("--column: entry point ", quote(entry.name), " has no input ", quote(item.name),
                       didYouMean(item.name, inputs), " (it has: ", listed(inputs), ")"));
  return columns;
}

/// What all inputs have along their first dimension, where none has a batch dimension; else 0.
static int64_t fixedRowsOf(const Entry &entry) {
  auto isRowless = [](const Value &input) { return input.rowsDim < 0 && !input.shape.empty(); };
  auto isAlike = [&](const Value &input) { return isRowless(input) && input.shape[0] == entry.inputs[0].shape[0]; };
  return !entry.inputs.empty() && std::all_of(entry.inputs.begin(), entry.inputs.end(), isAlike)
             ? entry.inputs[0].shape[0]
             : 0;
}

Feed::Feed(const Plan &plan, const Entry &entry, const Table &table, const std::vector<NamedText> &renamed)
    : plan_(plan), fixedRows_(fixedRowsOf(entry)), data_(table, columnsFor(entry, renamed)) {
  if (entry.inputs.empty())
    failUnsupported(concat("entry point ", quote(entry.name), " has no inputs to feed data to"));
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    bindings_.push_back(bind(entry.inputs[i], data_.column(i).header()));
  if (rows() == 0 && data_.rows() > 0)
    failInvalid(
        concat(data_.column(0).header().file, ": has ", data_.rows(), " rows, and every call has ", fixedRows_));
}

/// The shape of one of so many rows of an input.
static Shape rowShape(const Value &input, int rowsDim, int64_t capacity) {
  Shape shape = input.shape;
  auto rows = shape.begin() + rowsDim;
  *rows /= capacity;
  if (*rows == 1)
    shape.erase(rows);
  return shape;
}

/// Whether elements of one shape are those of the other, in the same order and with the same meaning.
static bool isSameRow(Shape a, Shape b) {
  for (Shape *shape : {&a, &b})
    shape->erase(std::remove(shape->begin(), shape->end(), 1), shape->end());
  return a == b || (elementsOf(a) == elementsOf(b) && std::min(a.size(), b.size()) <= 1);
}

Feed::Binding Feed::bind(const Value &input, const ColumnHeader &column) const {
  int64_t capacity = fixedRows_ > 0 ? fixedRows_ : plan_.capacity;
  int rowsDim = fixedRows_ > 0 ? 0 : input.rowsDim;
  if (rowsDim < 0 || capacity == 0)
    failUnsupported(concat("input ", quote(input.name), " of type ", typeText(input.dtype, input.shape),
                           " has no batch dimension to feed rows of data to"));
  Shape row = rowShape(input, rowsDim, capacity);
  std::string both =
      concat(column.file, ": column ", quote(column.name), " has rows of ", typeText(column.dtype, column.shape),
             ", but input ", quote(input.name), " takes ", typeText(input.dtype, row));
  if (!isSameRow(column.shape, row))
    failInvalid(both);
  Binding binding{&input, nullptr};
  if (column.dtype != input.dtype && !(binding.convert = conversion(column.dtype, input.dtype)))
    failInvalid(concat(both, "; a column fills its own type and wider ones of its kind"));
  for (int i = 0; i < rowsDim; ++i)
    binding.pieces *= input.shape[static_cast<size_t>(i)];
  binding.pieceBytes = elementsOf(row) * static_cast<int64_t>(sizeOf(input.dtype)) / binding.pieces;
  return binding;
}

void Feed::load() {
  data_.load();
  for (size_t i = 0; i < bindings_.size(); ++i)
    if (bindings_[i].input->below > 0)
      checkIndices(bindings_[i], data_.column(i));
}

void Feed::checkIndices(const Binding &binding, const Column &column) const {
  const ColumnHeader &header = column.header();
  Bytes row(static_cast<size_t>(header.rowBytes()));
  const Value &input = *binding.input;
  for (int64_t number = 0; number < header.rows; ++number) {
    column.read(number, row);
    for (int64_t i = 0; i < elementsOf(header.shape); ++i) {
      double index = elementAsDouble(header.dtype, row.data(), i);
      if (!input.takesIndex(index))
        failInvalid(concat(column.where(number), ": ", static_cast<int64_t>(index), " is none of the ",
                           input.indicesText(), " of input ", quote(input.name)));
    }
  }
}

void Feed::read(std::span<const uint32_t> numbers, Batch &batch) const {
  batch.resize(bindings_.size());
  Bytes stored, row;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const auto &[input, convert, pieces, pieceBytes] = bindings_[i];
    const Column &column = data_.column(i);
    int64_t elements = elementsOf(column.header().shape), count = static_cast<int64_t>(numbers.size());
    stored.resize(static_cast<size_t>(column.header().rowBytes()));
    row.resize(static_cast<size_t>(pieces * pieceBytes));
    batch[i].resize(row.size() * numbers.size());
    for (int64_t r = 0; r < count; ++r) {
      column.read(numbers[static_cast<size_t>(r)], convert ? stored : row);
      if (convert)
        convert(stored.data(), row.data(), elements);
      for (int64_t piece = 0; piece < pieces; ++piece)
        std::memcpy(batch[i].data() + (piece * count + r) * pieceBytes, row.data() + piece * pieceBytes,
                    static_cast<size_t>(pieceBytes));
    }
  }
}

void Feed::set(Instance &instance, const Batch &batch, int64_t rows) const {
  for (size_t i = 0; i < bindings_.size(); ++i)
    instance.setInput(*bindings_[i].input, batch[i], rows);
}

} // namespace sluice::runtime
