#include "runtime/exec/ReplicaThread.h"

#include <pthread.h>

namespace sluice::runtime {

ReplicaThread::ReplicaThread(const std::string &name) : thread_([this, name] { serve(name); }) {}

ReplicaThread::~ReplicaThread() {
  give(nullptr, /*ends=*/true);
  thread_.join();
}

void ReplicaThread::start(const std::function<void()> &work) { give(&work, /*ends=*/false); }

void ReplicaThread::give(const std::function<void()> *work, bool ends) {
  std::lock_guard lock(mutex_);
  work_ = work;
  ends_ = ends;
  changed_.notify_all();
}

void ReplicaThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !work_; });
}

void ReplicaThread::serve(const std::string &name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return work_ || ends_; });
    if (ends_)
      return;
    lock.unlock();
    (*work_)();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

} // namespace sluice::runtime
