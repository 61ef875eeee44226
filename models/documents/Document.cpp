#include "Document.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

namespace documents {

int run(int argc, char **argv, const std::string &name, const std::string &help, void (*body)()) {
  CLI::App app(help, name);
  sluice::help::setHelp(app);
  std::string devices = "cpu";
  app.add_option("--devices", devices, "Devices, e.g. cpu,sim:0,sim:1 (default: cpu)")->type_name("LIST");
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  try {
    sluice::set_devices(devices);
    body();
  } catch (const sluice::Error &error) {
    std::cout.flush();
    std::cerr << sluice::help::errorText(name, error.what()) << '\n';
    return error.code();
  }
  return 0;
}

void heading(const std::string &title) { std::cout << "\n## " << title << '\n'; }

void printError(const std::function<void()> &body) {
  try {
    body();
    std::cout << "no error\n";
  } catch (const sluice::Error &error) {
    std::cout << "Error: " << error.message() << '\n';
  }
}

std::string textOf(const std::vector<sluice::Device> &devices) {
  std::string text;
  for (const sluice::Device &device : devices)
    text += (text.empty() ? "[" : ", ") + device.str();
  return text + "]";
}

void printDevices(sluice::nn::Module &module) {
  for (const auto &[name, parameter] : module.state_dict())
    std::cout << name << ": " << parameter.device() << '\n';
}

} // namespace documents
