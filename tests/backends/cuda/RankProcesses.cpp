#include "tests/backends/cuda/RankProcesses.h"

#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace sluice::test {

static constexpr size_t kElements = 4096; // bytes sent or received
static constexpr unsigned kLongest = 60;  // timeout of a process, in seconds

const sluice_backend_run &loadCudaRunHalf(const Environment &environment) {
  for (const char *name : {"SLUICE_CUDA_DRIVER", "SLUICE_NCCL"})
    setenv(name, SLUICE_CUDA_EMU_DRIVER, 1);
  for (const auto &[name, value] : environment)
    setenv(name.c_str(), value.c_str(), 1);
  void *library = dlopen(SLUICE_CUDA_RUN_HALF, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))()->run;
}

void DeviceRank::check(sluice_status status) const {
  if (status != SLUICE_OK)
    throw std::runtime_error(std::to_string(int(status)) + ": " + half.last_error(run));
}

DeviceRank::DeviceRank(const sluice_backend_run &half, int32_t device) : half(half), device(device) {
  sluice_run_options options{sizeof options, nullptr, "", nullptr};
  check(half.open(&options, &run));
  check(half.queue_create(run, device, SLUICE_QUEUE_COMMUNICATION, "exchanges", &queue));
  check(half.allocate(run, device, 2 * kElements * sizeof(float), &memory));
}

DeviceRank::~DeviceRank() {
  leave();
  half.queue_destroy(queue);
  half.release(run, device, memory);
  half.close(run);
}

sluice_unique_id DeviceRank::makeId() {
  sluice_unique_id id;
  check(table().unique_id(run, &id));
  return id;
}

void DeviceRank::join(const sluice_unique_id &id, int32_t rank, int32_t size, double patience) {
  sluice_transport_link link{sizeof link, nullptr, nullptr, patience};
  sluice_communicator_options options{sizeof options, &id, rank, size, device, patience > 0 ? &link : nullptr};
  check(table().init(run, &options, &communicator));
}

void DeviceRank::leave() {
  if (communicator)
    table().destroy(std::exchange(communicator, nullptr));
}

void DeviceRank::put(sluice_exchange_kind kind, size_t count, const std::vector<size_t> &counts,
                     sluice_reduction reduction) {
  float *send = static_cast<float *>(memory);
  sluice_exchange exchange{sizeof exchange,
                           kind,
                           SLUICE_DTYPE_f32,
                           reduction,
                           0,
                           send,
                           send + kElements,
                           count,
                           counts.empty() ? nullptr : counts.data(),
                           "test"};
  check(table().exchange(communicator, queue, &exchange));
}

void DeviceRank::wait() { check(half.synchronize_queue(queue)); }

void DeviceRank::copy(const void *from, void *to, size_t bytes, bool up) {
  sluice_copy copy{sizeof copy, up ? SLUICE_HOST : device, up ? device : SLUICE_HOST, from, to, bytes, "test"};
  check(half.copy(queue, &copy));
}

std::vector<float> DeviceRank::exchange(sluice_exchange_kind kind, const std::vector<float> &values,
                                        const std::vector<size_t> &counts) {
  size_t received = values.size();
  if (kind == SLUICE_ALL_GATHER)
    for (received = 0; size_t count : counts)
      received += count;
  std::vector<float> found(received);
  copy(values.data(), memory, values.size() * sizeof(float), /*up=*/true);
  put(kind, values.size(), counts);
  copy(static_cast<float *>(memory) + kElements, found.data(), found.size() * sizeof(float), /*up=*/false);
  wait();
  return found;
}

/// Runs in a separate process: reports its result, and exits.
[[noreturn]] static void runRank(int32_t rank, int32_t size, const int (&ids)[2], int answer,
                                 const std::function<std::string(int32_t, const ShareId &)> &body) {
  alarm(kLongest);
  ShareId share = [&](DeviceRank &its) {
    sluice_unique_id id;
    if (rank > 0 && read(ids[0], &id, sizeof id) != sizeof id)
      throw std::runtime_error("rank 0 sent no id");
    if (rank == 0)
      id = its.makeId();
    for (int32_t other = 1; rank == 0 && other < size; ++other)
      if (write(ids[1], &id, sizeof id) != sizeof id)
        throw std::runtime_error("the id cannot be sent");
    return id;
  };
  std::string said;
  try {
    said = body(rank, share);
  } catch (const std::exception &error) {
    said = error.what();
  }
  bool isSaid = write(answer, said.data(), said.size()) == ssize_t(said.size());
  _exit(isSaid ? 0 : 1);
}

std::vector<std::string> inProcesses(int32_t size, const std::function<std::string(int32_t, const ShareId &)> &body,
                                     const Environment &environment) {
  for (const auto &[name, value] : environment)
    setenv(name.c_str(), value.c_str(), 1);
  int ids[2];
  std::vector<std::pair<pid_t, int>> processes; // and their answers
  if (pipe(ids) != 0)
    throw std::runtime_error("no pipe");
  for (int32_t rank = 0; rank < size; ++rank) {
    int answer[2];
    if (pipe(answer) != 0)
      throw std::runtime_error("no pipe");
    pid_t process = fork();
    if (process == 0)
      runRank(rank, size, ids, answer[1], body);
    close(answer[1]);
    processes.emplace_back(process, answer[0]);
  }
  std::vector<std::string> said;
  for (auto [process, answer] : processes) {
    char text[4096];
    ssize_t bytes = 0;
    std::string all;
    while ((bytes = read(answer, text, sizeof text)) > 0)
      all.append(text, size_t(bytes));
    close(answer);
    int state = 0;
    waitpid(process, &state, 0);
    said.push_back(WIFSIGNALED(state) ? "killed" : all);
  }
  close(ids[0]);
  close(ids[1]);
  for (const auto &[name, value] : environment)
    unsetenv(name.c_str());
  return said;
}

} // namespace sluice::test
