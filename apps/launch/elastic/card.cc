// Writes and reads cards, and asks the hosts that they name.
#include "apps/launch/elastic/card.h"

#include <algorithm>
#include <sstream>

#include "apps/launch/elastic/register.h"
#include "apps/launch/elastic/role.h"
#include "engine/words/number.h"

namespace skein::apps {

std::string make_card(int port, const std::vector<std::string>& addresses, bool serves,
                      const std::string& register_words) {
  std::string card = std::to_string(port);
  for (const std::string& a : addresses) card += ' ' + a;
  return card + (serves ? kServesMark : "") + register_words;
}

DoorAddress read_card(const std::string& card) {
  std::istringstream in(card);
  DoorAddress a;
  in >> a.port;
  for (std::string word; in >> word;)
    if (!Register::is_word(word) && word != kServesMark + 1) a.hosts.push_back(word);
  return a;
}

std::string introduction(comm::MemberId id, const std::string& card) { return text(id, ' ', card); }

comm::View first_view(const std::vector<std::string>& said) {
  comm::View v;
  for (const std::string& words : said) {
    const size_t end = std::min(words.find(' '), words.size());
    const auto id = number_in<comm::MemberId>(words.substr(0, end));
    std::string card = words.substr(std::min(end + 1, words.size()));
    const int port = read_card(card).port;
    if (!id || v.has(*id) || card.size() > comm::kLongestCard || port < 1 || port > 65535)
      throw Error(
          text("worker ", v.members.size(), " does not introduce itself as a member of an elastic run"));
    v.members.push_back({*id, std::move(card), false});  // it has no state before it has begun the run
  }
  return v;
}

// If a host refuses a connection, the process is gone; if there is no answer, the network may be the cause.
bool is_gone(const std::string& card) {
  const auto open = is_open(read_card(card));
  return open && !*open;
}

bool can_be_asked(const comm::View& v, const std::string& card) {
  const auto is_here = [](const std::string& c) {
    return read_card(c).hosts == std::vector<std::string>{kThisHost};
  };
  return !is_here(card) || is_here(v.members[0].card);
}

}  // namespace skein::apps
