#include "Process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::test {

// Output goes to unnamed files, so that a child never blocks on its reader.
static int unnamedFile() {
  FILE *file = std::tmpfile();
  int descriptor = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
  std::fclose(file);
  return descriptor;
}

static std::string drained(int descriptor) {
  std::string text;
  char block[4096];
  lseek(descriptor, 0, SEEK_SET);
  for (ssize_t count; (count = read(descriptor, block, sizeof block)) > 0;)
    text.append(block, static_cast<size_t>(count));
  close(descriptor);
  return text;
}

Process::Process(const std::string &program, const std::vector<std::string> &arguments,
                 const std::function<void()> &prepare)
    : out_(unnamedFile()), err_(unnamedFile()) {
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  child_ = fork();
  if (child_ != 0)
    return;
  dup2(out_, STDOUT_FILENO);
  dup2(err_, STDERR_FILENO);
  if (prepare)
    prepare();
  execv(program.c_str(), argv.data());
  _exit(127);
}

void Process::signal(int number) const { kill(child_, number); }

bool Process::isRunning() const {
  siginfo_t end = {};
  waitid(P_PID, static_cast<id_t>(child_), &end, WEXITED | WNOHANG | WNOWAIT);
  return end.si_pid == 0;
}

bool Process::stop() const {
  kill(child_, SIGSTOP);
  siginfo_t change = {};
  waitid(P_PID, static_cast<id_t>(child_), &change, WSTOPPED | WEXITED | WNOWAIT);
  return change.si_code == CLD_STOPPED;
}

ProcessResult Process::wait() {
  int status = 0;
  waitpid(child_, &status, 0);
  ProcessResult result;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  result.out = drained(out_);
  result.err = drained(err_);
  return result;
}

ProcessResult run(const std::string &program, const std::vector<std::string> &arguments,
                  const std::function<void()> &prepare) {
  return Process(program, arguments, prepare).wait();
}

} // namespace sluice::test
