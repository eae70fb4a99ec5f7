// Begins with proportional shares, rounded down, and hands out the rest piece by piece.
#include "data/dealing.h"

#include <algorithm>
#include <numeric>

namespace skein::data {
namespace {

constexpr int64_t kWorthRounding = 32;  // images of an even share from which on kernels like whole pieces
constexpr int64_t kPiece = 8;

class Deal {
 public:
  Deal(const std::vector<double>& speeds, const std::vector<int64_t>& most) : speeds_(speeds), most_(most) {}

  bool has_room(size_t r, int64_t more) const { return most_.empty() || shares[r] + more <= most_[r]; }
  // The time that worker r takes for its share and some more.
  double time(size_t r, int64_t more) const { return double(shares[r] + more) / speeds_[r]; }

  // Gives the piece to the worker that would be done with it first; false if no worker has room for it.
  bool give(int64_t piece) {
    size_t best = shares.size();
    for (size_t r = 0; r < shares.size(); ++r)
      if (has_room(r, piece) && (best == shares.size() || time(r, piece) < time(best, piece))) best = r;
    if (best == shares.size()) return false;
    shares[best] += piece;
    return true;
  }

  // Of those that keep something, the worker that is done last gives up a piece.
  void take(int64_t piece) {
    size_t last = shares.size();
    for (size_t r = 0; r < shares.size(); ++r)
      if (shares[r] > piece && (last == shares.size() || time(r, 0) > time(last, 0))) last = r;
    CHECK(last < shares.size(), "more workers than images");
    shares[last] -= piece;
  }

  std::vector<int64_t> shares;

 private:
  const std::vector<double>& speeds_;
  const std::vector<int64_t>& most_;
};

}  // namespace

std::vector<double> with_mean(std::vector<double> speeds) {
  double sum = 0;
  int64_t known = 0;
  for (const double s : speeds)
    if (s > 0) sum += s, ++known;
  for (double& s : speeds)
    if (!(s > 0)) s = known ? sum / double(known) : 1;
  return speeds;
}

std::vector<int64_t> deal_by_speed(int64_t global_batch, const std::vector<double>& measured,
                                   const std::vector<int64_t>& most) {
  const int64_t workers = int64_t(measured.size());
  CHECK(workers > 0 && global_batch >= workers, workers, global_batch);
  const std::vector<double> speeds = with_mean(measured);
  const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const int64_t piece = global_batch / workers >= kWorthRounding ? kPiece : 1;
  Deal deal(speeds, most);
  int64_t left = global_batch;
  for (size_t r = 0; r < speeds.size(); ++r) {
    int64_t share = int64_t(double(global_batch) * speeds[r] / all) / piece * piece;
    if (!most.empty()) share = std::min(share, most[r] / piece * piece);
    deal.shares.push_back(std::max<int64_t>(share, most.empty() ? piece : std::min(piece, most[r])));
    left -= deal.shares.back();
  }
  for (; left < 0; left += piece) deal.take(piece);
  while (left > 0) {
    int64_t next = std::min(piece, left);
    if (!deal.give(next) && !deal.give(next = 1))
      throw BadOption(text("--batch-size auto: the workers' memory holds ", global_batch - left, " of the ",
                           global_batch, " images of a step; give a smaller --global-batch, or --accumulate ",
                           "to take a share in several passes"));
    left -= next;
  }
  return deal.shares;
}

}  // namespace skein::data
