// Register: where half of an epoch's members can learn whether they, or the other half, go on
// (comm/membership/succession.h).
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "comm/membership/view.h"

namespace skein::apps {

// It keeps the first view that is claimed for an epoch, and returns it to every later claim. It is the
// launcher that has started all members or, if none has, a directory below the run's that all of them
// see: link(2) gives a name to one file only, also on network file systems. All members of a view see which
// they share, by their cards.
class Register {
 public:
  Register();  // the launcher's, if one has started this process
  // For rank 0 of the first members, below the run's directory. Returns its name, or nothing if such a
  // directory cannot be made.
  std::string found(const std::filesystem::path& run);
  // For the other members, and newcomers who have the name from the note: whether they see it, too.
  bool enter(const std::filesystem::path& run, const std::string& name);
  // Nothing if this process uses no directory.
  const std::string& name() const { return name_; }
  // The end of this process's card: what it knows, a launcher, a directory, or both.
  std::string words() const;
  bool decides(const comm::View& now) const { return decider(now) != kNobody; }
  // For the view that comes after one in which it decides: the view that it keeps for that epoch, which
  // is `next` if it has none. Nothing if it does not answer. Throws FileError if it cannot keep the view, for
  // example because the disk is full: then it may be asked again.
  std::optional<comm::View> claim(const comm::View& now, const comm::View& next) const;
  // By any member, when no other needs it any more: with the directories that its founder has made, if they
  // hold nothing else.
  void remove();
  bool is_founder() const { return founder_; }

  static bool is_word(const std::string& of_card) { return of_card.starts_with('@'); }
  static bool is_name(const std::string&);  // that found() has given

 private:
  enum Decider : uint8_t { kNobody, kLauncher, kFiles };
  Decider decider(const comm::View& now) const;
  std::optional<comm::View> claim_file(const comm::View& next) const;
  std::string launcher_;  // what it has drawn for its workers
  std::filesystem::path directory_;
  std::string name_;
  bool founder_ = false;
};

}  // namespace skein::apps
