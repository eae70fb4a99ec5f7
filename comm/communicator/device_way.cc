// Deciding between NCCL and the host, and forming the group when it is first needed.
#include "comm/communicator/device_way.h"

#include "comm/communicator/words.h"

namespace skein::comm {
namespace {

// An offer as rank 0 receives it: flags, the name of the groups, the trouble, the GPU, each but the last
// ended by a zero.
std::string packed(const DeviceOffer& o) {
  return text(o.groups.form ? 'g' : '-', o.repeatable ? 'r' : '-', o.groups.name, '\0', o.trouble, '\0') +
         o.gpu;
}
DeviceOffer unpacked(const std::string& s) {
  DeviceOffer o;
  const size_t name = s.find('\0', 2), trouble = s.find('\0', name + 1);
  CHECK(name != std::string::npos && trouble != std::string::npos, "a damaged offer of", s.size(), "bytes");
  if (s[0] == 'g') o.groups.form = [](auto&&...) { return nullptr; };
  o.repeatable = s[1] == 'r';
  o.groups.name = s.substr(2, name - 2);
  o.trouble = s.substr(name + 1, trouble - name - 1);
  o.gpu = s.substr(trouble + 1);
  return o;
}

}  // namespace

DeviceVerdict decide(DeviceWish wish, const std::vector<DeviceOffer>& all) {
  bool any = false;
  for (const DeviceOffer& o : all) any = any || !o.gpu.empty();
  if (!any)
    return {false, "",
            wish == DeviceWish::kGroup ? "NCCL sums between GPUs, and the workers compute on CPUs" : ""};
  if (wish == DeviceWish::kHost) return {false, "sums between GPUs go by way of the host, as asked", ""};
  std::string why;
  for (size_t r = 0; r < all.size() && why.empty(); ++r) {
    if (all[r].gpu.empty())
      why = text("worker ", r, " has no GPU");
    else if (!all[r].groups.form)
      why = text("worker ", r, ": ", all[r].trouble);
    else if (all[r].repeatable && wish == DeviceWish::kAuto)
      why = "in rank order, because the run is to be deterministic";
    for (size_t q = 0; q < r && why.empty(); ++q)
      if (all[q].gpu == all[r].gpu) why = text("workers ", q, " and ", r, " share a GPU");
  }
  if (why.empty())
    return {true,
            text("sums between GPUs go through ", all[0].groups.name, ": every worker has a GPU of its own"),
            ""};
  return {false, text("sums between GPUs go by way of the host: ", why),
          wish == DeviceWish::kGroup ? why : ""};
}

DeviceGroup& DeviceWay::group(Communicator& c) {
  if (group_) return *group_;
  forming_ = true;
  try {
    const std::string id = broadcast_text(c, c.rank() == 0 ? offer_.groups.new_id() : "", 0);
    group_ = offer_.groups.form(id, c.rank(), c.size(), offer_.device, c.options().deadline);
  } catch (...) {
    forming_ = false;
    throw;
  }
  forming_ = false;
  return *group_;
}

// The device does it; the host looks now and then whether it has.
class DeviceWay::Reduction final : public Pending::Op {
 public:
  Reduction(Communicator& c, std::shared_ptr<DeviceWay> way, const Tensor& x)
      : clock_(c.transport()), way_(std::move(way)), x_(x), end_(way_->queue_sum(c, x)) {
    name = "all-reduce";
    bytes = x.bytes();
    awaited = &end_;
  }
  void advance() override {
    done = end_.ready();
    if (done) landed = clock_.now(), x_.storage()->written(), x_ = {};
  }
  void check_health() const override { way_->check_health(); }
  void give_up() noexcept override { way_->abort(); }

 private:
  const Transport& clock_;
  const std::shared_ptr<DeviceWay> way_;
  Tensor x_;
  const Event end_;
};

Event DeviceWay::queue_sum(Communicator& c, const Tensor& x) {
  c.meter().moved(2 * (c.size() - 1) * x.bytes() / c.size());
  DeviceGroup& g = group(c);
  stream_.wait(current_stream(offer_.device).record());
  g.all_reduce(x, stream_);
  return stream_.record();
}

std::shared_ptr<Pending::Op> DeviceWay::reduction(Communicator& c, const Tensor& x) {
  return std::make_shared<Reduction>(c, shared_from_this(), x);
}

void DeviceWay::broadcast(Communicator& c, const Tensor& x, Rank root,
                          const std::function<void(Clock::time_point)>& nap) {
  auto began = Clock::now();
  DeviceGroup& g = group(c);
  stream_.wait(current_stream(offer_.device).record());
  g.broadcast(x, root, stream_);
  const Event end = stream_.record();
  try {
    for (auto looked = Clock::now(); !end.ready(); began += absence(looked)) {
      check_health();
      nap(began);
    }
  } catch (...) {
    abort();
    throw;
  }
  x.storage()->written();
}

void DeviceWay::check_health() const {
  if (group_) group_->check_health();
}
void DeviceWay::abort() noexcept {
  if (group_) group_->abort();
}

std::pair<std::string, bool> agree(Communicator& c, DeviceWish wish, const DeviceOffer& mine) {
  const std::vector<std::string> offers = gather_text(c, packed(mine), 0);
  DeviceVerdict v;
  if (c.rank() == 0) {
    std::vector<DeviceOffer> all;
    for (const std::string& words : offers) all.push_back(unpacked(words));
    v = decide(wish, all);
  }
  const char kind = !v.refused.empty() ? '!' : v.group ? 'g' : '-';
  const std::string said = broadcast_text(c, text(kind, v.refused.empty() ? v.why : v.refused), 0);
  if (said[0] == '!') throw BadOption("--collectives nccl: " + said.substr(1));
  return {said.substr(1), said[0] == 'g'};
}

}  // namespace skein::comm
