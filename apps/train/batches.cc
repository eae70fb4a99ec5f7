// The loader of a run, and its counters added to those of earlier runs.
#include "apps/train/batches.h"

#include "apps/base/printable.h"

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

void Batches::open() {
  const Setup& s = run_.setup;
  counted_ = {};
  loader_ = std::make_unique<data::Loader>(*s.data.train, train_plan(run_.config, s), s.image, run_.k,
                                           s.total_steps, s.device, s.data_threads, 4, s.data_cores);
}

// Steps that are queued on a device may still read the last batches.
void Batches::close() {
  if (!loader_) return;
  current_stream(run_.setup.device).sync();
  say_unreadable();
  count();
  loader_.reset();
}

void Batches::take_stock() {
  OddFiles& odd = *run_.setup.odd_files;
  odd.add(OddFiles::unpack(record_.odd_files));
  count();
  odd.unite(run_.comm());
  record_.odd_files = odd.pack();
}

// What the current loader has found since the last time.
void Batches::count() {
  if (!loader_) return;
  run_.setup.odd_files->train.add(loader_->odd());
  DataRecord now{.unreadable = loader_->unreadable(), .loading = loader_->seconds()};
  record_.unreadable += now.unreadable - counted_.unreadable;
  for (size_t i = 0; i < now.stages().size(); ++i)
    *record_.stages()[i].second += *now.stages()[i].second - *counted_.stages()[i].second;
  counted_ = now;
}

int64_t Batches::unreadable() {
  return record_.unreadable + (loader_ ? loader_->unreadable() - counted_.unreadable : 0);
}

void Batches::say_unreadable() {
  for (const auto& [name, why] : loader_->newly_unreadable())
    run_.progress.say(text("skipped, cannot be read: ", printable_name(name), ": ", why));
}

const DataIndex& Batches::index() {
  if (!index_) index_ = index_of(run_.setup.data);
  return *index_;
}

void Batches::describe(DataFigures& d) {
  const OddFiles& odd = *run_.setup.odd_files;
  d.odd_files = odd.to_json();
  d.unreadable = odd.left_out();
  d.unreadable_names = odd.names_left_out(run_.setup.data, 100);
  for (const auto& [name, seconds] : record_.stages()) d.seconds_by_stage.emplace_back(name, *seconds);
}

}  // namespace skein::apps
