// The C ABI over Instance: looks up names and converts exceptions to codes.
#include "sluice/runtime/api.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/InputFile.h"
#include "runtime/instance/Variants.h"
#include "runtime/io/File.h"

#include <cstddef>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <sstream>

using namespace sluice::runtime;

struct sluice_instance {
  Instance instance;
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
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      failInvalid(dlerror());
    auto query = reinterpret_cast<const sluice_artifact *(*)()>(dlsym(library, "sluice_artifact_query"));
    if (!query)
      failInvalid(concat(path, ": not a Sluice artifact: it has no sluice_artifact_query"));
    *artifact = query();
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
    *instance = new sluice_instance{Instance(chooseVariant(required(artifact, "artifact"), wanted), wanted)};
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
