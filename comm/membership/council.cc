// One round of the council: what was lost, what was written, what is due.
#include "comm/membership/council.h"

#include <algorithm>
#include <utility>

#include "comm/mailbox.h"

namespace skein::comm {
namespace {

constexpr double kCalm = 0.02,
                 kBusy = 0.002;   // seconds between two rounds; letters and losses begin one at once
constexpr double kSending = 0.2;  // seconds that a peer has to make room for a letter

}  // namespace

Council::Council(Transport& t, CouncilOptions o, std::unique_ptr<Succession> begun)
    : transport_(t),
      o_(std::move(o)),
      detector_(o_.is_gone),
      succession_(begun ? std::move(begun) : std::make_unique<Succession>(o_.me, o_.now, options(o_.now))) {
  CHECK(int(o_.now.members.size()) == t.size(), "the members of the epoch are the ranks of the transport");
  routes_.push_back({&transport_, o_.now});
  succession_->card(o_.card);
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
    if (excluded_ || succession_->now().epoch != v.epoch) return nullptr;
    stop_ = true;
  }
  stop();
  return std::move(succession_);
}

void Council::work() {
  for (;;) {
    for (const Route& w : routes()) w.transport->progress();
    see_losses();
    Letters out;
    double nap = kCalm;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      hear(out);
      for (Letter& l : succession_->tick(seconds_since({}))) out.push_back(std::move(l));
      conclude();
      if (succession_->frozen() || routes_.size() > 1) nap = kBusy;
    }
    send(out);
    claim();
    transport_.mailbox().wait_for_letters(comm::after(nap));
  }
}

std::vector<Route> Council::routes() const {
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
  return std::any_of(routes_.begin() + 1, routes_.end(),
                     [&](const Route& w) { return w.view.epoch == v.epoch; });
}

// Asking whether a process has ended may take some time, in which no lock is held.
void Council::see_losses() {
  const std::vector<Route> all = routes();
  std::set<MemberId> members;
  for (const Route& w : all)
    for (const View::Member& m : w.view.members) members.insert(m.id);
  for (const MemberId m : members) {
    if (m == o_.me || dead_.count(m)) continue;
    const Finding found = detector_.find(m, all, [this](const View& v) { return is_past(v); });
    const std::lock_guard lock(mutex_);
    if (found == Finding::kThere || (found == Finding::kWrites && heeds_letters())) {
      if (succession_->now().has(m)) succession_->trust(m);
      continue;
    }
    succession_->suspect(m);
    if (found == Finding::kGone) bury(m);
  }
  for (const View::Member& m : expected())
    if (!dead_.count(m.id) && detector_.is_gone(m.card)) {
      const std::lock_guard lock(mutex_);
      succession_->suspect(m.id);
      bury(m.id);
    }
}

void Council::bury(MemberId m) {
  dead_.insert(m);
  succession_->prove_dead(m);
}

// The members of the next epoch to whom no route leads yet: they hold up the others until they connect.
std::vector<View::Member> Council::expected() const {
  const std::lock_guard lock(mutex_);
  const View& v = succession_->now();
  std::vector<View::Member> all;
  const auto reaches = [](MemberId m) { return [m](const Route& w) { return w.view.has(m); }; };
  for (const View::Member& m : v.members)
    if (m.id != o_.me && std::none_of(routes_.begin(), routes_.end(), reaches(m.id)) &&
        (!o_.can_be_asked || o_.can_be_asked(v, m.card)))
      all.push_back(m);
  return all;
}

// That letters come by a link which was lost does not save an epoch whose work has been interrupted, but it
// counts while the members of the next one are chosen or connect.
bool Council::heeds_letters() const {
  const uint32_t epoch = succession_->now().epoch;
  return succession_->frozen() ||
         std::none_of(routes_.begin(), routes_.end(), [&](const Route& w) { return w.view.epoch == epoch; });
}

void Council::hear(Letters& out) {
  for (const Route& w : routes_)
    for (const Message& m : w.transport->mailbox().take_letters()) {
      const MemberId from = w.view.members[size_t(m.from)].id;
      detector_.heard(from);
      const auto* words = static_cast<const char*>(m.payload.raw());
      for (Letter& l : succession_->receive(from, std::string(words, size_t(m.payload.bytes()))))
        out.push_back(std::move(l));
    }
}

Succession::Options Council::options(const View& v) const {
  return {.has_register = o_.has_register && o_.has_register(v)};
}

