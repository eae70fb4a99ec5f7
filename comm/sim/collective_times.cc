// Loads of links are counted in pairs of members, so that all is linear in members, hosts and switches.
#include "comm/sim/collective_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace skein::comm::sim {
namespace {

constexpr double kHeader = 64, kPart = 4 << 20;  // bytes; a broadcast goes on in such parts

// The binomial tree of a broadcast, in places after the root: parents before their children.
template <class F>
void each_parent(Rank n, F f) {
  for (Rank d = 0; d < n; ++d) {
    std::vector<Rank> children;
    Rank bit = 1;
    while (bit <= d) bit <<= 1;
    for (; d + bit < n; bit <<= 1) children.push_back(d + bit);
    f(d, children);
  }
}

}  // namespace

CollectiveTimes::CollectiveTimes(const Site* site, const Weather& w, const std::vector<int>& hosts)
    : site_(site),
      plan_(site ? &site->plan() : nullptr),
      weather_(w),
      hosts_(hosts),
      n_(double(hosts.size())) {
  if (!site) {
    for (Rank r = 0; r < Rank(hosts.size()) && w.bandwidth > 0; ++r)
      links_.push_back({w.bandwidth, n_ - 1, {r}, n_ - 1});
    return;
  }
  header_ = kHeader;
  std::map<int, std::vector<Rank>> on;
  for (Rank r = 0; r < Rank(hosts_.size()); ++r) on[hosts_[size_t(r)]].push_back(r);
  std::map<std::pair<int, double>, std::pair<int, bool>>
      kinds;  // of hosts, by switch and latency; several of it?
  for (const auto& [h, members] : on) {
    const SitePlan::Host& host = plan_->hosts[size_t(h)];
    const double here = double(members.size());
    if (const double rate = host.rate * plan_->goodput; rate > 0) {
      links_.push_back({rate, here * (n_ - here), members, n_ - here});  // out of it
      links_.push_back({rate, here * (n_ - here), {}, here});            // into it
    }
    const auto [at, fresh] = kinds.emplace(std::pair(host.at, host.latency), std::pair(h, false));
    if (!fresh) at->second.second = true;
  }
  for (const auto& [a, one] : kinds)
    for (const auto& [b, other] : kinds)
      if (one.first != other.first)
        latency_ = std::max(latency_, site->path(one.first, other.first).latency);
      else if (one.second)
        latency_ = std::max(latency_, 2 * plan_->hosts[size_t(one.first)].latency +
                                          (a.first < 0 ? 0 : plan_->switches[size_t(a.first)].latency));
  add_switches(*plan_);
  for (const SitePlan::Link& l : plan_->links)
    for (const auto& [from, to] : {std::pair(l.a, l.b), std::pair(l.b, l.a)}) {
      if (!on.count(from) || !on.count(to)) continue;
      latency_ = std::max(latency_, site->path(from, to).latency);
      const double there = double(on[to].size());
      if (l.rate > 0)
        links_.push_back({l.rate * plan_->goodput, double(on[from].size()) * there, on[from], there});
    }
}

// A switch carries the messages between any rank below it and any other, unless a lower switch
// connects the two.
void CollectiveTimes::add_switches(const SitePlan& p) {
  const size_t switches = p.switches.size();
  std::vector<double> turned(switches, 0);
  std::vector<std::vector<Rank>> below(switches);
  std::map<int, double> on;
  for (Rank r = 0; r < Rank(hosts_.size()); ++r) {
    ++on[hosts_[size_t(r)]];
    for (const int s : p.above(hosts_[size_t(r)])) below[size_t(s)].push_back(r);
  }
  const auto among = [](double m) { return m * (m - 1); };
  for (const auto& [h, here] : on)
    if (const int at = p.hosts[size_t(h)].at; at >= 0) turned[size_t(at)] += among(here);
  for (size_t s = 0; s < switches; ++s)
    if (const int above = p.switches[s].above; above >= 0)
      turned[size_t(above)] += among(double(below[s].size()));
  for (size_t s = 0; s < switches; ++s) {
    const double m = double(below[s].size()), crossing = m * (n_ - m);
    const double through = among(m) - turned[s] + 2 * crossing;
    if (p.switches[s].rate > 0 && through > 0)
      links_.push_back({p.switches[s].rate * p.goodput, through, {}, through / n_});
    if (p.switches[s].up <= 0 || crossing == 0) continue;
    links_.push_back({p.switches[s].up * p.goodput, crossing, below[s], n_ - m});
    links_.push_back({p.switches[s].up * p.goodput, crossing, {}, m});
  }
}

