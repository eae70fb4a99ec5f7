// Communicator: its members, groups, messages and handlers. The collectives are in collectives.cc.
#include "comm/communicator/communicator.h"

#include <algorithm>
#include <utility>

#include "comm/communicator/device_way.h"
#include "comm/communicator/state.h"
#include "engine/words/hash.h"

namespace skein::comm {
namespace {

// FNV-1a of a group's members, its parent and how many groups of the same members came before.
uint32_t id_of_group(uint32_t parent, const std::vector<Rank>& members, int count) {
  Fnv<uint32_t> h;
  h.add(parent).add(uint32_t(count));
  for (Rank r : members) h.add(uint32_t(r));
  return h.value();
}

}  // namespace

Communicator::Communicator(Transport& t, CommunicatorOptions o)
    : Communicator(
          std::make_unique<State>(t, std::move(o), Members(t.size()), 1, std::make_shared<Meter>())) {}

Communicator::Communicator(std::unique_ptr<State> s) : state_(std::move(s)) {}

Communicator::~Communicator() {
  if (state_->handlers.empty()) return;
  state_->stop = true;
  transport().mailbox().wake();
  for (Thread& t : state_->handlers) t.join();
}

Rank Communicator::rank() const { return state_->group.rank; }
int Communicator::size() const { return state_->group.size(); }
Rank Communicator::world_rank(Rank r) const { return state_->group.world_rank(r); }
const CommunicatorOptions& Communicator::options() const { return state_->group.options; }
double Communicator::set_deadline(double seconds) {
  return std::exchange(state_->group.options.deadline, seconds);
}
DType Communicator::set_wire(DType wire) {
  CHECK(wire == kF32 || wire == kBF16, wire);
  return std::exchange(state_->group.options.wire, wire);
}
Transport& Communicator::transport() const { return state_->group.transport; }
Membership& Communicator::membership() const { return transport().mailbox().membership(); }
Allocator& Communicator::allocator() const { return transport().memory().allocator(); }
Meter& Communicator::meter() const { return *state_->group.meter; }

std::unique_ptr<Communicator> Communicator::group(const std::vector<Rank>& members) {
  const Group& g = state_->group;
  std::vector<Rank> world;
  for (Rank m : members) {
    CHECK(m >= 0 && m < size(), "no such member", m, "of", size());
    CHECK(std::find(world.begin(), world.end(), world_rank(m)) == world.end(), "member twice:", m);
    world.push_back(world_rank(m));
  }
  const uint32_t id = id_of_group(g.id, world, state_->groups_made[world]++);
  auto made = std::make_unique<State>(g.transport, g.options, std::move(world), id, g.meter);
  if (state_->devices) made->devices = state_->devices->for_group();
  return std::unique_ptr<Communicator>(new Communicator(std::move(made)));
}

std::unique_ptr<Communicator> Communicator::twin(bool all_needed) const {
  const Group& g = state_->group;
  CommunicatorOptions o = g.options;
  o.all_needed = all_needed;
  auto made = std::make_unique<State>(g.transport, std::move(o), g.members, g.id, g.meter);
  return std::unique_ptr<Communicator>(new Communicator(std::move(made)));
}

// ---- messages ---------------------------------------------------------------------------------------------

void Communicator::push(const std::vector<Share>& shares, Tag tag, int64_t step, const Tensor& x) {
  CHECK(tag < kOwnTags && step >= 0, tag, step);
  state_->sender.send(shares, tag, step, x, layout_of(x.size(), x.dtype()));
}
void Communicator::push(Rank to, Tag tag, int64_t step, float factor, const Tensor& x, double weight) {
  push({{to, factor, weight}}, tag, step, x);
}

Tensor Communicator::wire_buffer(const Tensor& like) const {
  return like.device().is_host() ? Tensor({like.size()}, options().wire, allocator())
                                 : Tensor({like.size()}, options().wire, like.device());
}
void Communicator::push_buffer(Rank to, Tag tag, int64_t step, const Tensor& filled, double weight) {
  CHECK(tag < kOwnTags && step >= 0, tag, step);
  state_->sender.send_buffer({to, 1, weight}, tag, step, filled);
}

Message Communicator::take(Rank from, Tag tag, int64_t step) {
  return state_->receiver.wait(state_->group.key(from, tag, step));
}
Message Communicator::take(Rank from, Tag tag, int64_t step, const Tensor& like, Precision precision) {
  const Expected expected(layout_of(like.size(), like.dtype()), like.size(), like.dtype());
  return beside(like, state_->receiver.wait(state_->group.key(from, tag, step), expected, precision));
}
std::optional<Message> Communicator::take_within(double seconds, Rank from, Tag tag, int64_t step) {
  return state_->receiver.wait_until(after(seconds), state_->group.key(from, tag, step));
}

std::optional<Message> Communicator::take_unless(Other o, double seconds, Rank from, Tag tag, int64_t step) {
  const Key other = state_->group.key(kAnyone, o.tag, o.step);
  return state_->receiver.wait_unless(other, after(seconds), state_->group.key(from, tag, step));
}

std::optional<Message> Communicator::poll(Rank from, Tag tag, int64_t step) {
  Receiver& receiver = state_->receiver;
  receiver.progress();
  const Key k = state_->group.key(from, tag, step);
  if (std::optional<Message> m = receiver.poll(k)) return receiver.unpack(std::move(*m));
  receiver.check(k);
  return {};
}

Message Communicator::beside(const Tensor& like, Message m) const {
  CHECK(m.payload.size() == like.size(), m.payload.shape(), like.shape());
  m.payload = state_->group.staging.beside(like.device(), m.payload);
  return m;
}

void Communicator::on(Tag tag, std::function<void(const Message&)> f) {
  const Key k = state_->group.key(kAnyone, tag, kAnyStep);
  state_->handlers.emplace_back([k, f = std::move(f), &state = *state_] {
    Transport& t = state.group.transport;
    try {
      while (!state.stop) {
        t.progress();
        if (auto m = t.mailbox().poll(k))
          f(state.receiver.unpack(std::move(*m)));
        else if (t.mailbox().epoch_ends())
          nap(std::chrono::milliseconds(1));  // waits return at once
        else
          t.wait(k, after(longest_nap()));
      }
    } catch (const std::exception& e) {
      t.mailbox().poison(text("the handler of tag ", k.tag, " failed: ", e.what()));
    }
  });
}

void Communicator::progress() { state_->receiver.progress(); }

}  // namespace skein::comm
