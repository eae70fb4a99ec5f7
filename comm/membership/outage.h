// Outage: that a member was itself cut off, so that its suspicions say nothing about the others.
#pragma once
#include <optional>

namespace skein::comm {

// In one epoch. Only the first outage counts, so that doubts cannot keep the members from ever agreeing.
class Outage {
 public:
  // Again and again: whether the member hears a quorum of the epoch's members.
  void hears_quorum(bool does, double now) {
    if (!does) was_cut_off_ = true;
    if (does && was_cut_off_ && !over_) over_ = now;
  }
  // Until `term` seconds after it heard a quorum again; a member that is still silent then has failed.
  bool casts_doubt(double now, double term) const { return was_cut_off_ && (!over_ || now - *over_ < term); }

 private:
  bool was_cut_off_ = false;
  std::optional<double> over_;  // since when it has heard a quorum again
};

}  // namespace skein::comm
