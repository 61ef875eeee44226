#include "runtime/data/Feed.h"

#include "runtime/base/Status.h"
#include "runtime/device/Parallel.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <thread>

namespace sluice::runtime {

/// The size of the inputs' first dimensions if all are equal and no input has a batch dimension; else 0.
static int64_t fixedRowsOf(const Entry &entry) {
  auto isRowless = [](const Value &input) { return input.rowsDim < 0 && !input.shape.empty(); };
  auto isAlike = [&](const Value &input) { return isRowless(input) && input.shape[0] == entry.inputs[0].shape[0]; };
  return !entry.inputs.empty() && std::all_of(entry.inputs.begin(), entry.inputs.end(), isAlike)
             ? entry.inputs[0].shape[0]
             : 0;
}

/// The input dimension that data rows fill, and the number of rows of one call.
struct RowsDim {
  int dim;
  int64_t capacity;

  bool exists() const { return dim >= 0 && capacity > 0; }
};

/// `fixedRows` is that of `fixedRowsOf`.
static RowsDim rowsDimOf(const Value &input, int64_t capacity, int64_t fixedRows) {
  return fixedRows > 0 ? RowsDim{0, fixedRows} : RowsDim{input.rowsDim, capacity};
}

/// The shape of one row of an input, without the dimension that counts rows. This dimension remains if it has several
/// elements per row.
static Shape rowShape(const Value &input, RowsDim rowsDim) {
  Shape shape = input.shape;
  if (!rowsDim.exists())
    return shape;
  auto rows = shape.begin() + rowsDim.dim;
  *rows /= rowsDim.capacity;
  if (*rows == 1)
    shape.erase(rows);
  return shape;
}

/// The columns that fill the inputs, in input order.
static std::vector<Dataset::Wanted> columnsFor(const Plan &plan, const Entry &entry, int64_t fixedRows,
                                               const std::vector<std::string> &texts) {
  std::vector<std::string> inputs;
  for (const Value &input : entry.inputs)
    inputs.push_back(input.name);
  std::vector<NamedText> renamed;
  for (const std::string &text : texts)
    renamed.push_back(splitNamed(text, inputs, "="));
  std::vector<Dataset::Wanted> columns;
  for (const Value &input : entry.inputs) {
    auto isOf = [&](const NamedText &item) { return item.name == input.name; };
    auto found = std::find_if(renamed.begin(), renamed.end(), isOf);
    if (std::count_if(renamed.begin(), renamed.end(), isOf) > 1)
      failUsage(concat("--column: ", quote(input.name), " is given twice"));
    columns.push_back({found == renamed.end() ? input.name : found->text,
                       rowShape(input, rowsDimOf(input, plan.capacity, fixedRows))});
  }
  for (const NamedText &item : renamed)
    if (std::find(inputs.begin(), inputs.end(), item.name) == inputs.end())
      failUsage(concat("--column: entry point ", quote(entry.name), " has no input ", quote(item.name),
                       didYouMean(item.name, inputs), " (it has: ", listed(inputs), ")"));
  return columns;
}

Feed::Feed(const Plan &plan, const Entry &entry, const Table &table, const std::vector<std::string> &renamed)
    : plan_(plan), notes_(table.notes), fixedRows_(fixedRowsOf(entry)),
      data_(table, columnsFor(plan, entry, fixedRows_, renamed)) {
  if (entry.inputs.empty())
    failUnsupported(concat("entry point ", quote(entry.name), " has no inputs to feed data to"));
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    bindings_.push_back(bind(entry.inputs[i], data_.column(i).header()));
  if (rows() == 0 && data_.rows() > 0)
    failInvalid(
        concat(data_.column(0).header().file, ": has ", data_.rows(), " rows, and every call has ", fixedRows_));
}

/// Whether a column's row fills an input's row: the shapes are equal apart from sizes of 1, or one of them has at most
/// one dimension and as many elements as the other.
static bool isSameRow(Shape a, Shape b) {
  for (Shape *shape : {&a, &b})
    shape->erase(std::remove(shape->begin(), shape->end(), 1), shape->end());
  return a == b || (elementsOf(a) == elementsOf(b) && std::min(a.size(), b.size()) <= 1);
}

/// Fails if the vocabularies do not match: the model's is larger than that of a byte text, or smaller than that of a
/// tokenizer. A smaller model may read a byte text whose bytes are all within its vocabulary.
static void checkVocabulary(const Value &input, const ColumnHeader &column) {
  auto [size, file] = column.vocabulary;
  std::string wanted = concat(", but input ", quote(input.name), " takes ", input.below);
  if (size == 0 || input.below == 0)
    return;
  if (file.empty() && input.below > size)
    failInvalid(concat(column.file, ": is read by its bytes, which are ", size, " tokens", wanted,
                       "; --tokenizer FOLDER reads it by words"));
  if (!file.empty() && input.below < size)
    failInvalid(concat(file, ": has ", size, " tokens", wanted));
}

Feed::Binding Feed::bind(const Value &input, const ColumnHeader &column) const {
  RowsDim rowsDim = rowsDimOf(input, plan_.capacity, fixedRows_);
  if (!rowsDim.exists())
    failUnsupported(concat("input ", quote(input.name), " of type ", typeText(input.dtype, input.shape),
                           " has no batch dimension to feed rows of data to"));
  Shape row = rowShape(input, rowsDim);
  std::string both =
      concat(column.file, ": column ", quote(column.name), " has rows of ", typeText(column.dtype, column.shape),
             ", but input ", quote(input.name), " takes ", typeText(input.dtype, row));
  if (!isSameRow(column.shape, row))
    failInvalid(both);
  Binding binding{&input, nullptr};
  if (column.dtype != input.dtype && !(binding.convert = conversion(column.dtype, input.dtype)))
    failInvalid(concat(both, "; a column fills its own type and wider ones of its kind"));
  checkVocabulary(input, column);
  for (int i = 0; i < rowsDim.dim; ++i)
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

void Feed::readRows(size_t number, std::span<const uint32_t> numbers, size_t begin, size_t end, Bytes &batch) const {
  const auto &[input, convert, pieces, pieceBytes] = bindings_[number];
  const Column &column = data_.column(number);
  int64_t elements = elementsOf(column.header().shape), count = static_cast<int64_t>(numbers.size());
  Bytes stored(static_cast<size_t>(column.header().rowBytes())), row(static_cast<size_t>(pieces * pieceBytes));
  for (size_t r = begin; r < end; ++r) {
    column.read(numbers[r], convert ? stored : row);
    if (convert)
      convert(stored.data(), row.data(), elements);
    for (int64_t piece = 0; piece < pieces; ++piece)
      std::memcpy(batch.data() + (piece * count + static_cast<int64_t>(r)) * pieceBytes,
                  row.data() + piece * pieceBytes, static_cast<size_t>(pieceBytes));
  }
}

/// Splits [0, count) into one part per thread, runs the parts concurrently, and throws the error of the first part that
/// failed.
static void inParts(size_t count, const std::function<void(size_t begin, size_t end)> &body) {
  size_t parts = std::min(count, static_cast<size_t>(availableThreads()));
  std::vector<std::exception_ptr> errors(parts);
  std::vector<std::thread> threads;
  for (size_t part = 0; part < parts; ++part)
    threads.emplace_back([&, part] {
      try {
        body(count * part / parts, count * (part + 1) / parts);
      } catch (...) {
        errors[part] = std::current_exception();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::exception_ptr &error : errors)
    if (error)
      std::rethrow_exception(error);
}

void Feed::read(std::span<const uint32_t> numbers, Batch &batch) const {
  batch.resize(bindings_.size());
  for (size_t i = 0; i < bindings_.size(); ++i) {
    batch[i].resize(static_cast<size_t>(bindings_[i].pieces * bindings_[i].pieceBytes) * numbers.size());
    auto readSome = [&](size_t begin, size_t end) { readRows(i, numbers, begin, end, batch[i]); };
    data_.column(i).isCostly() ? inParts(numbers.size(), readSome) : readSome(0, numbers.size());
  }
}

void Feed::set(Instance &instance, const Batch &batch, int64_t rows) const {
  for (size_t i = 0; i < bindings_.size(); ++i)
    instance.setInput(*bindings_[i].input, batch[i], rows);
}

} // namespace sluice::runtime
