// The last common step, and who may write its checkpoint.
#include "apps/train/rollback.h"

#include <algorithm>

#include "apps/base/printable.h"
#include "apps/launch/elastic/role.h"
#include "comm/communicator/notices.h"
#include "comm/communicator/words.h"
#include "comm/membership/council.h"

namespace skein::apps {

namespace {

// A change of membership may interrupt the step of a single worker, and find two workers a step apart.
int states_kept(const Run& run) {
  const int kept = optim::states_kept(optim::strategy_row(run.config.algorithm), run.setup.place.world);
  return run.setup.place.council && !run.apart ? std::max(2, kept) : kept;
}

// "2", "1, 2 and 3"
std::string list(const std::vector<int>& workers) {
  std::string s;
  for (size_t i = 0; i < workers.size(); ++i)
    s += text(i == 0 ? "" : i + 1 == workers.size() ? " and " : ", ", workers[i]);
  return s;
}

}  // namespace

Rollback::Rollback(Run& run, WorkerEvents& workers, Saving& saving, Traces& traces, Learning& learning,
                   Walk state)
    : run_(run),
      workers_(workers),
      saving_(saving),
      traces_(traces),
      state_(std::move(state)),
      steps_(states_kept(run), state_, run.setup.place.council ? learning.shared() : optim::Shared()),
      ledger_(run),
      used_(run) {}

void Rollback::step(const std::function<void()>& f) {
  comm::Council* const council = run_.setup.place.council;
  if (run_.apart) {
    council->require_unchanged();
    if (ledger_.begin_step()) used_.tell();
    used_.begin();
    f();
    return used_.end();
  }
  used_.begin();
  steps_.run(run_.k, [&] {
    f();
    if (!council) return;
    const int64_t settled = steps_.settled(run_.k + 1);
    council->complete_step(settled, std::min(settled, steps_.oldest(run_.k)));
    reached_ = run_.k + 1;
  });
  used_.end();
}

Outcome Rollback::leave_epoch() try {
  const double began = clock_seconds();
  const comm::View next = run_.setup.place.council->next(run_.config.deadline);
  auto legacy = std::make_shared<Legacy>();
  legacy->left_at = began;
  legacy->directory = run_.directory;
  legacy->workers_at_first = workers_.at_first();
  legacy->workers_before = run_.setup.place.world;
  legacy->before = run_.setup.place.council->now();
  legacy->silences = silences();
  legacy->global_batch = run_.setup.global_batch;
  legacy->data = run_.setup.data;
  if (const data::Portions& p = *run_.setup.portions; !p.even() || run_.config.batch_size.automatic)
    legacy->speed = double(p.share_of(run_.setup.place.rank));
  legacy->changes = workers_.changes();
  legacy->changes.push_back(change(next));
  legacy->changes.back().agreed = clock_seconds() - began;
  legacy->leftover = run_.setup.portions->leftover().write();
  legacy->has_state = run_.apart || next.step == run_.k || steps_.knows(next.step);
  // Also to a step that this worker itself has reached: it may have done more since, which others have not.
  if (steps_.knows(next.step)) steps_.go_back(next.step);
  if (legacy->has_state) legacy->state.take(state_);
  if (run_.apart)
    legacy->apart = {.epoch = int(run_.setup.place.council->now().epoch),
                     .taken = ledger_.taken(),
                     .closed = std::get<int64_t>(legacy->state.fields().at("closed_epochs")),
                     .portions = run_.setup.portions};
  Outcome out;
  out.step = next.step;
  out.legacy = std::move(legacy);
  return out;
} catch (const comm::Timeout& e) { return end(e.what()); }

std::map<comm::MemberId, double> Rollback::silences() const {
  const std::vector<comm::View::Member>& members = run_.setup.place.council->now().members;
  const comm::Membership& all = run_.survivors.everybody().membership();
  std::map<comm::MemberId, double> of;
  for (size_t r = 0; r < members.size(); ++r)
    if (const auto silent = all.silent_for(comm::Rank(r))) of[members[r].id] = *silent;
  return of;
}

ChangeEvent Rollback::change(const comm::View& next) const {
  const comm::View& now = run_.setup.place.council->now();
  const comm::Membership& all = run_.survivors.everybody().membership();
  ChangeEvent e{.step = next.step, .epoch = run_.epochs_at(next.step), .number = int(next.epoch)};
  for (size_t r = 0; r < now.members.size(); ++r)
    if (!next.has(now.members[r].id))
      e.lost.push_back(text(name_in(now, int(r)), ": ", all.why(comm::Rank(r))));
  e.joined = int(next.members.size()) - int(now.members.size() - e.lost.size());
  e.workers = int(next.members.size()) - (server_in(next) >= 0);
  e.steps_redone = run_.apart ? 0 : std::max(reached_, run_.k) - next.step;
  e.images_redealt = e.steps_redone * run_.setup.global_batch;
  return e;
}

std::vector<int> Rollback::alive() const {
  comm::Communicator& all = run_.survivors.everybody();
  std::vector<int> members;
  for (int r = 0; r < all.size(); ++r)
    if (all.membership().alive(all.world_rank(r))) members.push_back(r);
  return members;
}

Outcome Rollback::end(const std::string& why) {
  run_.k = steps_.recover(run_.k);
  for (;;) {
    const std::vector<int> members = alive();
    workers_.note_losses();
    if (int(members.size()) == run_.survivors.everybody().size())
      throw Error(text(why, "; ", how_to_resume(run_.directory)));
    if (run_.asynchronous) return outcome(members, how_to_resume(run_.directory));
    try {
      return end_among(members);
    } catch (const comm::PeerLost&) {  // another one is lost
      const std::vector<int> now = alive();
      if (std::includes(now.begin(), now.end(), members.begin(), members.end())) throw;
    }
  }
}

Outcome Rollback::end_among(const std::vector<int>& members) {
  comm::Communicator& everybody = run_.survivors.everybody();
  const int world = run_.setup.place.world;
  const std::unique_ptr<comm::Communicator> living = everybody.group(members);
  const Common common = agree(*living);
  comm::give_up(everybody, everybody.membership().dead(), others_than(members, world));
  const std::string resume = how_to_resume(run_.directory);
  if (!may_write(members, common.ended))
    return outcome(members, text("with ", members.size(), " of ", world,
                                 " workers this side writes no checkpoint, since the other may; ", resume));
  if (!all_know(*living, common.step))
    return outcome(members, text("the others are too many steps apart for a new checkpoint; ", resume));
  steps_.go_back(common.step);
  run_.k = common.step;
  saving_.write_among(*living, members);
  traces_.write(*living);
  return outcome(members, text("the others wrote a checkpoint of step ", run_.k,
                               ", in which the lost have the state of worker ", members[0],
                               "; resume with: train_imagenet --resume ", shell_word(run_.directory)));
}

// A worker counts as ended if any of the living has seen its end.
Rollback::Common Rollback::agree(comm::Communicator& living) const {
  comm::Communicator& all = run_.survivors.everybody();
  std::vector<double> mine = {double(run_.k)};
  for (int r = 0; r < all.size(); ++r) {
    // With a council, a worker that has said goodbye may train on in another epoch.
    const comm::Rank rank = all.world_rank(r);
    const bool ended = all.membership().ended(rank);
    mine.push_back(ended && (!run_.setup.place.council || all.membership().lost(rank)));
  }
  Common c{run_.k, std::vector<bool>(size_t(all.size()))};
  for (const auto& one : comm::gather_numbers(living, mine)) {
    c.step = std::min(c.step, int64_t(one[0]));
    for (size_t r = 0; r + 1 < one.size(); ++r) c.ended[r] = c.ended[r] || one[r + 1] != 0;
  }
  return c;
}

bool Rollback::all_know(comm::Communicator& living, int64_t step) const {
  bool known = true;
  for (const auto& one : comm::gather_numbers(living, {double(steps_.knows(step))}))
    known = known && one[0] != 0;
  return known;
}

// Only one of the workers that are left gives the reason.
Outcome Rollback::outcome(const std::vector<int>& members, const std::string& rest) const {
  Outcome out;
  out.step = run_.k;
  out.interrupted = out.bereaved = true;
  if (run_.setup.place.rank != members[0]) return out;
  std::vector<int> dead;
  std::string why;
  for (const LostEvent& e : workers_.lost()) {
    dead.push_back(e.worker);
    if (why.find(e.why) == std::string::npos) why += (why.empty() ? "" : ", ") + e.why;
  }
  std::sort(dead.begin(), dead.end());
  out.why = text(dead.size() == 1 ? "worker " : "workers ", list(dead), dead.size() == 1 ? " is" : " are",
                 " lost: ", why, "; ", rest);
  return out;
}

}  // namespace skein::apps
