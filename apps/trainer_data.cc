// What a run has learned about its data: images skipped, odd files, seconds by stage of loading.
#include "apps/trainer.h"

namespace skein::apps {

void DataRecord::visit(Archive& a) {
  a("unreadable", unreadable);
  a("odd_files", odd_files);
  for (const auto& [name, seconds] : stages()) a(std::string("loading.") + name, *seconds);
}

std::array<std::pair<const char*, double*>, 6> DataRecord::stages() {
  return {{{"read", &loading.read},
           {"decode", &loading.decode},
           {"resize", &loading.resize},
           {"jitter", &loading.jitter},
           {"upload", &loading.upload},
           {"wait", &loading.wait}}};
}

int64_t Trainer::unreadable() const {
  return data_before_.unreadable + (loader_ ? loader_->unreadable() : 0);
}

// Earlier runs of the same training included.
void Trainer::unite_odd_files() {
  OddFiles& odd = *setup_.odd_files;
  odd.add(OddFiles::unpack(data_before_.odd_files));
  if (loader_) odd.train.add(loader_->odd());
  odd.unite(comm());
}

const DataIndex& Trainer::data_index() {
  if (!index_) index_ = index_of(setup_.data);
  return *index_;
}

DataRecord Trainer::data_so_far() const {
  DataRecord r{unreadable(), setup_.odd_files->pack(), data_before_.loading};
  if (loader_) r.loading += loader_->seconds();
  return r;
}

void Trainer::say_unreadable() {
  for (const auto& [name, why] : loader_->newly_unreadable())
    progress_.say(text("skipped, cannot be read: ", name, ": ", why));
}

void Trainer::record_data(Summary& s) const {
  const OddFiles& odd = *setup_.odd_files;
  s.odd_files = odd.to_json();
  s.unreadable = odd.left_out();
  s.unreadable_names = odd.names_left_out(setup_.data, 100);
  DataRecord all = data_so_far();
  for (const auto& [name, seconds] : all.stages()) s.seconds_by_stage.emplace_back(name, *seconds);
}

}  // namespace skein::apps
