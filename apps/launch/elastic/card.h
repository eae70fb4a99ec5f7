// Cards: how a member of an elastic job is reached, and what can be known about it from elsewhere.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/launch/membership_note.h"
#include "comm/membership/view.h"

namespace skein::apps {

// The only address of those who can be reached from their own host alone.
inline constexpr const char* kThisHost = "127.0.0.1";

// "PORT ADDRESS..." of the socket at which the member listens as long as it lives. `serves`: the card says so
// (role.h). The end is Register::words().
std::string make_card(int port, const std::vector<std::string>& addresses, bool serves,
                      const std::string& register_words);
DoorAddress read_card(const std::string& card);

// What the first members of a job tell each other when they meet.
std::string introduction(comm::MemberId, const std::string& card);
// The view of those who have said this, by rank. Throws Error at anything else, or a number said twice.
comm::View first_view(const std::vector<std::string>& said);

// Whether the process of this card has certainly ended: its host refuses connections.
bool is_gone(const std::string& card);
// Whether is_gone() asks the right host about a member of this view that has not connected yet. A launcher's
// workers are at 127.0.0.1: that is this host only if the first member, at whose door all meet, is here.
bool can_be_asked(const comm::View&, const std::string& card);

}  // namespace skein::apps
