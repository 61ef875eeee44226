#include "runtime/data/images/Cifar.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

static const Shape imageShape = {3, 32, 32};

namespace {
/// One column of a file's row.
struct Field {
  std::string name;
  Shape shape;
  int64_t begin; ///< byte offset within the row
};
} // namespace

static std::unique_ptr<Column> openField(const std::vector<std::string> &paths, int64_t rowBytes, const Field &field) {
  ColumnHeader header{field.name, paths.front(), DType::u8, field.shape, 0};
  std::vector<MappedRows> parts;
  for (const std::string &path : paths) {
    auto file = std::make_shared<MappedFile>(path);
    if (file->bytes() % rowBytes != 0)
      failInvalid(concat(path, ": has ", file->bytes(), " bytes, not a multiple of the ", rowBytes, " of a row"));
    parts.push_back({file, field.begin, rowBytes, file->bytes() / rowBytes});
    header.rows += parts.back().rows;
  }
  return std::make_unique<MappedColumn>(std::move(header), std::move(parts));
}

static Table tableOf(const std::string &folder, const std::vector<std::string> &paths,
                     const std::vector<std::string> &labels) {
  int64_t labelBytes = static_cast<int64_t>(labels.size()), rowBytes = labelBytes + elementsOf(imageShape);
  std::vector<Field> fields{{"image", imageShape, labelBytes}};
  for (int64_t i = 0; i < labelBytes; ++i)
    fields.push_back({labels[static_cast<size_t>(i)], {}, i});
  Table table{folder, {}};
  for (const Field &field : fields)
    table.columns.push_back({field.name, [=](const Shape &) { return openField(paths, rowBytes, field); }});
  return table;
}

Table cifar10Table(const std::string &folder, bool isTest) {
  std::vector<std::string> paths;
  for (int i = 1; i <= 5 && !isTest; ++i)
    paths.push_back(concat(folder, "/data_batch_", i, ".bin"));
  if (isTest)
    paths.push_back(folder + "/test_batch.bin");
  return tableOf(folder, paths, {"label"});
}

Table cifar100Table(const std::string &folder, bool isTest) {
  return tableOf(folder, {folder + (isTest ? "/test.bin" : "/train.bin")}, {"coarse_label", "label"});
}

} // namespace sluice::runtime
