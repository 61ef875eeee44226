// Shared by the programs of documents: the option --devices, headings, and errors that a document shows.
#pragma once

#include <sluice/array.h>
#include <sluice/module.h>

#include <functional>
#include <string>
#include <vector>

namespace documents {

/// Parses --devices, sets the devices of arrays and runs `body`. Returns the exit code of the program.
int run(int argc, char **argv, const std::string &name, const std::string &help, void (*body)());

/// Prints the title of a section.
void heading(const std::string &title);

/// Prints the message of the error that `body` throws, or that there is none.
void printError(const std::function<void()> &body);

/// "[gpu(0), gpu(1)]".
std::string textOf(const std::vector<sluice::Device> &devices);

/// Prints a line for each parameter of a module: "0.weight: gpu(0)".
void printDevices(sluice::nn::Module &module);

} // namespace documents