// The answer may take some time, in which no lock is held.
void Council::claim() {
  std::optional<View> wish;
  View now;
  {
    const std::lock_guard lock(mutex_);
    if (!stop_) wish = succession_->wants_register();
    if (wish) now = succession_->now();
  }
  const std::optional<View> kept = wish && o_.claim ? o_.claim(now, *wish) : std::nullopt;
  if (!kept) return;
  Letters out;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    out = succession_->register_says(*kept);
    conclude();
  }
  send(out);
}

// Members of the view that was decided form the next council at once, in case they do not come together.
void Council::conclude() {
  if (succession_->frozen() && !std::exchange(epoch_ends_, true))
    transport_.mailbox().end_epoch("the membership is changing");
  if (succession_->excluded()) excluded_ = true;
  if (succession_->next() && !excluded_) {
    decided_ = succession_->next();
    const std::vector<View::Member> waiting = succession_->waiting();
    const std::optional<End> end = succession_->ended();
    succession_ = std::make_unique<Succession>(o_.me, *decided_, options(*decided_));
    for (const View::Member& m : waiting) succession_->joins(m);
    if (end) (void)succession_->end(*end);
    succession_->card(o_.card);
    for (const MemberId m : dead_) succession_->prove_dead(m);
    if (o_.decided) o_.decided(*decided_);
  }
  for (Route& w : routes_)
    if (&w != &routes_.front() && (excluded_ || (decided_ && decided_->epoch > w.view.epoch)) &&
        !std::exchange(w.over, true))
      w.transport->mailbox().end_epoch("a later epoch has been chosen");
  if (succession_->ended() && !std::exchange(end_is_told_, true) && o_.ended) o_.ended(*succession_->ended());
  changed_.notify_all();
}

// A newcomer is told by the member whom it has asked, unless it is connected already.
void Council::send(const Letters& letters) {
  for (const Route& w : routes()) {
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

void Council::complete_step(int64_t k, int64_t oldest) {
  const std::lock_guard lock(mutex_);
  if (epoch_ends_ || !succession_->complete_step(k, oldest))
    throw EpochEnds(text("the membership changes before step ", k, " is complete"));
}

void Council::require_unchanged() const {
  const std::lock_guard lock(mutex_);
  if (epoch_ends_) throw EpochEnds("the membership is changing");
}

void Council::require_unchanged(double patience) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, comm::after(patience), [&] { return epoch_ends_ || excluded_; }))
    throw EpochEnds("the membership has changed");
}

void Council::admit(const View::Member& m) {
  const std::lock_guard lock(mutex_);
  succession_->joins(m);
}
void Council::forget(MemberId m) {
  const std::lock_guard lock(mutex_);
  succession_->prove_dead(m);
}
void Council::leave() {
  const std::lock_guard lock(mutex_);
  succession_->leaves(o_.me);
}
void Council::end_run(const End& e) {
  Letters out;
  {
    const std::lock_guard lock(mutex_);
    out = succession_->end(e);
    conclude();
  }
  send(out);
}
std::optional<End> Council::ended() const {
  const std::lock_guard lock(mutex_);
  return succession_->ended();
}
int64_t Council::restored() {
  const std::lock_guard lock(mutex_);
  if (!epoch_ends_) succession_->restored();
  return o_.now.step;
}

bool Council::is_past(const View& v) const {
  const std::lock_guard lock(mutex_);
  return excluded_ || (decided_ && decided_->epoch > v.epoch);
}

bool Council::has_abandoned(const View& v) const {
  const std::lock_guard lock(mutex_);
  return abandoned_ >= v.epoch;
}

// All members of a view are connected before any of them begins it.
std::optional<View> Council::after(const View& failed, double patience) {
  const bool begun = was_connected(failed);
  std::unique_lock lock(mutex_);
  if (!begun && succession_->now().epoch == failed.epoch)
    for (const View::Member& m : failed.members)
      if (!o_.now.has(m.id)) {
        succession_->suspect(m.id);
        succession_->never_came(m.id), abandoned_ = failed.epoch;
      }
  const auto told = [&] {
    return excluded_ || succession_->ended() || (decided_ && decided_->epoch > failed.epoch);
  };
  if (!changed_.wait_until(lock, comm::after(patience), told)) return {};
  if (succession_->ended()) throw RunEnded(*succession_->ended());
  if (excluded_)
    throw GivenUp("the others go on without this worker, which they had not heard of for too long");
  return decided_;
}

View Council::next(double patience) {
  if (std::optional<View> v = after(o_.now, patience)) return *v;
  transport_.mailbox().end_epoch("");
  throw Timeout(-1, text("the ", o_.now.members.size(), " workers have not agreed within ", patience,
                         " s about who goes on: too few of them answer",
                         options(o_.now).has_register ? ", or the register does not" : ""));
}

}  // namespace skein::comm
