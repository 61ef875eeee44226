#include "tools/compiler/Linker.h"

#include "lld/Common/Driver.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/compiler/Installation.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/Binary.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/raw_ostream.h"
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace sluice::compiler {

namespace {
/// A file in memory; its path is valid during its lifetime.
class MemoryFile {
public:
  explicit MemoryFile(llvm::StringRef contents) : descriptor(memfd_create("sluice-object", MFD_CLOEXEC)) {
    if (descriptor < 0) {
      error = std::error_code(errno, std::generic_category());
      return;
    }
    llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/false);
    out << contents;
    out.flush();
    if (out.has_error()) {
      error = out.error();
      out.clear_error();
    }
  }
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

  std::error_code error; // error of its creation, if any

private:
  int descriptor;
};

/// A path whose output goes to memory. lld maps its output, so a full disk would kill it with SIGBUS.
class MemoryOutput {
public:
  MemoryOutput() {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      error = std::error_code(errno, std::generic_category());
      return;
    }
    try {
      reader = std::thread([this] { drain(); });
    } catch (const std::system_error &refused) {
      error = refused.code();
      close(ends[0]);
      close(ends[1]);
    }
  }
  ~MemoryOutput() { finish(); }
  MemoryOutput(const MemoryOutput &) = delete;
  MemoryOutput &operator=(const MemoryOutput &) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }
  /// The output. No further writes are possible.
  const std::string &finish() {
    if (reader.joinable()) {
      close(ends[1]);
      reader.join();
      close(ends[0]);
    }
    return contents;
  }

  std::error_code error; // error of its creation, or of an incomplete output

private:
  /// Reads to the end, even if memory is exhausted, because the writer must not block.
  void drain() {
    char buffer[65536];
    ssize_t count;
    while ((count = read(ends[0], buffer, sizeof buffer)) > 0 || (count < 0 && errno == EINTR))
      try {
        if (count > 0 && !error)
          contents.append(buffer, size_t(count));
      } catch (const std::bad_alloc &) {
        error = std::make_error_code(std::errc::not_enough_memory);
      }
  }

  int ends[2] = {-1, -1};
  std::thread reader;
  std::string contents;
};

} // namespace

static llvm::Error appendSharedLibraries(std::vector<std::string> &arguments, llvm::ArrayRef<const char *> sonames) {
  for (const char *soname : sonames) {
    auto library = findSystemLibrary(soname);
    if (!library)
      return library.takeError();
    arguments.push_back(*library);
  }
  return llvm::Error::success();
}

