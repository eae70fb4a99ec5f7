// Sources that forward to a shared one, and the table of those that are open.
#include "apps/setup/shared_data.h"

#include <map>
#include <mutex>

namespace skein::apps {
namespace {

class SharedSource final : public data::DataSource {
 public:
  SharedSource(std::shared_ptr<const data::Split> all, const data::DataSource& one)
      : all_(std::move(all)), one_(one) {}
  int64_t size() const override { return one_.size(); }
  const std::vector<std::string>& classes() const override { return one_.classes(); }
  data::ImageSize image() const override { return one_.image(); }
  int32_t label(int64_t i) const override { return one_.label(i); }
  bool read(int64_t i, const data::View& v, const data::ImageSize& out, uint8_t* pixels) const override {
    return one_.read(i, v, out, pixels);
  }
  std::string name(int64_t i) const override { return one_.name(i); }
  std::string key(int64_t i) const override { return one_.key(i); }
  std::vector<float> mean() const override { return one_.mean(); }
  std::vector<float> std() const override { return one_.std(); }

 private:
  const std::shared_ptr<const data::Split> all_;
  const data::DataSource& one_;
};

}  // namespace

data::Split open_shared(const std::string& spec, uint64_t seed) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, uint64_t>, std::weak_ptr<const data::Split>> open;
  const std::lock_guard lock(mutex);
  auto& known = open[{spec, seed}];
  std::shared_ptr<const data::Split> all = known.lock();
  if (!all) known = all = std::make_shared<const data::Split>(data::open_data(spec, seed));
  return {std::make_unique<SharedSource>(all, *all->train), std::make_unique<SharedSource>(all, *all->test),
          all->notes, all->tenth};
}

}  // namespace skein::apps
