// One round of the council: what was lost, what was written, what is due.
#include "comm/membership/council.h"

#include <set>
#include <utility>

#include "comm/mailbox.h"

namespace skein::comm {
namespace {

constexpr double kCalm = 0.02,
                 kBusy = 0.002;  // seconds between two rounds; letters and losses begin one at once

}  // namespace

Council::Council(Transport& t, CouncilOptions o, std::unique_ptr<Succession> begun)
    : transport_(t),
      o_(std::move(o)),
      detector_(o_.is_gone),
      chain_(o_.me, o_.card, o_.now, o_.has_register, std::move(begun)) {
  CHECK(int(o_.now.members.size()) == t.size(), "the members of the epoch are the ranks of the transport");
  routes_.push_back({&transport_, o_.now});
  thread_ = Thread([this] { work(); });
}

Council::~Council() { stop(); }

void Council::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  transport_.mailbox().wake();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Succession> Council::release(const View& v) {
  {
    const std::lock_guard lock(mutex_);
    if (!chain_.is_at(v)) return nullptr;
    stop_ = true;
  }
  stop();
  return chain_.release();
}

// Nobody would catch what is thrown on this thread, and without it no further epoch comes.
void Council::work() try {
  for (;;) {
    for (const Route& w : routes()) w.transport->progress();
    see_losses();
    Letters out;
    double nap = kCalm;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      hear(out);
      for (Letter& l : chain_->tick(seconds_since({}))) out.push_back(std::move(l));
      conclude();
      if (chain_->frozen() || routes_.size() > 1) nap = kBusy;
    }
    send(routes(), out);
    claim();
    transport_.mailbox().wait_for_letters(comm::after(nap));
  }
} catch (const std::exception& e) {
  for (const Route& w : routes()) w.transport->mailbox().poison(text("the council has failed: ", e.what()));
}

Routes Council::routes() const {
  const std::lock_guard lock(mutex_);
  return routes_;
}

void Council::connected(Transport& t, const View& v) {
  CHECK(int(v.members.size()) == t.size(), "the members of the view are the ranks of the transport");
  const std::lock_guard lock(mutex_);
  routes_.push_back({&t, v});
  conclude();  // a later view may have been decided
}

bool Council::was_connected(const View& v) const {
  const std::lock_guard lock(mutex_);
  return lead_into({routes_.begin() + 1, routes_.end()}, v.epoch);
}

// Asking whether a process has ended may take some time, in which no lock is held.
void Council::see_losses() {
  const Routes all = routes();
  std::set<MemberId> members;
  for (const Route& w : all)
    for (const View::Member& m : w.view.members) members.insert(m.id);
  for (const MemberId m : members) {
    if (m == o_.me || chain_.is_dead(m)) continue;
    const Finding found = detector_.find(m, all, [this](const View& v) { return is_past(v); });
    const std::lock_guard lock(mutex_);
    if (found == Finding::kThere || (found == Finding::kWrites && heeds_letters())) {
      if (chain_->now().has(m)) chain_->trust(m);
      continue;
    }
    chain_->suspect(m);
    if (found == Finding::kGone) chain_.bury(m);
  }
  for (const View::Member& m : expected())
    if (!chain_.is_dead(m.id) && detector_.is_gone(m.card)) {
      const std::lock_guard lock(mutex_);
      chain_->suspect(m.id);
      chain_.bury(m.id);
    }
}

// The members of the next epoch to whom no route leads yet: they hold up the others until they connect.
std::vector<View::Member> Council::expected() const {
  const std::lock_guard lock(mutex_);
  const View& v = chain_->now();
  std::vector<View::Member> all;
  for (const View::Member& m : v.members)
    if (m.id != o_.me && !lead_to(routes_, m.id) && (!o_.can_be_asked || o_.can_be_asked(v, m.card)))
      all.push_back(m);
  return all;
}

// That letters come by a link which was lost does not save an epoch whose work has been interrupted, but it
// counts while the members of the next one are chosen or connect.
bool Council::heeds_letters() const { return chain_->frozen() || !lead_into(routes_, chain_->now().epoch); }

void Council::hear(Letters& out) {
  for (const ReceivedLetter& heard : take_letters(routes_)) {
    detector_.heard(heard.from);
    for (Letter& l : chain_->receive(heard.from, heard.bytes)) out.push_back(std::move(l));
  }
}

