// The C ABI over Instance: looks up names and converts exceptions to codes.
#include "sluice/runtime/api.h"

#include "runtime/base/Child.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/InputFile.h"
#include "runtime/instance/Variants.h"
#include "runtime/io/File.h"

#include <cstddef>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <set>
#include <sstream>

using namespace sluice::runtime;

struct sluice_instance {
  Instance instance;
  std::set<std::string> devices = {}; ///< texts that were returned
};

struct sluice_pool {
  std::shared_ptr<DevicePool> pool;
};

static std::string &lastError() {
  thread_local std::string text;
  return text;
}

template <typename Body> static int answered(Body body) {
  Status status = guarded(body);
  lastError() = std::move(status.message);
  return static_cast<int>(status.code);
}

template <typename T> static T &required(T *pointer, const char *what) {
  if (!pointer)
    failUsage(concat(what, " is null"));
  return *pointer;
}

static std::span<const std::byte> bytesOf(const void *data, uint64_t bytes) {
  if (bytes > 0)
    required(data == nullptr ? nullptr : &bytes, "data");
  return {static_cast<const std::byte *>(data), bytes};
}

static std::span<std::byte> bytesOf(void *data, uint64_t bytes) {
  std::span<const std::byte> span = bytesOf(static_cast<const void *>(data), bytes);
  return {const_cast<std::byte *>(span.data()), span.size()};
}

static const Value &named(const Value *found, const Entry &entry, const char *kind, const char *name) {
  if (!found)
    failUsage(concat("entry point ", quote(entry.name), " has no ", kind, " ", quote(name)));
  return *found;
}

static const std::shared_ptr<DevicePool> &poolOf(const sluice_pool *pool) {
  return pool ? pool->pool : DevicePool::ofProcess();
}

static void checkDevice(const Instance &model, const Value &value, const std::string &device) {
  if (std::string its = model.deviceOf(value); its != device)
    failUsage(concat(quote(value.name), " is on ", its, ", not on ", quote(device)));
}

static std::map<std::string, std::string> settingsIn(const char *lines) {
  std::map<std::string, std::string> settings;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    size_t equals = line.find('=');
    if (equals == std::string::npos)
      failUsage(concat("settings of backends: ", quote(line), " is not name=settings"));
    settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

extern "C" {

const char *sluice_last_error(void) { return lastError().c_str(); }

int sluice_artifact_load(const char *path, const sluice_artifact **artifact) {
  return answered([&] {
    required(artifact, "artifact") = nullptr;
    // A name with a folder is a file path. The loader would block on a pipe without a writer.
    if (std::string file = &required(path, "path"); file.find('/') != std::string::npos)
      check(file, sluice::files::checkReadable(file, sluice::files::Source::regular));
    std::unique_lock lock = lockForks();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      failInvalid(dlerror());
    auto query = reinterpret_cast<const sluice_artifact *(*)()>(dlsym(library, "sluice_artifact_query"));
    if (!query)
      failInvalid(concat(path, ": not a Sluice artifact: it has no sluice_artifact_query"));
    *artifact = query();
  });
}

int sluice_pool_create(sluice_pool **pool) {
  return answered([&] {
    required(pool, "pool") = nullptr;
    *pool = new sluice_pool{std::make_shared<DevicePool>()};
  });
}

void sluice_pool_destroy(sluice_pool *pool) { delete pool; }

int sluice_pool_trim(sluice_pool *pool) {
  return answered([&] { poolOf(pool)->trim(); });
}

int sluice_pool_get_memory(sluice_pool *pool, const char *device, sluice_pool_memory *memory) {
  return answered([&] {
    std::string name = &required(device, "device");
    sluice_pool_memory sum{required(memory, "memory").struct_size, 0, 0, 0};
    if (sum.struct_size < sizeof sum)
      failUsage(concat("memory.struct_size is ", sum.struct_size, ", and must be at least ", sizeof sum));
    for (const auto &[backend, settings, number, count] : poolOf(pool)->memory()) {
      if (concat(backend, ":", number) != name)
        continue;
      sum.bytes_in_use += count.inUse;
      sum.bytes_held += count.held;
      sum.driver_allocations += count.allocations;
    }
    *memory = sum;
  });
}

int sluice_instance_create(const sluice_artifact *artifact, const sluice_instance_options *options,
                           sluice_instance **instance) {
  return answered([&] {
    required(instance, "instance") = nullptr;
    InstanceOptions wanted;
    if (options && options->struct_size >= offsetof(sluice_instance_options, threads) + sizeof options->threads)
      wanted.threads = options->threads;
    if (options && options->struct_size >= offsetof(sluice_instance_options, backends) + sizeof options->backends)
      wanted.devices.settings = settingsIn(options->backends ? options->backends : "");
    if (options && options->struct_size >= offsetof(sluice_instance_options, devices) + sizeof options->devices)
      wanted.devices.list = options->devices ? options->devices : "";
    bool hasPool = options && options->struct_size >= offsetof(sluice_instance_options, pool) + sizeof options->pool;
    const std::shared_ptr<DevicePool> &pool = poolOf(hasPool ? options->pool : nullptr);
    const sluice_artifact &chosen = chooseVariant(required(artifact, "artifact"), *pool, wanted);
    *instance = new sluice_instance{Instance(chosen, pool, wanted)};
  });
}

void sluice_instance_destroy(sluice_instance *instance) { delete instance; }

int sluice_instance_set_state(sluice_instance *instance, const char *name, const void *data, uint64_t bytes) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    model.setState(model.state(&required(name, "name")), bytesOf(data, bytes));
  });
}

