// Delayed transport: the true header, a number and a time of arrival travel inside the payload.
#include "comm/transports/delayed_transport.h"

#include <algorithm>
#include <cstring>

#include "engine/random.h"

namespace skein::comm {
namespace {

constexpr uint32_t kDelayed = 0xDE1A7ED;  // the communicator under which everything travels
constexpr Tag kParcel = kOwnTags + 0xDE1;
const Key kParcels{kDelayed, kAnyone, kParcel, kAnyStep};

struct Label {  // what precedes the true payload
  Header header;
  int64_t number;
  double arrival;
};

}  // namespace

class DelayedTransport::Peer final : public Endpoint {
 public:
  Peer(DelayedTransport& t, Rank peer) : t_(t), peer_(peer) {}
  const char* name() const override { return "delayed"; }

  void send(const Header& h, Tensor payload, Clock::time_point deadline) override {
    Label label{h, 0, 0};
    const int copies = schedule(label, double(payload.bytes()));
    Tensor parcel({int64_t(sizeof label) + payload.bytes()}, kU8, t_.inner_->memory().allocator());
    std::memcpy(parcel.raw(), &label, sizeof label);
    if (payload.bytes() > 0)
      std::memcpy(static_cast<char*>(parcel.raw()) + sizeof label, payload.raw(), size_t(payload.bytes()));
    Header outer;
    outer.communicator = kDelayed;
    outer.epoch = t_.inner_->mailbox().membership().epoch();
    outer.from = t_.rank();
    outer.tag = kParcel;
    outer.step = label.number;
    outer.bytes = parcel.bytes();
    outer.codec = outer.dtype = uint8_t(kU8);
    for (int i = 0; i < copies; ++i) t_.inner_->to(peer_).send(outer, parcel, deadline);
  }

 private:
  // Decides what happens to the next message, and returns how often it comes.
  int schedule(Label& label, double bytes) {
    const Weather& w = t_.weather_;
    const std::lock_guard lock(t_.mutex_);
    label.number = t_.links_[size_t(peer_)].sent++;
    const Draw draw{w.seed, Purpose::kFault, uint64_t(label.number), uint32_t(t_.rank() * t_.size() + peer_)};
    const double begin = std::max(t_.now_, t_.free_at_);
    t_.free_at_ = begin + (w.bandwidth > 0 ? bytes / w.bandwidth : 0);
    label.arrival = t_.free_at_ + w.latency + w.jitter * double(draw.unit(0));
    for (uint64_t i = 2; double(draw.unit(i)) < w.loss; ++i) {
      label.arrival += w.retry;
      ++t_.counts_.lost;
    }
    return double(draw.unit(1)) < w.duplication ? 2 : 1;
  }
  DelayedTransport& t_;
  const Rank peer_;
};

DelayedTransport::DelayedTransport(std::unique_ptr<Transport> inner, const Weather& w)
    : inner_(std::move(inner)),
      weather_(w),
      box_(inner_->rank(), inner_->size()),
      links_(size_t(inner_->size())) {
  CHECK(w.loss >= 0 && w.loss < 1 && w.duplication >= 0 && w.latency >= 0 && w.jitter >= 0, w.loss,
        w.duplication);
  for (Rank r = 0; r < size(); ++r) peers_.push_back(std::make_unique<Peer>(*this, r));
}
DelayedTransport::~DelayedTransport() = default;

double DelayedTransport::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}
void DelayedTransport::spend(double seconds) {
  CHECK(seconds >= 0, seconds);
  const std::lock_guard lock(mutex_);
  now_ += seconds;
}
DelayedTransport::Counts DelayedTransport::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}
Endpoint& DelayedTransport::to(Rank r) { return *peers_.at(size_t(r)); }

bool DelayedTransport::first_time(Link& link, int64_t number) {
  if (number < link.next_new || !link.early.insert(number).second) {
    ++counts_.duplicates;
    return false;
  }
  while (!link.early.empty() && *link.early.begin() == link.next_new)
    link.early.erase(link.early.begin()), ++link.next_new;
  return true;
}

void DelayedTransport::collect() {
  inner_->progress();
  while (std::optional<Message> parcel = inner_->mailbox().poll(kParcels)) {
    CHECK(parcel->payload.bytes() >= int64_t(sizeof(Label)),
          "a message that is not from a delayed transport");
    Label label;
    std::memcpy(&label, parcel->payload.raw(), sizeof label);
    if (!first_time(links_[size_t(parcel->from)], label.number)) continue;
    const int64_t unit = size_of(DType(label.header.codec));
    Message m{label.header,
              Tensor({(parcel->payload.bytes() - int64_t(sizeof label)) / unit}, DType(label.header.codec))};
    if (m.payload.bytes() > 0)
      std::memcpy(m.payload.raw(), static_cast<const char*>(parcel->payload.raw()) + sizeof label,
                  size_t(m.payload.bytes()));
    late_.emplace(label.arrival, std::pair(label.number, std::move(m)));
  }
}

void DelayedTransport::deliver_due() {
  while (!late_.empty() && late_.begin()->first <= now_) {
    auto& [number, m] = late_.begin()->second;
    Link& link = links_[size_t(m.from)];
    if (number < link.latest) ++counts_.overtaken;
    link.latest = std::max(link.latest, number);
    m.arrived = late_.begin()->first;
    box_.put(std::move(m));
    late_.erase(late_.begin());
  }
}

void DelayedTransport::progress() {
  const std::lock_guard lock(mutex_);
  collect();
  deliver_due();
  const Membership& below = inner_->mailbox().membership();
  for (Rank r = 0; r < size(); ++r) {
    if (below.alive(r) || !box_.membership().alive(r)) continue;
    const bool more =
        std::any_of(late_.begin(), late_.end(), [&](const auto& l) { return l.second.second.from == r; });
    if (below.lost(r))
      box_.lose(r, below.why(r), below.ended(r));
    else if (!more)
      box_.leave(r);
  }
}

// The clock advances to the arrival of the awaited message and no further, so later messages stay
// on their way.
void DelayedTransport::wait(const Key& k, Clock::time_point until) {
  {
    const std::lock_guard lock(mutex_);
    collect();
    const auto wanted = std::find_if(late_.begin(), late_.end(), [&](const auto& l) {
      const Message& m = l.second.second;
      return m.kind != Kind::kData || matches(k, {m.communicator, m.from, m.tag, m.step});
    });
    if (wanted != late_.end()) {
      now_ = std::max(now_, wanted->first);
      return deliver_due();
    }
  }
  inner_->wait(kParcels, until);
}

}  // namespace skein::comm
