// The ring: workers take runs of rows of the oldest open batch; the one that finishes a batch uploads it.
#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "data/cores.h"
#include "data/pictures/jitter.h"
#include "engine/device/memory.h"

namespace skein::data {
namespace {

using Unread = std::pair<int64_t, const char*>;  // index, and why

// A slot of the ring. Without the lock, only workers that have taken rows of it, open it or upload
// it may use it.
struct Slot {
  int64_t step = -1, rows = 0;
  int64_t taken = 0, done = 0;                      // rows given to workers, rows finished
  bool ready = false;                               // complete, uploaded, or failed
  Tensor host_images, host_labels, images, labels;  // sized for the largest batch so far
  Event uploaded, released;
  std::vector<Unread> unreadable;
  Census odd;
  std::exception_ptr error;
};

// What a worker found while it read a few rows.
struct Found {
  std::vector<Unread> unreadable;
  Census odd;
  StageSeconds seconds;
};

// The caller may hold two batches.
constexpr int kHandedOut = 2;

}  // namespace

// Large class: half of it is constant; the rest is what one mutex guards.
struct Loader::State {
  const DataSource& source;
  const Plan plan;
  const ImageSize out;
  const int64_t first, last;
  const Device device;
  const int depth;
  const int64_t run;  // rows a worker takes at a time: about 64 KiB

  std::mutex mutex;
  std::condition_variable work, ready;
  bool stopping = false, opening = false;
  std::vector<Slot> slots;
  int64_t opened, handed;  // steps: the next to open, the next to hand out
  StageSeconds seconds;
  int64_t unreadable = 0;
  Census odd;
  std::unordered_set<int64_t> named;
  std::vector<Unreadable> fresh;
  std::vector<std::thread> threads;

  State(const DataSource& source, Plan plan, ImageSize out, int64_t first, int64_t last, Device device,
        int depth)
      : source(source),
        plan(std::move(plan)),
        out(out),
        first(first),
        last(last),
        device(device),
        depth(depth),
        run(std::clamp<int64_t>((1 << 16) / row_bytes(), 1, 64)),
        slots(size_t(depth + kHandedOut)),
        opened(first),
        handed(first) {}

  int64_t row_bytes() const { return int64_t(out.height) * out.width * out.channels; }
  Slot& slot_of(int64_t step) { return slots[size_t((step - first) % int64_t(slots.size()))]; }

  // The caller keeps the last kHandedOut - 1 batches while it waits for the next.
  bool can_open() const { return !opening && opened < std::min(last, handed + depth); }
  Slot* with_rows() {
    for (int64_t step = handed; step < opened; ++step)
      if (Slot& s = slot_of(step); s.taken < s.rows && !s.error) return &s;
    return nullptr;
  }

  void run_worker();
  void open(std::unique_lock<std::mutex>&);
  void prepare(Slot&, int64_t step);
  void read_rows(std::unique_lock<std::mutex>&, Slot&);
  void read_row(Slot&, int64_t row, int64_t index, Found&);
  void finish(std::unique_lock<std::mutex>&, Slot&);
  void upload(Slot&);
  void stop();
};

void Loader::State::run_worker() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (can_open())
      open(lock);
    else if (Slot* s = with_rows())
      read_rows(lock, *s);
    else
      work.wait(lock);
  }
}

// Makes the next step's slot ready to be filled. Only one thread does this at a time, so steps open in order.
void Loader::State::open(std::unique_lock<std::mutex>& lock) {
  opening = true;
  const int64_t step = opened;
  Slot& s = slot_of(step);
  lock.unlock();
  s.error = nullptr, s.ready = false;
  try {
    prepare(s, step);
  } catch (...) {
    s.error = std::current_exception();
    s.rows = 0;
  }
  lock.lock();
  opening = false;
  ++opened;
  work.notify_all();
  if (s.rows == 0) finish(lock, s);
}

void Loader::State::prepare(Slot& s, int64_t step) {
  s.uploaded.sync();  // the GPU may still be reading the pinned rows
  s.step = step, s.taken = s.done = 0;
  s.unreadable.clear(), s.odd = {};
  s.rows = plan.count(step);
  CHECK(s.rows >= 0, step, s.rows);
  const int64_t n = std::max<int64_t>(s.rows, 1);
  if (s.host_images && s.host_images.dim(0) >= n) return;
  s.released.sync();  // a freed block may be reused at once
  Allocator& from = device.is_cuda() ? pinned_allocator() : allocator(kCpu);
  const MemoryFor what("batches of images");
  const Shape shape{n, out.height, out.width, out.channels};
  s.host_images = Tensor(shape, kU8, from);
  s.host_labels = Tensor({n}, kI32, from);
  s.images = device.is_cuda() ? Tensor(shape, kU8, device) : s.host_images;
  s.labels = device.is_cuda() ? Tensor({n}, kI32, device) : s.host_labels;
}

void Loader::State::read_rows(std::unique_lock<std::mutex>& lock, Slot& s) {
  const int64_t begin = s.taken, end = std::min(s.rows, begin + run), step = s.step;
  s.taken = end;
  lock.unlock();
  Found found;
  std::exception_ptr error;
  try {
    for (int64_t row = begin; row < end; ++row) read_row(s, row, plan.index(step, row), found);
  } catch (...) { error = std::current_exception(); }
  lock.lock();
  s.unreadable.insert(s.unreadable.end(), found.unreadable.begin(), found.unreadable.end());
  s.odd.add(found.odd);
  seconds += found.seconds;
  if (error && !s.error) s.error = error;
  s.done += end - begin;
  if (s.done == (s.error ? s.taken : s.rows)) finish(lock, s);
}