int sluice_instance_get_state(sluice_instance *instance, const char *name, void *data, uint64_t bytes) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    model.getState(model.state(&required(name, "name")), bytesOf(data, bytes));
  });
}

int sluice_instance_set_input(sluice_instance *instance, const char *entry, const char *name, const void *data,
                              uint64_t bytes, int64_t rows) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    const Entry &found = model.entry(&required(entry, "entry"));
    model.checkRows(found, rows);
    model.setInput(named(found.findInput(&required(name, "name")), found, "input", name), bytesOf(data, bytes), rows);
  });
}

int sluice_instance_get_device(sluice_instance *instance, const char *entry, const char *name, const char **device) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    required(device, "device") = nullptr;
    const Entry &found = model.entry(&required(entry, "entry"));
    const Value *input = found.findInput(&required(name, "name"));
    const Value &value = input ? *input : named(found.findOutput(name), found, "input or output", name);
    *device = instance->devices.insert(model.deviceOf(value)).first->c_str();
  });
}

int sluice_instance_bind_input(sluice_instance *instance, const char *entry, const char *name, const char *device,
                               void *address, uint64_t bytes, int64_t rows) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    const Entry &found = model.entry(&required(entry, "entry"));
    model.checkRows(found, rows);
    const Value &input = named(found.findInput(&required(name, "name")), found, "input", name);
    checkDevice(model, input, &required(device, "device"));
    required(address ? &bytes : nullptr, "address");
    model.bindInput(input, static_cast<std::byte *>(address), bytes, rows);
  });
}

int sluice_instance_get_output_address(sluice_instance *instance, const char *entry, const char *name,
                                       const char *device, void **address) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    required(address, "address") = nullptr;
    const Entry &found = model.entry(&required(entry, "entry"));
    const Value &output = named(found.findOutput(&required(name, "name")), found, "output", name);
    checkDevice(model, output, &required(device, "device"));
    *address = model.outputAddress(output);
  });
}

int sluice_instance_run(sluice_instance *instance, const char *entry, int64_t rows) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    model.run(model.entry(&required(entry, "entry")), rows);
  });
}

int sluice_instance_get_output(sluice_instance *instance, const char *entry, const char *name, void *data,
                               uint64_t bytes, int64_t rows) {
  return answered([&] {
    Instance &model = required(instance, "instance").instance;
    const Entry &found = model.entry(&required(entry, "entry"));
    model.checkRows(found, rows);
    model.getOutput(named(found.findOutput(&required(name, "name")), found, "output", name), bytesOf(data, bytes),
                    rows);
  });
}
}