// The answer may take some time, in which no lock is held.
void Council::claim() {
  std::optional<View> wish;
  View now;
  {
    const std::lock_guard lock(mutex_);
    if (!stop_) wish = chain_->wants_register();
    if (wish) now = chain_->now();
  }
  const std::optional<View> kept = wish && o_.claim ? o_.claim(now, *wish) : std::nullopt;
  if (!kept) return;
  Letters out;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    out = chain_->register_says(*kept);
    conclude();
  }
  send(routes(), out);
}

void Council::conclude() {
  if (chain_->frozen() && !std::exchange(epoch_ends_, true) && o_.ends_waits)
    transport_.mailbox().end_epoch("the membership is changing");
  if (chain_.advance() && o_.decided) o_.decided(*chain_.decided());
  for (Route& w : routes_)
    if (&w != &routes_.front() && chain_.is_past(w.view) && !std::exchange(w.over, true))
      w.transport->mailbox().end_epoch("a later epoch has been chosen");
  if (chain_->ended() && !std::exchange(end_is_told_, true) && o_.ended) o_.ended(*chain_->ended());
  changed_.notify_all();
}

void Council::complete_step(int64_t k, int64_t oldest) {
  const std::lock_guard lock(mutex_);
  if (epoch_ends_ || !chain_->complete_step(k, oldest))
    throw EpochEnds(text("the membership changes before step ", k, " is complete"));
}

void Council::require_unchanged() const {
  const std::lock_guard lock(mutex_);
  if (epoch_ends_) throw EpochEnds("the membership is changing");
}

void Council::require_unchanged(double patience) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, comm::after(patience), [&] { return epoch_ends_ || chain_.excluded(); }))
    throw EpochEnds("the membership has changed");
}

void Council::admit(const View::Member& m) {
  const std::lock_guard lock(mutex_);
  chain_->joins(m);
}
void Council::forget(MemberId m) {
  const std::lock_guard lock(mutex_);
  chain_->prove_dead(m);
}
void Council::leave() { leaves(o_.me); }
void Council::leaves(MemberId m) {
  const std::lock_guard lock(mutex_);
  chain_->leaves(m);
}
void Council::end_run(const End& e) {
  Letters out;
  {
    const std::lock_guard lock(mutex_);
    out = chain_->end(e);
    conclude();
  }
  send(routes(), out);
}
std::optional<End> Council::ended() const {
  const std::lock_guard lock(mutex_);
  return chain_->ended();
}
int64_t Council::restored() {
  const std::lock_guard lock(mutex_);
  if (!epoch_ends_) chain_->restored();
  return o_.now.step;
}

bool Council::is_past(const View& v) const {
  const std::lock_guard lock(mutex_);
  return chain_.is_past(v);
}

bool Council::has_abandoned(const View& v) const {
  const std::lock_guard lock(mutex_);
  return abandoned_ >= v.epoch;
}

// All members of a view are connected before any of them begins it.
std::optional<View> Council::after(const View& failed, double patience) {
  const bool begun = was_connected(failed);
  std::unique_lock lock(mutex_);
  if (!begun && chain_->now().epoch == failed.epoch)
    for (const View::Member& m : failed.members)
      if (!o_.now.has(m.id)) {
        chain_->suspect(m.id);
        chain_->never_came(m.id), abandoned_ = failed.epoch;
      }
  const auto told = [&] { return chain_->ended() || chain_.is_past(failed); };
  if (!changed_.wait_until(lock, comm::after(patience), told)) return {};
  if (chain_->ended()) throw RunEnded(*chain_->ended());
  if (chain_.excluded())
    throw GivenUp("the others go on without this worker, which they had not heard of for too long");
  return chain_.decided();
}

View Council::next(double patience) {
  if (std::optional<View> v = after(o_.now, patience)) return *v;
  transport_.mailbox().end_epoch("");
  throw Timeout(-1, text("the ", o_.now.members.size(), " workers have not agreed within ", patience,
                         " s about who goes on: too few of them answer",
                         o_.has_register && o_.has_register(o_.now) ? ", or the register does not" : ""));
}

}  // namespace skein::comm
