// A group of contexts; it must outlive them.
#pragma once

#include "tests/conformance/RunHalf.h"

namespace sluice::conformance {

class Group {
public:
  /// Skips the test if the backend has no groups.
  explicit Group(const Subject &subject) {
    if (!subject.run)
      throw Skipped("there is no run half");
    table_ = RunHalf(subject).table();
    if (!table_.group_create)
      throw Skipped("it has no groups");
    expect(table_.group_create(&group_) == SLUICE_OK, "group_create fails");
  }
  ~Group() {
    if (group_)
      table_.group_destroy(group_);
  }
  Group(const Group &) = delete;

  sluice_group *get() const { return group_; }

private:
  sluice_backend_run table_;
  sluice_group *group_ = nullptr;
};

} // namespace sluice::conformance
