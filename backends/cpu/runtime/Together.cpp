#include "backends/cpu/runtime/Together.h"

#include <utility>

namespace sluice::cpu {

using exchange::Error;

namespace {

/// One exchange in flight.
class Course {
public:
  /// Submits it.
  explicit Course(Pending pending) : its_(std::move(pending)) {
    if (its_.across)
      return; // submitted by `advance`: other processes learn of it when the queue has reached it
    try {
      rendezvous_ = its_.ranks->put(its_.rank, its_.queue, std::move(its_.part));
    } catch (const Error &error) {
      error_ = error;
    }
  }

  const void *queue() const { return its_.queue; }
  const std::optional<Error> &error() const { return error_; }
  bool isOver() const { return error_ || isDone_; }

  /// Called when its queue has reached it. Advances as far as possible; waits only for other processes.
  void advance(const sluice_run_services &services) {
    if (its_.across)
      return runAcross();
    if (!std::exchange(hasArrived_, true))
      its_.ranks->arrive(*rendezvous_);
    if (rendezvous_->state() == Rendezvous::State::Running && rendezvous_->help(services))
      its_.ranks->finish(*rendezvous_);
    look();
  }

  /// Records whether it has completed.
  void look() {
    if (isOver() || its_.across)
      return;
    isDone_ = rendezvous_->state() == Rendezvous::State::Done;
    if (rendezvous_->state() == Rendezvous::State::Failed) {
      Error error = its_.ranks->errorOf(*rendezvous_);
      error_ = Error(error.status(), its_.what + ": " + error.what());
    }
  }

private:
  /// Waits for the other processes.
  void runAcross() {
    try {
      its_.across->run(its_.part);
      isDone_ = true;
    } catch (const Error &error) {
      error_ = error;
    }
  }

  Pending its_;
  std::shared_ptr<Rendezvous> rendezvous_;
  std::optional<Error> error_;
  bool hasArrived_ = false, isDone_ = false;
};

} // namespace

/// Whether all earlier work of its queue has completed.
static bool isFirst(const std::vector<Course> &courses, size_t at) {
  for (size_t before = 0; before < at; ++before)
    if (courses[before].queue() == courses[at].queue() && !courses[before].isOver())
      return false;
  return true;
}

/// Advances every exchange that can advance. Returns whether some exchange completed, so that more may advance now, and
/// whether some are left.
static std::pair<bool, bool> advanceAll(std::vector<Course> &courses, const sluice_run_services &services) {
  bool ended = false, isLeft = false;
  for (size_t at = 0; at < courses.size(); ++at) {
    Course &course = courses[at];
    if (course.isOver())
      continue;
    if (isFirst(courses, at))
      course.advance(services);
    else
      course.look();
    (course.isOver() ? ended : isLeft) = true;
  }
  return {ended, isLeft};
}

void exchangeAll(Hall &hall, std::vector<Pending> pending, const sluice_run_services &services) {
  std::vector<Course> courses;
  for (Pending &next : pending)
    courses.emplace_back(std::move(next));
  for (bool isLeft = true; isLeft;) {
    uint64_t seen = hall.changes();
    auto [ended, some] = advanceAll(courses, services);
    isLeft = some;
    if (isLeft && !ended)
      hall.waitForMore(seen);
  }
  for (const Course &course : courses)
    if (course.error())
      throw *course.error();
}

void Together::end(Hall &hall, const sluice_run_services &services) {
  if (depth_ == 0)
    throw Error(SLUICE_USAGE, "exchanges end that did not begin");
  if (--depth_ == 0)
    exchangeAll(hall, std::exchange(pending_, {}), services);
}

} // namespace sluice::cpu
