// A thread of the host that does what it is given, for one replica.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::runtime {

class ReplicaThread {
public:
  /// `name` is what tools show of it, its first 15 characters.
  explicit ReplicaThread(const std::string &name);
  ReplicaThread(const ReplicaThread &) = delete;
  ReplicaThread &operator=(const ReplicaThread &) = delete;
  /// No work may be under way.
  ~ReplicaThread();

  /// Has `work` done, which throws nothing and must live until `wait` returns.
  void start(const std::function<void()> &work);
  /// Waits for the work that was started last.
  void wait();

private:
  void serve(const std::string &name);
  void give(const std::function<void()> *work, bool ends);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()> *work_ = nullptr; ///< that is under way
  bool ends_ = false;
  std::thread thread_;
};

} // namespace sluice::runtime
