// sluice import
#include "frontend/onnx/Check.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/ImportFlags.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

static const char kImportExamples[] = R"(Examples:
  sluice import resnet18.onnx -o resnet18.mlir          a model for compile, verify, place and show
  sluice import encoder.onnx --dim seq=128              with a size of an open dimension
  sluice import detector.onnx --check                   operators, dimensions and problems
  sluice compile resnet18.onnx -o resnet18              import and compile)";

//===- text -------------------------------------------------------------------------------------------------------===//

static std::string textOf(const onnx::Interface &interface) {
  return fmt::format("{} {}[{}]", interface.name, interface.type, fmt::join(interface.dims, ", "));
}

static void printReport(llvm::raw_ostream &out, const onnx::Report &report) {
  out << fmt::format("{}: opset {}{}, {} initializers of {:.1f} MB\n", report.file, report.opset,
                     report.producer.empty() ? "" : " by " + report.producer, report.initializers,
                     double(report.initializerBytes) / 1e6);
  for (const onnx::Interface &input : report.inputs)
    out << "input   " << textOf(input) << '\n';
  for (const onnx::Interface &output : report.outputs)
    out << "output  " << textOf(output) << '\n';
  if (!report.rows.empty())
    out << "rows    " << report.rows << '\n';
  if (!report.unbound.empty())
    out << fmt::format("without a size: {}\n", fmt::join(report.unbound, ", "));
  out << fmt::format("\n{:<32} {:>6} {:>6}\n", "operator", "opset", "nodes");
  for (const onnx::OperatorCount &count : report.operators)
    out << fmt::format("{:<32} {:>6} {:>6}{}\n", count.name, count.opset, count.nodes,
                       count.isSupported ? "" : "  not supported");
  if (!report.problem.empty())
    out << '\n' << report.problem << '\n';
}

static json::Array jsonOf(const std::vector<onnx::Interface> &interfaces) {
  json::Array list;
  for (const onnx::Interface &interface : interfaces)
    list.push_back(json::Object{
        {"name", json::fixUTF8(interface.name)}, {"type", interface.type}, {"dims", json::Array(interface.dims)}});
  return list;
}

static json::Object jsonOf(const onnx::Report &report) {
  json::Array operators;
  for (const onnx::OperatorCount &count : report.operators)
    operators.push_back(json::Object{{"name", json::fixUTF8(count.name)},
                                     {"opset", count.opset},
                                     {"nodes", count.nodes},
                                     {"supported", count.isSupported}});
  json::Object object{{"file", report.file},
                      {"producer", json::fixUTF8(report.producer)},
                      {"ir_version", report.irVersion},
                      {"opset", report.opset},
                      {"inputs", jsonOf(report.inputs)},
                      {"outputs", jsonOf(report.outputs)},
                      {"rows", json::fixUTF8(report.rows)},
                      {"unbound", json::Array(report.unbound)},
                      {"initializers", report.initializers},
                      {"initializer_bytes", report.initializerBytes},
                      {"operators", std::move(operators)},
                      {"supported", report.isSupported()}};
  if (!report.problem.empty())
    object["problem"] = json::fixUTF8(report.problem);
  return object;
}

//===- the command ------------------------------------------------------------------------------------------------===//

static llvm::Error check(const std::string &model, const onnx::ImportOptions &options, const Talk &talk) {
  onnx::Report report = onnx::check(model, options);
  if (talk.json)
    llvm::outs() << json::Value(jsonOf(report)) << '\n';
  else
    printReport(llvm::outs(), report);
  if (report.isSupported())
    return llvm::Error::success();
  return makeError(ExitCode::Unsupported, report.file + " cannot be imported as it is");
}

static llvm::Error save(const std::string &model, const std::string &output, const onnx::ImportOptions &options,
                        const Talk &talk) {
  Graph graph = onnx::import(model, options);
  graph.save(output);
  int64_t parameters = 0, elements = 0;
  for (const Graph::State &state : graph.states())
    if (state.kind == "parameter") {
      ++parameters;
      elements += state.elements;
    }
  if (talk.json)
    llvm::outs() << json::Value(
                        json::Object{{"output", output}, {"parameter_tensors", parameters}, {"parameters", elements}})
                 << '\n';
  else if (!talk.quiet && output != "-")
    llvm::outs() << fmt::format("{}: {} parameters in {} tensors\n", output, elements, parameters);
  return llvm::Error::success();
}

static llvm::Error import(const std::string &model, const std::string &output, bool checks,
                          const onnx::ImportOptions &options, const Talk &talk) {
  try {
    return checks ? check(model, options, talk) : save(model, output, options, talk);
  } catch (const Error &error) {
    return errorOf(error);
  }
}

Command addImport(CLI::App &app) {
  CLI::App *command = app.add_subcommand("import", "Make a model of an ONNX file");
  command->footer(kImportExamples);
  auto model = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  auto checks = std::make_shared<bool>(false);
  auto options = std::make_shared<onnx::ImportOptions>();
  command->add_option("model", *model, "ONNX file")->required()->type_name("MODEL.onnx");
  help::beginGroup(*command, "Output");
  command
      ->add_option("-o,--output", *output,
                   "Model to write, with its weights in FILE.safetensors (default: the name with .mlir)")
      ->type_name("FILE");
  command->add_flag("--check", *checks, "Write nothing; list operators, dimensions and problems");
  addImportFlags(*command, *options);
  return {command, [=](const Talk &talk) {
            std::string file = output->empty() ? (llvm::sys::path::stem(*model) + ".mlir").str() : *output;
            return import(*model, file, *checks, *options, talk);
          }};
}

} // namespace sluice::tool
