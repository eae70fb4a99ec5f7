// Writes and reads cards, and asks the hosts and launchers that they name.
#include "apps/launch/elastic/card.h"

#include <algorithm>
#include <sstream>

#include "apps/base/environment.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/elastic/role.h"

namespace skein::apps {
namespace {

constexpr char kRegisterMark = '@';

// What the launcher has drawn for its workers.
std::string register_word() {
  const auto word = number(kReportsVariable) ? variable(kRegisterVariable) : std::nullopt;
  return word ? text(' ', kRegisterMark, *word) : "";
}

}  // namespace

std::string make_card(int port, const std::vector<std::string>& addresses, bool serves) {
  std::string card = std::to_string(port);
  for (const std::string& a : addresses) card += ' ' + a;
  return card + (serves ? kServesMark : "") + register_word();
}

DoorAddress read_card(const std::string& card) {
  std::istringstream in(card);
  DoorAddress a;
  in >> a.port;
  for (std::string word; in >> word;)
    if (word[0] != kRegisterMark && word != kServesMark + 1) a.hosts.push_back(word);
  return a;
}

// That a host refuses a connection is a fact about the process; that nobody answers may be the network's doing.
bool is_gone(const std::string& card) {
  const auto open = is_open(read_card(card));
  return open && !*open;
}

bool has_register(const comm::View& v) {
  const std::string word = register_word();
  return !word.empty() && std::all_of(v.members.begin(), v.members.end(),
                                      [&](const comm::View::Member& m) { return m.card.ends_with(word); });
}

std::optional<comm::View> claim(const comm::View& v) {
  const auto kept = claim_epoch(v.epoch, v.write());
  return kept ? comm::View::read(*kept) : std::nullopt;
}

}  // namespace skein::apps
