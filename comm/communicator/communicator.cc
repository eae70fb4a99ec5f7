// Communicator: members, groups, handlers. Sending is in sending.cc, waiting in waiting.cc, the collectives in
// collectives.cc.
#include "comm/communicator/communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/communicator/device_way.h"
#include "comm/communicator/pending.h"
#include "engine/words/hash.h"

namespace skein::comm {
namespace {

std::vector<Rank> everybody(int n) {
  std::vector<Rank> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// FNV-1a of a group's members, its parent and how many groups of the same members came before.
uint32_t id_of_group(uint32_t parent, const std::vector<Rank>& members, int count) {
  Fnv<uint32_t> h;
  h.add(parent).add(uint32_t(count));
  for (Rank r : members) h.add(uint32_t(r));
  return h.value();
}

}  // namespace

struct Communicator::Handlers {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

Communicator::Communicator(Transport& t, CommunicatorOptions o)
    : Communicator(t, o, everybody(t.size()), 1, std::make_shared<Meter>()) {}

Communicator::Communicator(Transport& t, CommunicatorOptions o, std::vector<Rank> members, uint32_t id,
                           std::shared_ptr<Meter> meter)
    : transport_(t),
      options_(std::move(o)),
      members_(std::move(members)),
      id_(id),
      meter_(std::move(meter)),
      staging_(std::make_unique<Staging>()) {
  const DType wire = options_.wire;
  CHECK(wire == kF32 || wire == kBF16, "payloads travel as f32 or bf16, not", wire);
  const auto me = std::find(members_.begin(), members_.end(), t.rank());
  CHECK(me != members_.end(), "rank", t.rank(), "is no member of the group");
  rank_ = Rank(me - members_.begin());
  shares_memory_ =
      std::all_of(members_.begin(), members_.end(), [&](Rank m) { return t.memory().joins(t.rank(), m); });
}

Communicator::~Communicator() {
  if (!handlers_) return;
  handlers_->stop = true;
  transport_.mailbox().wake();
  for (std::thread& t : handlers_->threads) t.join();
}

std::unique_ptr<Communicator> Communicator::group(const std::vector<Rank>& members) {
  std::vector<Rank> world;
  for (Rank m : members) {
    CHECK(m >= 0 && m < size(), "no such member", m, "of", size());
    CHECK(std::find(world.begin(), world.end(), world_rank(m)) == world.end(), "member twice:", m);
    world.push_back(world_rank(m));
  }
  const uint32_t id = id_of_group(id_, world, groups_[world]++);
  std::unique_ptr<Communicator> made(new Communicator(transport_, options_, std::move(world), id, meter_));
  if (devices_) made->devices_ = devices_->anew();
  return made;
}

std::unique_ptr<Communicator> Communicator::twin(bool all_needed) const {
  CommunicatorOptions o = options_;
  o.all_needed = all_needed;
  return std::unique_ptr<Communicator>(new Communicator(transport_, o, members_, id_, meter_));
}

void Communicator::give_up(const std::vector<Rank>& of_the_world, const std::vector<Rank>& members) {
  std::vector<Rank> others = members;
  std::erase(others, rank_);
  const Tensor named = Tensor::of<int32_t>({int64_t(of_the_world.size())}, of_the_world);
  tell(others, notice(Kind::kGivenUp, transport_.rank(), membership().epoch(), named), 1);
}

void Communicator::refuse(const std::string& why, const std::vector<Rank>& members) {
  tell(members, transport_.mailbox().refusal(why), 5);
}

void Communicator::tell(const std::vector<Rank>& members, const Message& m, double patience) {
  for (Rank r : members) try {
      transport_.to(world_rank(r)).send(m, m.payload, after(patience));
    } catch (const Error&) {  // it is past hearing
    }
  transport_.progress();
}

double Communicator::set_deadline(double seconds) { return std::exchange(options_.deadline, seconds); }

Membership& Communicator::membership() { return transport_.mailbox().membership(); }

Key Communicator::key(Rank from, Tag tag, int64_t step) const {
  return {id_, from == kAnyone ? kAnyone : world_rank(from), tag, step};
}

void Communicator::on(Tag tag, std::function<void(const Message&)> f) {
  if (!handlers_) handlers_ = std::make_unique<Handlers>();
  handlers_->threads.emplace_back([this, tag, f = std::move(f), &stop = handlers_->stop] {
    const Key k = key(kAnyone, tag, kAnyStep);
    try {
      while (!stop) {
        transport_.progress();
        if (auto m = transport_.mailbox().poll(k))
          f(unpack(std::move(*m)));
        else
          transport_.wait(k, after(0.02));
      }
    } catch (const std::exception& e) {
      transport_.mailbox().poison(text("the handler of tag ", tag, " failed: ", e.what()));
    }
  });
}

}  // namespace skein::comm
