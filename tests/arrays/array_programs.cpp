// Runs random programs on arrays, and writes a line of JSON for each, for programs_test.py to compare with PyTorch:
//   array_programs DEVICES MOST SEED...
// The values and gradients come from recorded calls. They must have the same bits as those of one function by jit, of
// grad of that function, and of the compiled graph; a difference is an error in the line. With cuda:0 among the devices,
// test doubles of the CUDA driver and NVRTC run the kernels.
#include "nlohmann/json.hpp"
#include "sluice/compile.h"
#include "tests/arrays/RandomProgram.h"
#include "tests/cuda_emu/Doubles.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace sluice;
using namespace sluice::test;
using nlohmann::json;

namespace {

using Elements = std::vector<std::vector<double>>;

std::vector<double> toHost(const Array &x) { return x.to_vector<double>(); }

std::vector<Array> inputsOf(const RandomProgram &program) {
  std::vector<Array> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    inputs.push_back(array(program.inputs[i],
                           Shape(std::vector<Dim>(program.inputShapes[i].begin(), program.inputShapes[i].end()))));
  return inputs;
}

/// The last value and the gradients of the sum of its square.
Elements recorded(const RandomProgram &program) {
  std::vector<Array> inputs = inputsOf(program);
  Array index = array(std::vector<int>(program.ints.begin(), program.ints.end()), std::int64_t(program.ints.size()));
  for (Array &input : inputs)
    input.attach_grad();
  auto tape = record();
  std::vector<Array> values =
      runAll<Array>(program, inputs, [&](std::int64_t place) { return index.to(deviceAt(place)); });
  Array loss = square(values.back());
  Elements all{toHost(values.back())};
  bool isReached = true;
  try {
    loss.backward();
  } catch (const Error &error) {
    isReached = error.message().find("was not recorded") == std::string::npos;
    if (isReached)
      throw;
  }
  for (const Array &input : inputs)
    all.push_back(toHost(input.grad()));
  return all;
}

/// Whether a gradient reaches each input.
std::vector<bool> reachedInputs(const RandomProgram &program) {
  size_t inputs = program.inputs.size();
  std::vector<bool> reached(inputs + program.steps.size());
  reached.back() = true;
  for (size_t i = program.steps.size(); i-- > 0;) {
    const Step &step = program.steps[i];
    for (size_t operand = 0; operand < step.operands.size() && reached[inputs + i]; ++operand) {
      bool isCompared = (step.op == "where" && operand == 0) || (step.op == "masked_fill" && operand == 1);
      if (!isCompared)
        reached[step.operands[operand]] = true;
    }
  }
  reached.resize(inputs);
  return reached;
}

/// The same results by jit and grad.
Elements jitted(const RandomProgram &program) {
  std::vector<Array> inputs = inputsOf(program), trained, others;
  Array index = array(std::vector<int>(program.ints.begin(), program.ints.end()), std::int64_t(program.ints.size()));
  std::vector<bool> isReached = reachedInputs(program);
  for (size_t i = 0; i < inputs.size(); ++i)
    (isReached[i] ? trained : others).push_back(inputs[i]);
  auto value = [&](const std::vector<Tensor> &first, const std::vector<Tensor> &second, const Tensor &at) {
    std::vector<Tensor> given;
    for (size_t i = 0, one = 0, two = 0; i < inputs.size(); ++i)
      given.push_back(isReached[i] ? first[one++] : second[two++]);
    return runAll<Tensor>(program, given, [&](std::int64_t place) { return at.to(deviceAt(place)); }).back();
  };
  auto loss = jit([&](const std::vector<Tensor> &first, const std::vector<Tensor> &second, const Tensor &at) {
    return square(value(first, second, at)).sum();
  });
  Elements all{toHost(jit(value)(trained, others, index))};
  std::vector<Array> gradients = trained.empty() ? trained : grad(loss)(trained, others, index);
  for (size_t i = 0, next = 0; i < inputs.size(); ++i)
    all.push_back(isReached[i] ? toHost(gradients[next++]) : std::vector<double>(program.inputs[i].size()));
  return all;
}

/// The value by a compiled graph.
Elements compiled(const RandomProgram &program, const std::string &devices) {
  Graph graph("program");
  graph.set_devices(devices);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    inputs.push_back(
        graph.input("x" + std::to_string(i), f64,
                    Shape(std::vector<Dim>(program.inputShapes[i].begin(), program.inputShapes[i].end()))));
  Tensor index = graph.input("index", i32, Shape(std::int64_t(program.ints.size())));
  Tensor result = runAll<Tensor>(program, inputs, [&](std::int64_t place) { return index.to(deviceAt(place)); }).back();
  graph.output("y", result);
  Program run = compile(graph);
  auto set = [&](const std::string &name, const auto &values) {
    try {
      run.set_input(name, values);
    } catch (const Error &) { // the result does not depend on it
    }
  };
  for (size_t i = 0; i < program.inputs.size(); ++i)
    set("x" + std::to_string(i), program.inputs[i]);
  set("index", std::vector<std::int32_t>(program.ints.begin(), program.ints.end()));
  run.run("predict", 1);
  return {run.output<double>("y")};
}

bool areSame(const Elements &a, const Elements &b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(double)) != 0)
      return false;
  return true;
}

json runCase(const RandomProgram &program, const std::string &devices) {
  json steps = json::array();
  for (const Step &step : program.steps)
    steps.push_back(
        {{"op", step.op}, {"operands", step.operands}, {"integers", step.integers}, {"numbers", step.numbers}});
  json line{{"inputs", program.inputs}, {"shapes", program.inputShapes}, {"steps", steps}, {"index", program.ints}};
  Elements eager = recorded(program), whole = jitted(program), graph = compiled(program, devices);
  line["value"] = eager[0];
  line["gradients"] = Elements(eager.begin() + 1, eager.end());
  if (!areSame(eager, whole, eager.size()))
    line["error"] = areSame(eager, whole, 1) ? "gradients by record and by grad(jit) differ in bits"
                                             : "values of calls and of jit differ in bits";
  else if (!areSame(eager, graph, 1))
    line["error"] = "values of calls and of the compiled graph differ in bits";
  return line;
}

} // namespace

int main(int argc, char **argv) {
  std::string devices = argv[1];
  size_t most = std::stoul(argv[2]);
  if (devices.find("cuda") != std::string::npos)
    useCudaDoubles(/*devices=*/2);
  set_devices(devices);
  for (int i = 3; i < argc; ++i) {
    json line;
    try {
      RandomProgram program = randomProgram(std::uint32_t(std::stoul(argv[i])), most, size_t(gpu_count()) + 1);
      line = runCase(program, devices);
    } catch (const std::exception &error) {
      line["error"] = error.what();
    }
    line["name"] = "program " + std::string(argv[i]) + " on " + devices;
    std::cout << line.dump() << std::endl;
  }
  return 0;
}
