// MembershipNote: where a newcomer finds the members of a running elastic job.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/secret.h"
#include "engine/base.h"

namespace skein::apps {

// Where a member hears newcomers.
struct DoorAddress {
  std::vector<std::string> hosts;  // its host's names and addresses, to be tried in turn
  int port = 0;
  bool operator==(const DoorAddress&) const = default;
};

// What the member of the lowest rank writes into the run's directory at each change of the membership, with
// mode 0600, and removes when the run ends. It is only a hint: the process that answers at a door proves by
// the job's key that it belongs to the job. A job whose last members die leaves its note behind.
struct MembershipNote {
  uint32_t epoch = 1;
  std::vector<DoorAddress> doors;  // of the members, in the order of their ranks; not empty
  comm::Secret key;  // the job's, if it was drawn for a note; empty: newcomers have it from elsewhere
  std::string decided_in = "";  // Register::name() of the members; empty: none below this directory
};

// DIR/membership.json.
std::filesystem::path membership_note_in(const std::filesystem::path& run);
// Replaces the note atomically. Throws BadFile.
void write_membership(const std::filesystem::path& run, const MembershipNote&);
// Nothing if there is no note. Throws BadFile if it is not ours, other users can read it, or it is malformed.
std::optional<MembershipNote> read_membership(const std::filesystem::path& run);
void remove_membership(const std::filesystem::path& run);
// The note in these bytes; `from` names them in messages. Wipes the key in `bytes`.
MembershipNote parse_membership(std::string& bytes, const std::string& from);

// Where to knock.
struct Destination {
  std::vector<DoorAddress> doors;
  comm::Secret key;   // from the note; empty if it has none
  std::string found;  // what named the doors: "10.0.0.7:4711", "runs/one/membership.json (epoch 3)"
};
// What --join says: HOST:PORT, [ADDRESS]:PORT, or the directory of a run, whose note is read at each call.
// Throws BadOption if it is neither, Error if there is no note in the directory, and as read_membership().
Destination parse_join(const std::string& where);

// Whether a process listens at this door, as the first of its hosts that answers within 0.2 s says; nothing
// if none does. An address that leads back to this host counts only for a member that has no other.
std::optional<bool> is_open(DoorAddress);
// Whether an elastic job is at work in this --output directory: there is a note, and one of the members that
// it names listens. Throws as read_membership().
bool has_running_job(const std::string& output);
// Whether all members that the note names have certainly ended: their hosts refuse connections to them.
bool all_have_ended(const MembershipNote&);
// The error when no door has answered within so many seconds.
Error nobody_answered(const Destination&, double seconds);

}  // namespace skein::apps
