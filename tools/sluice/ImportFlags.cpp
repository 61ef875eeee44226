#include "tools/sluice/ImportFlags.h"

#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace sluice::compiler;

namespace sluice::tool {

/// Splits NAME=VALUE at the last '=': names of inputs may contain one.
static std::pair<std::string, llvm::StringRef> split(const char *flag, llvm::StringRef text) {
  auto [name, value] = text.rsplit('=');
  if (name.empty() || value.empty() || name.size() == text.size())
    throw CLI::ValidationError(flag, ("'" + text + "' is not NAME=VALUE").str());
  return {name.str(), value};
}

static void addDim(onnx::ImportOptions &options, llvm::StringRef text) {
  auto [name, values] = split("--dim", text);
  llvm::SmallVector<llvm::StringRef> parts;
  values.split(parts, ',');
  std::vector<int64_t> &sizes = options.dims[name];
  sizes.clear();
  for (llvm::StringRef part : parts) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 1)
      throw CLI::ValidationError("--dim", ("'" + part + "' is not a size").str());
    sizes.push_back(size);
  }
}

static void addBinding(onnx::ImportOptions &options, llvm::StringRef text) {
  auto [name, value] = split("--bind", text);
  double number = 0;
  if (value == "true" || value == "false")
    number = value == "true";
  else if (value.getAsDouble(number))
    throw CLI::ValidationError("--bind", ("'" + value + "' is not a number").str());
  options.bind[name] = number;
}

/// The group of the flags in the help.
static constexpr const char *kGroup = "ONNX files";

void hideImportFlags(CLI::App &command, onnx::ImportOptions &options) {
  addImportFlags(command, options);
  for (CLI::Option *option :
       command.get_options([](const CLI::Option *option) { return option->get_group() == kGroup; }))
    option->group("");
}

void addImportFlags(CLI::App &command, onnx::ImportOptions &options) {
  help::beginGroup(command, kGroup);
  auto addEach = [&](const char *flag, const char *type, const char *help, auto add) {
    command
        .add_option_function<std::vector<std::string>>(
            flag,
            [&options, add](const std::vector<std::string> &texts) {
              for (const std::string &text : texts)
                add(options, text);
            },
            help)
        ->type_name(type)
        ->allow_extra_args(false);
  };
  addEach("--dim", "NAME=SIZE", "Size of an unknown dimension, by its name or as INPUT:1; repeatable", addDim);
  command
      .add_option("--rows", options.rows,
                  "Dimension that is the batch, by its name or as x:0,state:1, or none (default: dimension 0 if it is "
                  "unknown in all inputs)")
      ->type_name("NAME");
  addEach("--bind", "INPUT=VALUE", "Make an input with one element a constant; repeatable", addBinding);
  command.add_option("--outputs", options.outputs, "Values to return instead of the outputs of the file, e.g. a,b")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag(
      "--no-recognize", [&options](int64_t) { options.recognize = false; },
      "Do not replace decomposed layers, such as LayerNorm or attention, by their ops");
  command.add_option("--data-dir", options.data_dir, "Folder that symbolic links to weight files may lead to")
      ->type_name("DIR");
}

bool isOnnx(llvm::StringRef path) { return path.ends_with(".onnx"); }

llvm::Error errorOf(const Error &error) { return makeError(ExitCode(error.code()), error.message()); }

ModelFile::~ModelFile() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

llvm::Expected<std::string> ModelFile::open(const std::string &model, const onnx::ImportOptions &options) {
  if (!isOnnx(model))
    return model;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("sluice", folder))
    return makeError(ExitCode::Invalid, "cannot create a temporary folder: " + error.message());
  std::string path = (folder + "/" + llvm::sys::path::stem(model) + ".mlir").str();
  try {
    onnx::import(model, options).save(path);
  } catch (const Error &error) {
    return errorOf(error);
  }
  return path;
}

} // namespace sluice::tool