// Calls f with a number and the rate of each bounded switch and link on the way.
template <class F>
void CollectiveTimes::each_on_way(Rank from, Rank to, F f) const {
  if (!plan_ || hosts_[size_t(from)] == hosts_[size_t(to)]) return;
  const int a = hosts_[size_t(from)], b = hosts_[size_t(to)];
  std::vector<int> ups = plan_->above(a), downs = plan_->above(b);
  while (ups.size() > 1 && downs.size() > 1 && ups[ups.size() - 2] == downs[downs.size() - 2])
    ups.pop_back(), downs.pop_back();  // where they turn around is the last of both
  const auto use = [&](int s, int kind, double rate) {
    if (rate > 0) f(3 * s + kind, rate * plan_->goodput);
  };
  for (size_t i = 0; i < plan_->links.size(); ++i) {
    const SitePlan::Link& l = plan_->links[i];
    if ((l.a == a && l.b == b) || (l.a == b && l.b == a)) use(-1 - int(i), l.a == a, l.rate);
  }
  for (const int s : ups) use(s, 0, plan_->switches[size_t(s)].rate);
  for (size_t i = 0; i + 1 < ups.size(); ++i) use(ups[i], 1, plan_->switches[size_t(ups[i])].up);
  for (size_t i = 0; i + 1 < downs.size(); ++i) {
    use(downs[i], 0, plan_->switches[size_t(downs[i])].rate);
    use(downs[i], 2, plan_->switches[size_t(downs[i])].up);
  }
}

double CollectiveTimes::rate_of(Rank r) const {
  const double rate =
      plan_ ? plan_->hosts[size_t(hosts_[size_t(r)])].rate * plan_->goodput : weather_.bandwidth;
  return rate > 0 ? rate : std::numeric_limits<double>::infinity();
}

double CollectiveTimes::latency(Rank from, Rank to) const {
  return site_ ? site_->path(hosts_[size_t(from)], hosts_[size_t(to)]).latency : 0;
}

double CollectiveTimes::handing_over(double messages, double bytes) const {
  return plan_ ? messages * (plan_->message + plan_->byte * (bytes + header_)) : 0;
}

// Latency, jitter and repeats of the worst of so many messages: of k repeats or fewer are all with the
// probability (1 - loss^(k + 1))^messages.
double CollectiveTimes::delay(double messages, const Draw& draw, uint64_t chance) const {
  double late =
      latency_ + weather_.latency + weather_.jitter * std::pow(double(draw.unit(2 * chance)), 1 / messages);
  if (weather_.loss <= 0) return late;
  const double u = double(draw.unit(2 * chance + 1));
  for (double lost = weather_.loss; std::pow(1 - lost, messages) < u; lost *= weather_.loss)
    late += weather_.retry;
  return late;
}

// All send so many bytes to each of the others. The last to come has the links to itself, except for those
// that came shortly before: for each suffix of the arrivals, a link ends no earlier than what that suffix
// brings it allows.
CollectiveTimes::Exchange CollectiveTimes::exchange(const std::vector<double>& came, double bytes,
                                                    const Draw& draw, uint64_t chance) const {
  const double each = bytes + header_;
  std::vector<double> order = came;
  std::sort(order.begin(), order.end());
  const auto last_of = [&](const std::vector<double>& sorted, const Link& l) {
    double end = 0;
    const double most = l.pairs / l.each,
                 seconds = l.each * each / l.rate;  // most: who receives does not send as well
    for (size_t k = 0; k < sorted.size(); ++k)
      end = std::max(end, sorted[k] + std::min(double(sorted.size() - k), most) * seconds);
    return end;
  };
  double end = order.back() + handing_over(n_ - 1, bytes);
  for (const Link& l : links_) {
    if (l.senders.empty()) {
      end = std::max(end, last_of(order, l));
    } else {
      std::vector<double> of_link;
      for (Rank r : l.senders) of_link.push_back(came[size_t(r)]);
      std::sort(of_link.begin(), of_link.end());
      end = std::max(end, last_of(of_link, l));
    }
  }
  return {end, end + delay(n_ * (n_ - 1), draw, chance)};
}

