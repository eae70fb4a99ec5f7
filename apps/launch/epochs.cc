// One connection an epoch; the last one stays until the next one stands, so that its council
// can decide again.
#include "apps/launch/epochs.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "apps/base/environment.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/elastic/card.h"
#include "apps/launch/elastic/role.h"
#include "apps/launch/job_key.h"
#include "apps/launch/meeting.h"
#include "apps/launch/membership_note.h"
#include "engine/words/file.h"

namespace skein::apps {
namespace {

using comm::Fd;
using comm::View;

constexpr double kAssembling = 5;    // seconds that the members of a new epoch have to connect, at most
constexpr double kLeastSilence = 2;  // seconds; where a wrong guess costs one worker, and not the run

std::string this_version() { return text("skein ", SKEIN_VERSION); }

comm::MemberId random_id() {
  const std::string bytes = comm::random_bytes(sizeof(comm::MemberId));
  comm::MemberId id;
  std::memcpy(&id, bytes.data(), sizeof id);
  return id;
}

std::string joined_by_commas(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& w : words) all += (all.empty() ? "" : ",") + w;
  return all;
}

// A job removes its note when it has ended.
bool has_no_note(const std::string& join) { return is_directory(join) && !read_membership(join); }

// Tries the doors of a job with its key until one attempt succeeds. Throws RunEnded if the
// job ends meanwhile.
void at_some_door(
    const std::string& join, double seconds,
    const std::function<bool(const DoorAddress&, const comm::Secret&, comm::Clock::time_point)>& attempt) {
  const auto deadline = comm::after(seconds);
  const auto given = given_job_key();
  for (bool was_there = variable(kJoinVariable).has_value();; was_there = true) {
    if (was_there && has_no_note(join)) throw comm::RunEnded({});
    const Destination d = parse_join(join);
    const comm::Secret key = given ? *given : d.key;
    if (key.empty())
      throw BadOption(text("--join ", join,
                           ": the job's key is needed: give SKEIN_KEY_FILE, a file of 32 bytes that "
                           "is the same as the job's (docs/launch.md)"));
    for (const DoorAddress& a : d.doors)
      if (attempt(a, key, deadline)) return;
    if (comm::Clock::now() > deadline) throw nobody_answered(d, seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

bool is_of_one_host() {
  const std::string master = variable("MASTER_ADDR").value_or("");
  return master == "localhost" || master.starts_with("127.");
}

}  // namespace

Epochs::Epochs(const JobOptions& o, const Seat& seat)
    : o_(o),
      seat_(seat),
      changes_(o.elastic || o.regroups()),
      serves_(o.server && (o.join.empty() ? seat.rank + 1 == seat.world : variable(kServesVariable) == "1")),
      me_(random_id()) {
  if (changes_) open_door();
  o.join.empty() ? meet_seats() : join();
}

void Epochs::meet_seats() {
  const std::unique_ptr<comm::Rendezvous> met = [&] {
    Meeting meeting(seat_, o_.place, o_.deadline, o_.ports);
    key_is_drawn_ = meeting.drew_key();
    return std::make_unique<comm::Rendezvous>(meeting.options());
  }();
  key_ = met->key();
  try {
    if (changes_) find_register(*met);
    now_ = connect(*met, changes_ ? first_view(met->all_gather(introduction(me_, card_))) : View());
  } catch (...) {
    if (register_.is_founder()) register_.remove();
    throw;
  }
  now_->place.rank = seat_.rank, now_->place.world = seat_.world;
  now_->place.local_rank = seat_.local_rank, now_->place.local_world = seat_.local_world;
  if (changes_) open_council(*now_, {});
}

// Who is started in one directory has a register there, also those whom a launcher has started: it decides
// when others have joined them.
void Epochs::find_register(comm::Rendezvous& met) {
  const bool has_place = o_.place != JobOptions().place;
  const std::string name =
      met.all_gather(seat_.rank == 0 && has_place ? register_.found(o_.place) : "").front();
  if (seat_.rank != 0 && has_place) register_.enter(o_.place, name);
  write_card();
}

// False: members have ended before all have met, so the others are in another epoch.
bool Epochs::try_to_meet(const View& v) try {
  auto met = meet_members(v);
  met->communicator->barrier();
  now_ = std::move(met);
  open_council(*now_, {});
  return true;
} catch (const Error&) { return false; }

// If the meeting fails, the newcomer knocks again under a new id, because a caller that has hung up
// counts as dead.
void Epochs::join() {
  at_some_door(o_.join, o_.deadline, [&](const DoorAddress& a, const comm::Secret& key, auto deadline) {
    key_ = key;
    me_ = random_id();
    if (const auto note = is_directory(o_.join) ? read_membership(o_.join) : std::nullopt)
      register_.enter(o_.join, note->decided_in);
    write_card();
    const auto v = comm::knock(a.hosts, a.port, key_, {{me_, card_, false}, o_.identity}, deadline);
    return v && try_to_meet(*v);
  });
}

std::string ask_job(const std::string& join, double deadline) {
  std::optional<std::string> told;
  at_some_door(join, deadline, [&](const DoorAddress& a, const comm::Secret& key, auto until) {
    told = comm::ask(a.hosts, a.port, key, this_version(), until);
    return told.has_value();
  });
  return *told;
}

// The first worker writes the note.
void Epochs::announce(const std::string& directory) {
  directory_ = std::filesystem::absolute(directory).string();
  if (now_->place.rank == (server() == 0)) {
    MembershipNote note;
    note.epoch = now_->view.epoch;
    if (key_is_drawn_) note.key = key_;
    note.decided_in = register_.name();
    for (const View::Member& m : now_->view.members) note.doors.push_back(read_card(m.card));
    write_membership(directory_, note);
  }
  report_membership(directory_);
}

void Epochs::end() {
  if (!now_->council || !now_->council->ended() || directory_.empty()) return;
  remove_membership(directory_);
  register_.remove();
}

// Of members that end together, whoever closes its door last finds all the others closed. As long as there
// are others, they may need the register to agree about who goes on.
Epochs::~Epochs() {
  if (before_end_) before_end_();
  if (!changes_) return;
  MembershipNote note;
  for (const View::Member& m : now_->view.members) note.doors.push_back(read_card(m.card));
  past_.clear();
  now_.reset();
  door_.socket = {};
  try {
    const auto found = directory_.empty() ? std::nullopt : read_membership(directory_);
    if (found) note = *found;
    const bool something_left = found || !register_.name().empty();
    if (!something_left || !all_have_ended(note)) return;
    if (!directory_.empty()) remove_membership(directory_);
    register_.remove();
  } catch (const Error&) {}  // what lies there is no note of this job
}

comm::Communicator& Epochs::communicator() { return *now_->communicator; }
Place Epochs::place() const { return now_->place; }
comm::Rank Epochs::server() const {
  if (!changes_) return o_.server ? now_->place.world - 1 : -1;
  return o_.server ? server_in(now_->view) : -1;
}

// Workers that a launcher has started on one host are not to be reached from others.
void Epochs::open_door() {
  door_.socket = comm::listen_at(door_.port, is_of_one_host(), o_.ports);
  write_card();
}

void Epochs::write_card() {
  card_ =
      make_card(door_.port, is_of_one_host() ? std::vector<std::string>{kThisHost} : comm::own_addresses(),
                serves_, register_.words());
}

bool Epochs::is_past(const View& v) const { return now_ && now_->council && now_->council->is_past(v); }

comm::TransportOptions Epochs::transport_options(const View& v) const {
  comm::TransportOptions t;
  t.way = comm::parse_way(o_.transport);
  t.sealing = comm::parse_sealing(o_.seal);
  t.key = key_;
  t.ports = o_.ports;
  t.epoch = v.epoch;
  t.deadline = v.epoch == 1 ? o_.deadline : std::min(o_.deadline, kAssembling);
  t.interface = o_.interface;
  t.gpu = o_.gpu_messages && cuda_device_count() > 0;
  t.silence.most = std::clamp(o_.deadline / 2, 1.0, t.silence.most);
  t.silence.least = o_.elastic ? std::min(kLeastSilence, t.silence.most) : t.silence.most;
  t.outlives_peers = changes_ || o_.loss != Loss::kEndsAll;
  t.in_vain = [this, v] { return is_past(v); };
  if (const auto tls = variable("SKEIN_UCX_TLS")) t.tls = *tls;
  return t;
}

std::unique_ptr<Connection> Epochs::connect(comm::Rendezvous& met, View view) {
  auto c = std::make_unique<Connection>();
  c->view = std::move(view);
  c->transport = comm::connect(met, transport_options(c->view));
  c->communicator = std::make_unique<comm::Communicator>(
      *c->transport,
      comm::CommunicatorOptions{.deadline = o_.deadline, .wire = o_.wire, .key = key_, .ports = o_.ports});
  comm::Refusals& refusals = c->transport->mailbox().refusals();
  refusals.callers += met.strangers();
  c->place.cores = seat_.cores;
  c->place.ways = c->transport->describe();
  c->place.refusals = &refusals;
  return c;
}

// The council tells the door's guests of views, so the door is made first. It hears callers only when
// the council exists.
void Epochs::open_council(Connection& c, std::unique_ptr<comm::Succession> begun) {
  comm::Refusals& refusals = c.transport->mailbox().refusals();
  c.door = std::make_unique<comm::Door>(
      door_.socket, key_, refusals.callers,
      comm::Door::Answers{.admit = [this, &c](const auto& a) { return consider(a, c); },
                          .gone = [&c](comm::MemberId m) { c.council->forget(m); },
                          .describe = [this](const std::string& v) { return describe(v); }});
  c.council = std::make_unique<comm::Council>(
      *c.transport,
      comm::CouncilOptions{.me = me_,
                           .now = c.view,
                           .card = card_,
                           .is_gone = is_gone,
                           .can_be_asked = can_be_asked,
                           .has_register = [this](const View& v) { return register_.decides(v); },
                           .claim = [this](const View& now, const View& next) { return claim(now, next); },
                           .ends_waits = o_.elastic,
                           .decided = [&c](const View& v) { c.door->tell(v); },
                           .ended = [&c](const comm::End& e) { c.door->tell(e); }},
      std::move(begun));
  c.door->open();
  c.place.council = c.council.get();
  c.place.close_past = [this] { past_.clear(); };
  c.place.before_end = [this](std::function<void()> f) { before_end_ = std::move(f); };
  c.place.announce = [this](const std::string& directory) { announce(directory); };
}

// On the council's thread, which asks again and again: what is in the way is said once an epoch.
std::optional<View> Epochs::claim(const View& now, const View& next) try {
  return register_.claim(now, next);
} catch (const Error& e) {
  if (std::exchange(complained_of_, next.epoch) != next.epoch)
    std::fprintf(stderr, "%s; until then the workers cannot agree about who goes on\n", e.what());
  return {};
}

std::string Epochs::describe(const std::string& version) const {
  if (version != this_version())
    throw Error(text("this job is by ", this_version(), "; the newcomer is ", version));
  return o_.description;
}

// Newcomers that wait at this door, the applicant among them, count as members.
std::string Epochs::consider(const comm::Application& a, Connection& c) const {
  if (!o_.elastic) return "nobody joins this job";
  if (a.job != o_.identity) return text("this job is ", o_.identity, "; the newcomer is ", a.job);
  if (c.view.has(a.member.id)) return "this job has a member of that name";
  if (a.member.card.find(kServesMark) != std::string::npos) return c.council->admit(a.member), "";
  const size_t members = c.view.members.size() - (server() >= 0), waiting = c.door->waiting().size() - 1;
  if (o_.max_workers > 0 && members + waiting >= size_t(o_.max_workers))
    return text("this job has ", members, " workers",
                waiting > 0 ? text(", and ", waiting, " more wait") : "", ", and --max-workers is ",
                o_.max_workers);
  c.council->admit(a.member);
  return "";
}

// The first member of a view keeps the table of its meeting.
std::unique_ptr<Connection> Epochs::meet_members(const View& v) {
  const DoorAddress where = read_card(v.members[0].card);
  comm::RendezvousOptions r;
  r.rank = v.rank(me_);
  r.size = int(v.members.size());
  r.host = joined_by_commas(where.hosts);
  r.port = where.port;
  r.key = key_;
  r.epoch = v.epoch;
  r.deadline = std::min(o_.deadline, kAssembling);
  if (r.rank == 0) r.listener = Fd(fcntl(door_.socket.get(), F_DUPFD_CLOEXEC, 0));
  r.in_vain = [&] { return is_past(v); };
  const int rank = r.rank, size = r.size;
  comm::Rendezvous met(std::move(r));
  const std::vector<std::string> hosts = met.all_gather(comm::host_identity());
  auto c = connect(met, v);
  const auto is_here = [&](const std::string& h) { return h == hosts[size_t(rank)]; };
  c->place.rank = rank, c->place.world = size;
  c->place.local_rank = int(std::count_if(hosts.begin(), hosts.begin() + rank, is_here));
  c->place.local_world = int(std::count_if(hosts.begin(), hosts.end(), is_here));
  return c;
}

void Epochs::advance() {
  auto next = cross(*now_, {.connect = [this](const View& v) { return meet_members(v); },
                            .begin =
                                [this](Connection& c, std::unique_ptr<comm::Succession> begun) {
                                  // A newcomer whose connection is closed knocks again, as another member.
                                  for (const comm::MemberId m : now_->door->waiting()) begun->prove_dead(m);
                                  open_council(c, std::move(begun));
                                },
                            .patience = o_.deadline});
  next->transport->mailbox().refusals().add(now_->place.refusals->counts());
  if (o_.regroups()) past_.push_back(std::move(now_));
  now_ = std::move(next);
}

}  // namespace skein::apps
