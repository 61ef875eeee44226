// Runs a program's main() again and again in forked copies, so that thousands of runs pay once for its start: loading
// LLVM takes longer than reading a bad file. Preloaded into the program (LD_PRELOAD), it takes main() over.
//
// A request, on descriptor 198, is a count and so many texts, each with its length before it (32 bits): the file for
// the program's output, the folder that it runs in, and its arguments from argv[0] on. The answer, on descriptor 199,
// is the status of wait4 and the peak memory in kB (64 bits each).
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using Main = int (*)(int, char **, char **);

constexpr int requests = 198, answers = 199;
Main realMain = nullptr;

uint64_t limitFrom(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

bool readAll(void *to, size_t bytes) {
  char *next = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t count = read(requests, next, bytes);
    if (count <= 0)
      return false;
    next += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

bool readRequest(std::vector<std::string> &texts) {
  uint32_t count = 0, size = 0;
  if (!readAll(&count, sizeof count))
    return false;
  texts.assign(count, {});
  for (std::string &text : texts) {
    if (!readAll(&size, sizeof size))
      return false;
    text.resize(size);
    if (!readAll(text.data(), size))
      return false;
  }
  return true;
}

void setLimits() {
  if (rlim_t bytes = limitFrom("MUTANTS_BYTES")) {
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  alarm(static_cast<unsigned>(limitFrom("MUTANTS_SECONDS"))); // SIGALRM ends it
}

int runHere(std::vector<std::string> &texts, char **environment) {
  close(requests);
  close(answers);
  int output = open(texts[0].c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), input = open("/dev/null", O_RDONLY);
  dup2(input, 0);
  dup2(output, 1);
  dup2(output, 2);
  if (output < 0 || input < 0 || chdir(texts[1].c_str()) != 0)
    _exit(99);
  close(output);
  close(input);
  setLimits();
  std::vector<char *> arguments;
  for (size_t i = 2; i < texts.size(); ++i)
    arguments.push_back(texts[i].data());
  arguments.push_back(nullptr);
  return realMain(static_cast<int>(arguments.size()) - 1, arguments.data(), environment);
}

int serve(int, char **, char **environment) {
  std::vector<std::string> texts;
  while (readRequest(texts)) {
    pid_t child = fork();
    if (child == 0)
      return runHere(texts, environment);
    int status = -1;
    rusage usage{};
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
      return 98;
    int64_t answer[] = {status, usage.ru_maxrss};
    if (write(answers, answer, sizeof answer) != sizeof answer)
      return 98;
  }
  _exit(0);
}

} // namespace

extern "C" __attribute__((visibility("default"))) int
__libc_start_main(Main main, int argc, char **argv, void (*init)(), void (*fini)(), void (*last)(), void *stack) {
  using Start = int (*)(Main, int, char **, void (*)(), void (*)(), void (*)(), void *);
  realMain = main;
  unsetenv("LD_PRELOAD"); // not for its children
  auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serve, argc, argv, init, fini, last, stack);
}
