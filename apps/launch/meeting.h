// Meeting: the address and the key by which the ranks of a seat find each other.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "apps/launch/seat.h"
#include "comm/join/rendezvous.h"

namespace skein::apps {

// What rank 0 writes for the others, in a directory they share, where nobody else brings them the key.
struct MeetingNote {
  std::string hosts;  // of rank 0, with commas: its name, then its addresses
  int port = 0;
  std::string key;
};
// Written aside and renamed, mode 0600. Throws BadFile.
void write_note(const std::filesystem::path&, const MeetingNote&);
// False: there is none yet. Throws BadFile if it is not ours, others could read it, or it makes no sense.
bool read_note(const std::filesystem::path&, MeetingNote&);

// Where the ranks meet and by which key:
//   address   MASTER_ADDR and MASTER_PORT; else rank 0's note; else, under SLURM, the first host of the step
//             and the port
//             of the job's number. Under torchrun, whose agent listens at MASTER_PORT: the seat's ports
//   key       SKEIN_KEY_FD, SKEIN_KEY_FILE; else, with RANK and WORLD_SIZE, ~/.config/skein/job-key; else
//             rank 0's note. Under torchrun one that follows from it, of this start alone
// The note lies in `place` and goes away with this object, and with it the directories that were made for it.
class Meeting {
 public:
  // Rank 0 writes the note, the others wait for it, at most `deadline` seconds. Throws BadOption, BadFile,
  // and Error saying where they waited.
  Meeting(const Seat&, const std::string& place, double deadline);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  comm::RendezvousOptions options();  // once

 private:
  void by_variables();
  void by_note(const std::string& place);
  void leave_note();
  void wait_for_note();

  const Seat& seat_;
  comm::RendezvousOptions o_;
  bool fixed_host_ = false, fixed_port_ = false;
  std::filesystem::path note_;  // empty: none
  std::vector<std::filesystem::path> made_;
};

}  // namespace skein::apps
