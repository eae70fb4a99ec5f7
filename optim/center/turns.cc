// Joining the server, asking for turns, and fetching the center while no worker takes a turn.
#include "optim/center/turns.h"

#include <utility>

#include "comm/communicator/unrounded.h"
#include "comm/communicator/words.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

using namespace center;

namespace {

// A narrow wire would leave worker 0, which has the original, with other bits than the others.
void broadcast_state(comm::Communicator& comm, const Tensor& x) {
  const comm::Unrounded exactly(comm);
  comm.broadcast(x, 0);
}

}  // namespace

Tensor beside(const Tensor& like, const Tensor& x) {
  const Tensor y = x.device() == like.device() ? x : x.to(like.device());
  return y.view(like.shape());
}

Turns::Turns(const Options& o, int workers, int64_t kept)
    : options_(o), workers_(workers), kept_(kept), dedicated_(has_dedicated_server(o)) {}

// Worker 0 opens the center once, and the workers keep the ranks in it that they have at that time.
void Turns::join(Worker& me, comm::Communicator& hub, const Center::Column& column) {
  first_ = me.comm.rank() == 0;
  worker_ = me.comm.rank();
  comm_ = hub.twin(false);
  // A worker waits for the turns of the others as well; only the loss of the server ends that.
  patience_ = comm_->set_deadline(comm::kForever);
  server_ = dedicated_ ? hub.size() - 1 : 0;
  if (dedicated_)
    invitation_ = comm::text_of_bytes(comm_->take(server_, kInvitation, 0).payload);
  else if (first_)
    invitation_ = host_.open(options_, me.comm.twin(false), workers_, column, kept_);
  if (host_.is_open()) host_.serve_beside();
}

void Turns::start(Worker& me, comm::Communicator& hub, const Center::Column& column) {
  CHECK((&hub != &me.comm) == dedicated_, "--servers dedicated: there is no server");
  if (!std::exchange(joined_, true)) join(me, hub, column);
  if (!dedicated_) invitation_ = comm::broadcast_text(me.comm, invitation_, 0);
  CenterHost::require_invitation(invitation_);
  if (!inbox_)
    inbox_ = std::make_unique<comm::InboxClient>(comm::Invitation::read(invitation_), comm_->options().key,
                                                 worker_);
  broadcast_state(me.comm, me.x);
  if (!keeps()) saw(me.x.clone(), 0);
  if (first_) {
    settled_.all = Tensor::zeros({(1 + kept_) * me.x.size()});
    copy_bytes(settled_center(), me.x);
    if (!me.x.device().is_host()) current_stream(me.x.device()).sync();
    put();
  }
  me.comm.barrier();  // there are no turns before there is a center
}

// An inbox acknowledges a request at once, whatever its server does. The deadline is that of the
// acknowledgement, not that of the turn.
void Turns::ask(uint16_t kind) {
  sequence_ = inbox_->ask(kind, 0, patience_, [&] {
    comm_->progress();
    comm_->transport().mailbox().check({0, comm_->world_rank(server_), 0, 0});
  });
}

comm::Message Turns::exchange(const Tensor& what, int64_t version) {
  settled_.is_current = false;
  comm_->push(server_, kToCenter, inbox_->coming(), 1, what, double(version));
  ask(kTurn);
  return comm_->take(server_, kFromCenter, sequence_);
}

comm::Message Turns::open() {
  settled_.is_current = false;
  ask(kTurn);
  return comm_->take(server_, kFromCenter, sequence_);
}

void Turns::commit(const Tensor& u) { comm_->push_buffer(server_, kToCenter, sequence_, u); }

// The queue keeps its order: when worker 0's pull is served, so are all turns asked for before
// the first barrier.
void Turns::settle(Worker& me) {
  me.comm.barrier();
  if (first_) pull();
  me.comm.barrier();
  settled_.is_current = true;
}

void Turns::pull() {
  ask(kPull);
  copy(settled_.all, comm_->take(server_, kFromCenter, sequence_, settled_.all).payload);
  const comm::Message state = comm_->take(server_, kStateFromCenter, sequence_, Tensor({2}, kI64));
  settled_.version = state.payload.data<int64_t>()[0];
  settled_.log = state.payload.data<int64_t>()[1];
}

// A server that has lived on has a later one.
void Turns::put() {
  const comm::Unrounded exactly(*comm_);
  comm_->push(server_, kToCenter, inbox_->coming(), 1, settled_.all);
  comm_->push(server_, kStateToCenter, inbox_->coming(), 1,
              Tensor::of<int64_t>({2}, {settled_.version, settled_.log}));
  ask(kPut);
  const comm::Message state = comm_->take(server_, kStateFromCenter, sequence_, Tensor({2}, kI64));
  if (state.payload.data<int64_t>()[0] != settled_.version) pull();
  settled_.is_current = true;
}

void Turns::saw(const Tensor& theta, int64_t version, const Tensor& u) { seen_ = {theta, u, version}; }

bool Turns::membership_changes() const { return comm_ && comm_->transport().mailbox().epoch_ends(); }

void Turns::visit_seen(Archive& a) {
  if (a.loading() || !seen_.theta || !membership_changes()) return;
  Tensor theta({seen_.theta.size()}), u(theta.shape());
  copy(theta, beside(theta, seen_.theta));
  if (seen_.u) copy(u, beside(u, seen_.u)), axpy(theta, 1.f, u);
  a("center.seen", theta), a("center.seen_version", seen_.version);
}

void Turns::visit(Archive& a) {
  if (!first_ || (dedicated_ && !a.loading() && membership_changes())) return visit_seen(a);
  if (!a.loading() && membership_changes()) {
    host_.close();
    host_.center().read(settled_.all, settled_.version);
  }
  CHECK(a.loading() || settled_.is_current || membership_changes(),
        "a center is saved when the workers have settled");
  Under center(a, "center.");
  Tensor theta = settled_center(),
         kept = settled_.all.view({settled_.all.size() - theta.size()}, theta.size());
  center("theta", theta), center("version", settled_.version), center("log", settled_.log);
  if (kept_ > 0) center("kept", kept);
  if (a.loading()) put();
}

void Turns::write_model(Worker& me, const Tensor& y) {
  if (first_) copy(y, beside(y, settled_center()));
  broadcast_state(me.comm, y);
  const Tensor version = Tensor::of<int64_t>({1}, {settled_.version});
  me.comm.broadcast(version, 0);
  if (!keeps()) saw(y.clone(), version.data<int64_t>()[0]);
}

void Turns::serve(comm::Communicator& hub, const Center::Column& column, Served& kept) {
  const std::string words = host_.open(options_, hub.twin(false), workers_, column, kept_);
  for (int w = 0; w < workers_; ++w) try {
      hub.push(w, kInvitation, 0, 1, comm::bytes_of_text(words));
    } catch (const comm::PeerLost&) {  // lost before it began
    }
  CenterHost::require_invitation(words);
  Center& center = host_.center();
  if (kept.center) center.inherit(kept.center, kept.version);
  center.serve([&] { return goes_on(hub, kept); });
  if (center.all()) kept.center = center.all().clone(), kept.version = center.version();
}

}  // namespace skein::optim
