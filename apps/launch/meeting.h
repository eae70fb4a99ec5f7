// Meeting: the address and the key by which the ranks of a seat find each other.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "apps/launch/seat.h"
#include "comm/join/rendezvous.h"

namespace skein::apps {

// What rank 0 writes for the others in a shared directory, if no launcher gives them the key.
struct MeetingNote {
  std::string hosts;  // rank 0's name and addresses, separated by commas
  int port = 0;
  comm::Secret key;
};
// Writes the note atomically with mode 0600. Throws BadFile, which ends with the advice.
void write_note(const std::filesystem::path&, const MeetingNote&, const char* advice);
// Returns false if there is no note yet. Throws BadFile if it is not ours, other users can read it,
// or it is malformed.
bool read_note(const std::filesystem::path&, MeetingNote&);

// Where the ranks meet and by which key:
//   address   MASTER_ADDR and MASTER_PORT; else rank 0's note; else, under SLURM, the first host of the step
//             and the port of the job's number. Under torchrun, whose agent listens at MASTER_PORT: the
//             seat's ports
//   key       SKEIN_KEY_FD, SKEIN_KEY_FILE; else rank 0's note. Under torchrun a given key becomes one of
//             this start alone
// The note lies in `place` or, with RANK and WORLD_SIZE, in ~/.config/skein. The destructor removes it and
// the directories that were made for it.
class Meeting {
 public:
  // Rank 0 writes the note, and the others wait for it for at most `deadline` seconds. Throws BadOption,
  // BadFile, and Error saying where they waited.
  Meeting(const Seat&, const std::string& place, double deadline, comm::PortRange ports);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  comm::RendezvousOptions options();  // may be called once
  // Whether the key is one that rank 0 drew for the note, so that newcomers have it from a note, too.
  bool drew_key() const { return !note_.empty(); }

 private:
  void by_variables();
  void by_note(const std::string& place);
  void key_by_note();
  void draw_key(const std::string& hosts);
  void leave_note();
  void wait_for_note();

  const Seat& seat_;
  const comm::PortRange ports_;
  comm::RendezvousOptions o_;
  bool fixed_host_ = false, fixed_port_ = false;
  std::filesystem::path note_;  // empty if there is no note
  std::vector<std::filesystem::path> made_;
};

}  // namespace skein::apps
