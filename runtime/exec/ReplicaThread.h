// A host thread that runs work for one replica.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::runtime {

class ReplicaThread {
public:
  /// `name` is the thread's name in tools, at most 15 characters.
  explicit ReplicaThread(const std::string &name);
  ReplicaThread(const ReplicaThread &) = delete;
  ReplicaThread &operator=(const ReplicaThread &) = delete;
  /// Ends the thread. No work may be in progress.
  ~ReplicaThread();

  /// Runs `work` in the thread. `work` must not throw and must live until `wait` returns.
  void start(const std::function<void()> &work);
  /// Waits for the last started work.
  void wait();

private:
  void serve(const std::string &name);
  void give(const std::function<void()> *work, bool ends);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()> *work_ = nullptr; ///< work to do or in progress; null: none
  bool ends_ = false;
  std::thread thread_;
};

} // namespace sluice::runtime