/// The command line of a compiler driver, with the start-up objects that were copied when Sluice was built.
static llvm::Expected<std::vector<std::string>> makeArguments(llvm::ArrayRef<std::string> objects,
                                                              llvm::StringRef output, LinkOutput kind) {
  std::vector<std::string> arguments = {"ld.lld", "-o", output.str(), "--build-id=none", "--threads=1"};
  auto add = [&](llvm::ArrayRef<std::string> more) { arguments.insert(arguments.end(), more.begin(), more.end()); };
  if (kind == LinkOutput::Object) {
    add({"-r"});
    add(objects);
    return arguments;
  }

  add({"--eh-frame-hdr", "--as-needed", "--hash-style=gnu", "--gc-sections", "--icf=safe", "--strip-all", "-z", "relro",
       "-z", "now", "--export-dynamic-symbol=sluice_artifact_query"});
  if (kind == LinkOutput::SharedLibrary) {
    add({"-shared", "-z", "defs"});
    add(objects);
    if (llvm::Error error = appendSharedLibraries(arguments, {"libm.so.6", "libc.so.6"}))
      return error;
    return arguments;
  }

  auto folder = findLinkFolder();
  if (!folder)
    return folder.takeError();
  auto file = [&](const char *name) { return *folder + "/" + name; };
  add({"-pie", "-dynamic-linker", "/lib64/ld-linux-x86-64.so.2", file("Scrt1.o"), file("crti.o"), file("crtbeginS.o")});
  add(objects);
  add({file("libsluice_runner.a"), file("libsluice_runtime.a"), file("libsluice_cpu_run.a"), file("libsluice_io.a"),
       file("libsluice_plan.a"), file("libsluice_help.a"), file("libsluice_base.a"), file("libsluice_files.a"),
       (llvm::Twine("@") + file("runtime.rsp")).str()});
  if (llvm::Error error = appendSharedLibraries(
          arguments, {"libtbb.so.12", "libz.so.1", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"}))
    return error;
  add({file("libc_nonshared.a"), "/lib64/ld-linux-x86-64.so.2", file("libgcc.a"), file("crtendS.o"), file("crtn.o")});
  return arguments;
}

/// Runs lld. Its state is global, so calls are serialized; after a crash inside it no further call is possible.
static llvm::Error runLinker(llvm::ArrayRef<std::string> arguments) {
  static std::mutex mutex;
  static bool usable = true;
  std::lock_guard lock(mutex);
  if (!usable)
    return makeError(ExitCode::Internal, "the linker crashed before and cannot run again in this process");

  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  std::string text;
  llvm::raw_string_ostream log(text);
  usable = false; // unless it returns
  lld::Result result = lld::lldMain(pointers, log, log, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode == 0)
    return llvm::Error::success();
  llvm::StringRef message = llvm::StringRef(log.str()).rtrim();
  bool environment = message.contains("cannot open") || message.contains("failed to ") || message.contains("No space");
  return makeError(environment ? ExitCode::Invalid : ExitCode::Internal, "linking failed: " + message);
}

/// Links object files in memory and returns the output.
static llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects, LinkOutput kind) {
  std::deque<MemoryFile> inputs;
  std::vector<std::string> inputPaths;
  for (const std::string &object : objects) {
    const MemoryFile &input = inputs.emplace_back(object);
    if (input.error)
      return makeError(input.error == std::errc::not_enough_memory ? ExitCode::Exhausted : ExitCode::Invalid,
                       "an object of " + llvm::Twine(object.size()) + " bytes in memory: " + input.error.message());
    inputPaths.push_back(input.path());
  }
  MemoryOutput linked;
  if (linked.error)
    return makeError(ExitCode::Exhausted, "linking: " + linked.error.message());
  auto arguments = makeArguments(inputPaths, linked.path(), kind);
  if (!arguments)
    return arguments.takeError();
  // Kernels are named after their ops. In a library, symbols of other libraries could replace them and vice versa.
  MemoryFile symbols("{ global: sluice_artifact_query; local: *; };");
  if (symbols.error)
    return makeError(ExitCode::Exhausted, "linking: " + symbols.error.message());
  if (kind == LinkOutput::SharedLibrary)
    arguments->push_back("--version-script=" + symbols.path());
  if (llvm::Error error = runLinker(*arguments))
    return error;
  std::string contents = linked.finish();
  if (linked.error)
    return makeError(ExitCode::Exhausted, "linking: " + linked.error.message());
  return contents;
}

llvm::Expected<std::string> joinObjects(llvm::ArrayRef<std::string> objects, llvm::StringRef symbol) {
  auto joined = link(objects, LinkOutput::Object);
  if (!joined)
    return joined.takeError();
  llvm::objcopy::ConfigManager config;
  auto keep = llvm::objcopy::NameOrPattern::create(symbol, llvm::objcopy::MatchStyle::Literal,
                                                   [](llvm::Error error) { return error; });
  if (llvm::Error error = config.Common.SymbolsToKeepGlobal.addMatcher(std::move(keep)))
    return error;
  auto binary = llvm::object::createBinary(llvm::MemoryBufferRef(*joined, "artifact"));
  if (!binary)
    return binary.takeError();
  llvm::SmallString<0> hidden;
  llvm::raw_svector_ostream out(hidden);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, out))
    return error;
  return hidden.str().str();
}

llvm::Error linkArtifact(llvm::ArrayRef<std::string> objects, llvm::StringRef output, LinkOutput kind) {
  auto contents = link(objects, kind);
  if (!contents)
    return contents.takeError();
  return writeWhole(*contents, output, kind != LinkOutput::Object);
}

} // namespace sluice::compiler
