// The run half: null's memory and queues, copies that are counted, modules and launches of their kernels.
#include "tests/backends/scroll/Scroll.h"

#include <dlfcn.h>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::scroll {

namespace {

struct Op {
  std::string name;
  std::vector<size_t> operands;
};

struct Kernel {
  size_t operands = 0;
  int64_t elements = 0, elementsPerRow = 0;
  std::vector<Op> ops;
  std::vector<size_t> results;
};

} // namespace

} // namespace sluice::scroll

struct sluice_module {
  std::map<std::string, sluice::scroll::Kernel> kernels;
};

namespace sluice::scroll {

static sluice_backend_run null; // null's own table
static std::map<std::pair<int32_t, int32_t>, sluice_copy_count> counts;
static std::string error; // why the last call failed, if not in null

static sluice_status fail(sluice_status status, const std::string &why) {
  error = why;
  return status;
}

static const char *lastError(sluice_run *run) { return error.empty() ? null.last_error(run) : error.c_str(); }

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  counts.clear();
  error.clear();
  return null.open(options, run);
}

//===- modules ----------------------------------------------------------------------------------------------------===//

/// Reads one kernel behind its word "kernel"; the stream fails on what is none.
static Kernel readKernel(std::istream &in, std::string &name) {
  Kernel kernel;
  std::string word, line;
  size_t bytecode = 0;
  in >> name >> kernel.operands >> word >> kernel.elements >> kernel.elementsPerRow >> word;
  for (in >> word; in && word != "bytecode"; in >> word)
    kernel.results.push_back(std::stoul(word));
  in >> bytecode;
  std::getline(in, line);
  while (std::getline(in, line) && line != "end") {
    std::istringstream op(line);
    kernel.ops.emplace_back();
    op >> kernel.ops.back().name;
    for (size_t operand; op >> operand;)
      kernel.ops.back().operands.push_back(operand);
  }
  std::string bytes(bytecode, '\0');
  in.read(bytes.data(), std::streamsize(bytecode));
  if (!bytes.starts_with("ML\xefR"))
    in.setstate(std::ios::failbit);
  return kernel;
}

static sluice_status loadModule(sluice_run *, int32_t device, const void *blob, size_t bytes, sluice_module **module) {
  std::istringstream in(std::string(static_cast<const char *>(blob), bytes));
  auto loaded = std::make_unique<sluice_module>();
  std::string word, name;
  in >> word;
  bool isScroll = device == 0 && word == "scroll";
  while (isScroll && in >> word) {
    Kernel kernel = readKernel(in, name);
    if (word != "kernel" || !in)
      return fail(SLUICE_INVALID, "what scroll should load is no scroll of its own");
    loaded->kernels[name] = std::move(kernel);
  }
  if (!isScroll)
    return fail(SLUICE_INVALID, "what scroll should load is no scroll");
  *module = loaded.release();
  return SLUICE_OK;
}

static void unloadModule(sluice_module *module) { delete module; }

//===- launches ---------------------------------------------------------------------------------------------------===//

static float compute(const Op &op, float a, float b) {
  if (op.name == "add")
    return a + b;
  return op.name == "mul" ? a * b : a < 0 ? 0 : a; // not-a-number stays
}

static sluice_status launch(sluice_queue *, const sluice_launch *launch) {
  if (!launch->module || !launch->function || !launch->module->kernels.count(launch->function))
    return fail(SLUICE_UNSUPPORTED, std::string("scroll has no kernel ") + (launch->function ? launch->function : ""));
  const Kernel &kernel = launch->module->kernels.at(launch->function);
  for (int64_t i = 0; i < kernel.elements + launch->call->rows * kernel.elementsPerRow; ++i) {
    std::vector<float> values;
    for (size_t operand = 0; operand < kernel.operands; ++operand)
      values.push_back(static_cast<const float *>(launch->addresses[operand])[i]);
    for (const Op &op : kernel.ops)
      values.push_back(compute(op, values[op.operands.front()], values[op.operands.back()]));
    for (size_t result = 0; result < kernel.results.size(); ++result)
      static_cast<float *>(launch->addresses[kernel.operands + result])[i] = values[kernel.results[result]];
  }
  return SLUICE_OK;
}

//===- copies -----------------------------------------------------------------------------------------------------===//

static sluice_status copy(sluice_queue *queue, const sluice_copy *copy) {
  sluice_copy_count &count = counts[{copy->from_device, copy->to_device}];
  count = {copy->from_device, copy->to_device, count.copies + 1, count.bytes + int64_t(copy->bytes)};
  return null.copy(queue, copy);
}

static sluice_status copyCounts(sluice_run *, sluice_copy_count *list, size_t countSize, size_t capacity,
                                size_t *count) {
  *count = 0;
  for (const auto &[pair, total] : counts) {
    if (*count < capacity)
      sluice_copy_count_set(list, countSize, *count, &total);
    ++*count;
  }
  return SLUICE_OK;
}

const sluice_backend_run &runHalf() {
  static const sluice_backend_run half = [] {
    void *library = dlopen(NULL_RUN_HALF, RTLD_NOW | RTLD_LOCAL);
    null = *reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))()->run;
    sluice_backend_run run = null;
    run.open = open;
    run.last_error = lastError;
    run.module_load = loadModule;
    run.module_unload = unloadModule;
    run.launch = launch;
    run.copy = copy;
    run.copy_counts = copyCounts;
    return run;
  }();
  return half;
}

} // namespace sluice::scroll

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend backend = sluice::backend::backendTable(
      "scroll", "for tests of device code", &sluice::scroll::compileHalf(), &sluice::scroll::runHalf());
  return &backend;
}