// While what one sum sends is on its way, after it has left the links, they carry the next.
double CollectiveTimes::sum(const std::vector<double>& came, double bytes, bool one_hop, const Draw& draw) {
  std::vector<double> from = came;
  for (double& t : from) t = std::max(t, free_);
  const Exchange first = exchange(from, one_hop ? bytes : bytes / n_, draw, 0);
  free_ = first.sent;
  if (one_hop) return first.there;
  const Exchange second = exchange(std::vector<double>(came.size(), first.there), bytes / n_, draw, 1);
  free_ = second.sent - (first.there - first.sent);
  return second.there;
}

double CollectiveTimes::gather(const std::vector<double>& came, const std::vector<double>& bytes, Rank root,
                               const Draw& draw) const {
  std::vector<size_t> order(came.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return came[a] < came[b]; });
  double end = came[size_t(root)], in = 0, way = 0;  // the end at the root's link, and on the way to it
  std::map<int, double> seconds;                     // of each switch and link between switches
  for (size_t i : order) {
    if (Rank(i) == root || (plan_ && hosts_[i] == hosts_[size_t(root)])) continue;
    const double sent = came[i] + handing_over(1, bytes[i]);
    in = std::max(in, sent) + (bytes[i] + header_) / (plan_ ? rate_of(root) : rate_of(Rank(i)));
    each_on_way(Rank(i), root, [&](int link, double rate) {
      double& all = seconds[link];
      way = std::max(way, came[order.front()] + (all += (bytes[i] + header_) / rate));
    });
  }
  return std::max(end, std::max(in, way) + delay(n_ - 1, draw, 0));
}

// A parent sends each part to all its children at the same time. The first part of a child comes when the
// parent has sent it, the last when the parent has sent all. Parents at the same depth of the tree send at
// the same time.
std::vector<double> CollectiveTimes::broadcast(const std::vector<double>& came, double bytes, Rank root,
                                               const Draw& draw) const {
  const Rank n = Rank(came.size());
  const double parts = std::max(1.0, std::ceil(bytes / kPart)), part = bytes / parts + header_;
  const auto rank = [&](Rank d) { return (d + root) % n; };
  std::map<std::pair<int, int>, double> shared;  // seconds of a part, by depth and link
  each_parent(n, [&](Rank d, const std::vector<Rank>& children) {
    for (Rank c : children)
      each_on_way(rank(d), rank(c), [&](int link, double rate) {
        shared[{__builtin_popcount(unsigned(d)), link}] += part / rate;
      });
  });
  std::vector<double> first(came.size()), last(came.size());
  first[size_t(root)] = last[size_t(root)] = came[size_t(root)];
  each_parent(n, [&](Rank d, const std::vector<Rank>& children) {
    const Rank me = rank(d);
    const double k = double(children.size());
    double sending = std::max(k * part / rate_of(me), handing_over(k, part));
    for (Rank c : children)
      each_on_way(me, rank(c), [&](int link, double) {
        sending = std::max(sending, shared[{__builtin_popcount(unsigned(d)), link}]);
      });
    const double late = k > 0 ? delay(1, draw, uint64_t(d)) : 0, from = first[size_t(me)];
    for (Rank c : children) {
      const size_t to = size_t(rank(c));
      first[to] = std::max(came[to], from + sending + late);
      last[to] = std::max(came[to], std::max(last[size_t(me)] + sending, from + parts * sending) + late);
    }
  });
  return last;
}

std::vector<double> CollectiveTimes::barrier(const std::vector<double>& came, const Draw& draw) const {
  const Rank n = Rank(came.size());
  std::vector<double> now = came;
  uint64_t round = 0;
  for (Rank d = 1; d < n; d <<= 1, ++round) {
    const double chance = delay(n_, draw, round) - latency_;
    std::vector<double> then = now;
    for (Rank r = 0; r < n; ++r) {
      const Rank from = (r - d + n) % n;
      const double sent = now[size_t(from)] + handing_over(1, 0) + header_ / rate_of(from);
      then[size_t(r)] = std::max(now[size_t(r)], sent + latency(from, r) + chance);
    }
    now = std::move(then);
  }
  return now;
}

}  // namespace skein::comm::sim
