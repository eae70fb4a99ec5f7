// Routes: the same letters by every transport, as notices.
#include "comm/membership/routes.h"

#include <algorithm>

#include "comm/mailbox.h"

namespace skein::comm {
namespace {

constexpr double kSending = 0.2;  // seconds that a peer has to make room for a letter

}  // namespace

bool lead_to(const Routes& routes, MemberId m) {
  return std::any_of(routes.begin(), routes.end(), [&](const Route& w) { return w.view.has(m); });
}

bool lead_into(const Routes& routes, uint32_t epoch) {
  return std::any_of(routes.begin(), routes.end(), [&](const Route& w) { return w.view.epoch == epoch; });
}

std::vector<ReceivedLetter> take_letters(const Routes& routes) {
  std::vector<ReceivedLetter> all;
  for (const Route& w : routes)
    for (const Message& m : w.transport->mailbox().take_letters()) {
      const auto* words = static_cast<const char*>(m.payload.raw());
      all.push_back({w.view.members[size_t(m.from)].id, std::string(words, size_t(m.payload.bytes()))});
    }
  return all;
}

void send(const Routes& routes, const std::vector<Letter>& letters) {
  for (const Route& w : routes) {
    const Rank me = w.transport->rank();
    for (const Letter& l : letters) {
      const Rank to = w.view.rank(l.to);
      if (to < 0) continue;
      const Message m =
          notice(Kind::kLetter, me, w.transport->mailbox().membership().epoch(),
                 Tensor::of<uint8_t>({int64_t(l.bytes.size())}, {l.bytes.begin(), l.bytes.end()}));
      try {
        w.transport->to(to).send(m, m.payload, comm::after(kSending));
      } catch (const Error&) {  // it is lost, or will get the next one
      }
    }
    if (!letters.empty()) w.transport->progress();
  }
}

}  // namespace skein::comm
