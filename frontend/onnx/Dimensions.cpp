#include "frontend/onnx/Dimensions.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <cctype>

namespace sluice::onnx {

/// "INPUT:1"
static std::string placeOf(const file::ValueInfo &input, std::size_t index) {
  return std::string(input.name) + ":" + std::to_string(index);
}

/// Whether a text of an option names a dimension: by its name in the file, or by its place.
static bool names(const std::string &text, const file::ValueInfo &input, std::size_t index) {
  return text == placeOf(input, index) || (!text.empty() && text == (*input.shape)[index].name);
}

/// The parts of --rows.
static std::vector<std::string> rowsOf(const ImportOptions &options) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= options.rows.size();) {
    std::size_t end = std::min(options.rows.find(',', begin), options.rows.size());
    parts.push_back(options.rows.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> Dimensions::boundSize(const file::ValueInfo &input, std::size_t index) const {
  const file::Dimension &dimension = (*input.shape)[index];
  for (const std::string &name : {placeOf(input, index), std::string(dimension.name)})
    if (auto found = options.dims.find(name); !name.empty() && found != options.dims.end())
      return found->second.front();
  return std::nullopt;
}

bool Dimensions::isFree(const file::ValueInfo &input, std::size_t index) const {
  return !(*input.shape)[index].size && !boundSize(input, index);
}

bool Dimensions::isBatch(const file::ValueInfo &input, std::size_t index) const {
  if (!isFree(input, index))
    return false;
  if (options.rows.empty())
    return batchIsFirst && index == 0;
  return std::ranges::any_of(rowsOf(options), [&](const std::string &name) { return names(name, input, index); });
}

/// Whether a name of the file can name the batch in a graph.
static bool isName(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

void Dimensions::chooseBatch(const File &file) {
  bool isFound = false;
  batchIsFirst = true;
  for (const file::ValueInfo &input : file.inputs()) {
    if (options.bind.contains(std::string(input.name)) || !input.shape || input.shape->empty())
      continue;
    batchIsFirst &= isFree(input, 0);
    isFound = true;
  }
  batchIsFirst &= isFound;
  for (const file::ValueInfo &input : file.inputs())
    for (std::size_t i = 0; input.shape && i < input.shape->size(); ++i)
      if (isBatch(input, i) && (batch.empty() || batch == "batch"))
        batch = isName((*input.shape)[i].name) ? (*input.shape)[i].name : "batch";
}

void Dimensions::requireTensors(const File &file, const SourceLocation &where) const {
  for (const file::ValueInfo &input : file.inputs()) {
    std::string what = file.name() + ": the input '" + std::string(input.name) + "' ";
    if (!input.isTensor || !heldAs(input.type))
      throw Error(what + "is " + (input.isTensor ? "of type " + nameOf(input.type) : "not a tensor") +
                      ", which is not supported",
                  where, {}, int(runtime::ExitCode::unsupported));
    if (!input.shape && !options.bind.contains(std::string(input.name)))
      throw Error(what + "has an unknown number of dimensions", where, {}, int(runtime::ExitCode::unsupported));
  }
}

void Dimensions::requireSizes(const File &file, const SourceLocation &where, std::vector<std::string> *unbound) const {
  std::string missing;
  std::vector<std::string> names;
  for (const file::ValueInfo &input : file.inputs()) {
    if (options.bind.contains(std::string(input.name)))
      continue;
    for (std::size_t i = 0; i < input.shape->size(); ++i) {
      if (!isFree(input, i) || isBatch(input, i))
        continue;
      std::string_view name = (*input.shape)[i].name;
      missing += (missing.empty() ? "dimension " : ", dimension ") + std::to_string(i) + " of '" +
                 std::string(input.name) + "'" + (name.empty() ? "" : " ('" + std::string(name) + "')");
      std::string flag = name.empty() ? placeOf(input, i) : std::string(name);
      if (std::ranges::find(names, flag) == names.end())
        names.push_back(flag);
    }
  }
  if (unbound)
    *unbound = names;
  if (missing.empty() || unbound)
    return;
  std::string flags;
  for (const std::string &name : names)
    flags += " --dim " + name + "=SIZE";
  throw Error(file.name() + ": these dimensions have no size: " + missing + "; give them sizes by" + flags +
                  ", or make one of them the batch by --rows",
              where);
}

/// Throws unless an unknown dimension has this name or place.
static void requireUnknown(const File &file, const std::string &text, const SourceLocation &where) {
  std::optional<std::int64_t> size;
  for (const file::ValueInfo &input : file.inputs())
    for (std::size_t i = 0; input.shape && i < input.shape->size(); ++i)
      if (names(text, input, i)) {
        size = (*input.shape)[i].size;
        if (!size)
          return;
      }
  throw Error(file.name() +
                  (size ? ": the dimension '" + text + "' has the size " + std::to_string(*size) + " in the file"
                        : " has no dimension '" + text + "'"),
              where);
}

Dimensions::Dimensions(const File &file, const ImportOptions &options, const SourceLocation &where,
                       std::vector<std::string> *unbound)
    : options(options) {
  for (const auto &[name, sizes] : options.dims)
    requireUnknown(file, name, where);
  for (const std::string &name : rowsOf(options))
    if (!name.empty() && name != "none")
      requireUnknown(file, name, where);
  requireTensors(file, where);
  chooseBatch(file);
  requireSizes(file, where, unbound);
}

Shape Dimensions::shapeOf(const file::ValueInfo &input) const {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < input.shape->size(); ++i) {
    if (std::optional<std::int64_t> size = (*input.shape)[i].size)
      dims.emplace_back(*size);
    else if (std::optional<std::int64_t> bound = boundSize(input, i))
      dims.emplace_back(*bound);
    else
      dims.emplace_back(batch);
  }
  return Shape(std::move(dims));
}

} // namespace sluice::onnx
