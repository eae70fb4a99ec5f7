// Register: where half of an epoch's members can learn whether they, or the other half, go on
// (comm/membership/succession.h).
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/membership/view.h"

namespace skein::apps {

// It keeps the first view that is claimed for an epoch, and returns it to every later claim. It is the
// launcher that has started all members or, if there is none, a directory below the run's that all of them
// see: link(2) gives a name to one file only, also on network file systems. All members of a view see whether
// they share one, by their cards.
class Register {
 public:
  Register();  // the launcher's, if one has started this process
  // For rank 0 of the first members, below the run's directory. Returns its name, or nothing if there is a
  // launcher, or such a directory cannot be made.
  std::string found(const std::filesystem::path& run);
  // For the other members, and newcomers who have the name from the note: whether they see it, too.
  bool enter(const std::filesystem::path& run, const std::string& name);
  // Nothing if this process uses no directory.
  const std::string& name() const { return name_; }
  // The end of this process's card; empty: it knows no register.
  std::string word() const;
  bool decides(const comm::View& now) const;
  // For a view whose epoch comes after one in which it decides: the view that it keeps for that epoch, which
  // is this one if it has none. Nothing if it does not answer.
  std::optional<comm::View> claim(const comm::View&) const;
  // When the run has ended, by any member; when it has not begun, by its founder, with the directories that
  // it has made.
  void remove();
  bool is_founder() const { return !made_.empty(); }

  static bool is_word(const std::string& of_card) { return of_card.starts_with('@'); }
  static bool is_name(const std::string&);  // that found() has given

 private:
  std::string launcher_;  // what it has drawn for its workers
  std::filesystem::path directory_;
  std::string name_;
  std::vector<std::filesystem::path> made_;  // the innermost first
};

}  // namespace skein::apps