void Loader::State::read_row(Slot& s, int64_t row, int64_t index, Found& found) {
  CHECK(index >= 0 && index < source.size(), "the plan asks for a sample that does not exist:", index,
        source.size());
  uint8_t* pixels = s.host_images.data<uint8_t>() + row * row_bytes();
  const View view = plan.view(s.step, row, index);
  Reading& r = reading();
  r = {};
  const bool good = source.read(index, view, out, pixels);
  s.host_labels.data<int32_t>()[row] = good ? source.label(index) : -1;
  if (good && view.is_jittered()) {
    const Stage coloring(r.seconds.jitter);
    jitter_colors(view, out, pixels);
  }
  if (!good) {
    std::memset(pixels, 0, size_t(row_bytes()));
    if (!left_out(r.odd)) r.odd |= kUndecodable;
    found.unreadable.emplace_back(index, r.why ? r.why : why_left_out(r.odd));
  }
  found.odd.add(index, r.odd);
  found.seconds += r.seconds;
}

void Loader::State::finish(std::unique_lock<std::mutex>& lock, Slot& s) {
  if (device.is_cuda() && !s.error && s.rows > 0) {
    lock.unlock();
    std::exception_ptr error;
    double spent = 0;
    try {
      const Stage uploading(spent);
      upload(s);
    } catch (...) { error = std::current_exception(); }
    lock.lock();
    seconds.upload += spent;
    if (error) s.error = error;
  }
  s.ready = true;
  ready.notify_all();
}

// Uploads on this worker's own stream, after the work on the slot's previous batch.
void Loader::State::upload(Slot& s) {
  Stream& stream = current_stream(device);
  stream.wait(s.released);
  const Shape shape{s.rows, out.height, out.width, out.channels};
  copy_bytes(s.images.view(shape), s.host_images.view(shape));
  copy_bytes(s.labels.view({s.rows}), s.host_labels.view({s.rows}));
  s.uploaded = stream.record();
}

void Loader::State::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  work.notify_all();
  for (std::thread& t : threads) t.join();
  // The blocks are freed now, so no copy may still write them and no work of this thread may read them.
  for (Slot& s : slots) s.uploaded.sync();
  current_stream(device).sync();
}

Loader::Loader(const DataSource& source, Plan plan, ImageSize out, int64_t first, int64_t last, Device device,
               int threads, int depth, std::vector<int> cores) {
  CHECK(out.height > 0 && out.width > 0 && out.channels == source.image().channels, out.height, out.width,
        out.channels);
  CHECK(first <= last && threads > 0 && depth > 0, first, last, threads, depth);
  state_ = std::make_unique<State>(source, std::move(plan), out, first, last, device, depth);
  try {
    for (int i = 0; i < threads; ++i)
      state_->threads.emplace_back([s = state_.get(), cores] {
        run_on(cores);
        s->run_worker();
      });
  } catch (...) {
    state_->stop();
    throw;
  }
}

Loader::~Loader() {
  try {
    state_->stop();
  } catch (const Error&) {  // the device is lost; its next use reports it
  }
}

Batch Loader::next() {
  State& st = *state_;
  std::unique_lock lock(st.mutex);
  CHECK(st.handed < st.last, "no step is left after", st.last - 1);
  Slot& s = st.slot_of(st.handed);
  const auto is_ready = [&] { return st.opened > st.handed && s.ready; };
  if (!is_ready()) {
    const Stage waiting(st.seconds.wait);
    st.ready.wait(lock, is_ready);
  }
  if (s.error) std::rethrow_exception(s.error);
  // Work queued so far may read the batch before the last, so its slot is refilled only after that work.
  if (st.handed - kHandedOut >= st.first)
    st.slot_of(st.handed - kHandedOut).released = current_stream(st.device).record();
  current_stream(st.device).wait(s.uploaded);
  ++st.handed;
  st.work.notify_all();
  st.unreadable += int64_t(s.unreadable.size());
  st.odd.add(s.odd);
  std::sort(s.unreadable.begin(), s.unreadable.end(),
            [](const Unread& a, const Unread& b) { return a.first < b.first; });
  for (const auto& [index, why] : s.unreadable)
    if (st.named.insert(index).second) st.fresh.push_back({st.source.name(index), why});
  return {s.images.view({s.rows, st.out.height, st.out.width, st.out.channels}), s.labels.view({s.rows}),
          s.step, int64_t(s.unreadable.size())};
}

StageSeconds Loader::seconds() const {
  const std::lock_guard lock(state_->mutex);
  return state_->seconds;
}
Census Loader::odd() const {
  const std::lock_guard lock(state_->mutex);
  return state_->odd;
}
int64_t Loader::unreadable() const {
  const std::lock_guard lock(state_->mutex);
  return state_->unreadable;
}
std::vector<Unreadable> Loader::newly_unreadable() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->fresh, {});
}

}  // namespace skein::data
