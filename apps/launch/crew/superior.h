// What a worker reports to the program that started it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "comm/join/sockets.h"

namespace skein::apps {

// The descriptor of the socket for reports, in the environment of a worker whose Supervisor
// replaces the dead.
inline constexpr const char* kReportsVariable = "SKEIN_REPORTS_FD";
// The place at which a fresh worker finds the job that it is to join, in its environment.
inline constexpr const char* kJoinVariable = "SKEIN_JOIN";

// The reports, as text. kMember is followed by the place, as --join takes it, where newcomers find the job.
// kDeserted comes from the part of --hosts on a host: none of its workers is a member at present.
inline constexpr const char *kMember = "member ", *kLeaving = "leaving", *kDeserted = "deserted";
// The order to such a part: it is too late for fresh workers.
inline constexpr const char* kThrough = "through";
// A claim of a view for an epoch of the membership; the answer, in the same form, has the view that is kept.
// The topmost launcher keeps the first view of each epoch.
inline constexpr const char* kRegister = "register ";
struct Claim {
  uint32_t epoch = 0;
  std::string view;  // its bytes

  std::string write() const;  // "register EPOCH HEX"
  // Nothing if the words are no claim.
  static std::optional<Claim> read(const std::string& words);
};
// A random word in the environment, equal for all workers whose claims reach the same launcher.
inline constexpr const char* kRegisterVariable = "SKEIN_REGISTER";
// In bytes; enough for the claim of a view of some 3,000 workers.
inline constexpr size_t kLongestReport = 384 << 10;

// Reports that this worker has become a member of the job, or that the place has changed. Only members are
// replaced when they die. Without a receiver of reports, this and report_leaving() do nothing.
void report_membership(const std::string& place);
// This worker leaves the job because it was told to: it must not be replaced, and its end with status 0 does
// not mean that the job is done.
void report_leaving();
// Claims these bytes for this epoch. Returns those that are kept for it, or nothing if no answer comes
// within 0.1 s.
std::optional<std::string> claim_epoch(uint32_t epoch, const std::string& bytes);

}  // namespace skein::apps
