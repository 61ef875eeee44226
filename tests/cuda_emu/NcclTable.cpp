#include "tests/cuda_emu/NcclTable.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace sluice::nccl_emu {

static constexpr const char *kFolder = "/dev/shm", *kPrefix = "sluice-nccl-";

/// Whether a process runs; one that has ended and that its parent has not asked for yet does not.
static bool isAlive(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH)
    return false;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t name = text.rfind(')');
  return name == std::string::npos || name + 2 >= text.size() || (text[name + 2] != 'Z' && text[name + 2] != 'X');
}

/// Tables of processes that ended before all ranks had come.
static void removeAbandoned() {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(kFolder, error)) {
    std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && !isAlive(std::atoi(name.c_str() + std::strlen(kPrefix))))
      std::filesystem::remove(entry.path(), error);
  }
}

static std::string nameIn(const char (&id)[kIdBytes]) { return "/" + std::string(id, strnlen(id, 64)); }

static std::shared_ptr<Table> mapTable(const std::string &name) {
  int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0)
    return nullptr;
  void *address = MAP_FAILED;
  if (ftruncate(file, sizeof(Table)) == 0) // zeros, which take no memory until they are written
    address = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (address == MAP_FAILED)
    return nullptr;
  return {static_cast<Table *>(address), [](Table *table) { munmap(table, sizeof(Table)); }};
}

void makeId(char (&id)[kIdBytes]) {
  static std::atomic<int> made = 0;
  std::random_device random;
  for (char &byte : id)
    byte = char(random() | 1u);
  std::string name = kPrefix + std::to_string(getpid()) + "-" + std::to_string(made++);
  std::memcpy(id, name.c_str(), name.size() + 1);
}

/// The driver's turns order those of one process.
std::shared_ptr<Table> openTable(const char (&id)[kIdBytes]) {
  static std::map<std::string, std::weak_ptr<Table>> open;
  std::string bytes(id, kIdBytes);
  if (!bytes.starts_with(kPrefix))
    return nullptr;
  std::weak_ptr<Table> &known = open[bytes];
  std::shared_ptr<Table> table = known.lock();
  if (table)
    return table;
  removeAbandoned();
  known = table = mapTable(nameIn(id));
  uint64_t first = 0, its = std::hash<std::string>()(bytes) | 1;
  bool isIts = table && (table->id.compare_exchange_strong(first, its) || first == its);
  return isIts ? table : nullptr;
}

void closeTable(const char (&id)[kIdBytes]) { shm_unlink(nameIn(id).c_str()); }

bool Table::haveAll(std::atomic<uint64_t> Seat::*progress, uint64_t number) const {
  for (int rank = 0; rank < size; ++rank)
    if ((seats[rank].*progress).load(std::memory_order_acquire) < number)
      return false;
  return true;
}

int Table::findLost(uint64_t number) const {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point lastLook; // at processes, which takes time
  bool looks = Clock::now() - lastLook > std::chrono::milliseconds(20);
  lastLook = looks ? Clock::now() : lastLook;
  for (int rank = 0; rank < size; ++rank) {
    const Seat &seat = seats[rank];
    Presence presence = seat.presence.load(std::memory_order_acquire);
    if (presence == Presence::Absent || seat.process == getpid() || seat.arrived >= number)
      continue;
    if (presence != Presence::Here || (looks && !isAlive(seat.process)))
      return rank;
  }
  return -1;
}

} // namespace sluice::nccl_emu
