// Evaluation: batches of the test split in order, weighted by the images that could be read.
#include "apps/evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator/words.h"

namespace skein::apps {
namespace {

void judge_batch(const Tensor& logits, const data::Batch& b, const data::Plan& plan, int64_t step,
                 std::vector<Verdict>& verdicts) {
  const Tensor on_host = cast(logits, kF32).to(kCpu), labels = b.labels.to(kCpu);
  current_stream(logits.device()).sync();
  std::vector<int64_t> indices;
  for (int64_t row = 0; row < b.size(); ++row) indices.push_back(plan.index(step, row));
  judge(on_host, labels, indices, verdicts);
}

}  // namespace

std::string describe(const Score& s) {
  return fmt::format("top-1 {:.2f} %, {}loss {:.4f} on {} test images", s.top1,
                     s.top5 ? fmt::format("top-5 {:.2f} %, ", *s.top5) : "", s.loss, s.images);
}

std::optional<Score> evaluate(const Setup& s, comm::Communicator& comm, nn::Module& model, int64_t batch_size,
                              const std::function<bool()>& stop, std::vector<Verdict>* verdicts) {
  const data::DataSource& test = *s.data.test;
  const int64_t batch = std::min(batch_size, test.size()), all_steps = (test.size() + batch - 1) / batch;
  // Worker i mod world, among the workers that are left, scores batch i.
  const int64_t rank = comm.rank(), world = comm.size();
  const int64_t steps = all_steps / world + (rank < all_steps % world);
  data::Plan plan;
  plan.count = [=, size = test.size()](int64_t step) {
    return std::min(batch, size - (step * world + rank) * batch);
  };
  plan.index = [=](int64_t step, int64_t row) { return (step * world + rank) * batch + row; };
  plan.view = [&](int64_t, int64_t, int64_t) { return data::eval_view(test.image(), s.image); };
  data::Loader loader(test, plan, s.image, 0, steps, s.device, s.data_threads, 4, s.data_cores);

  struct Training {
    nn::Module& m;
    explicit Training(nn::Module& m) : m(m) { m.set_training(false); }
    ~Training() { m.set_training(true); }
  } const evaluating(model);
  const NoTape off;
  if (verdicts) verdicts->clear();
  const size_t classes = test.classes().size();
  const int k = int(std::min<size_t>(5, classes));
  double loss = 0, top1 = 0, top5 = 0, images = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (world == 1 && stop && stop()) return {};
    const data::Batch b = loader.next();
    const Tensor logits = model.forward(normalize_image(b.images, s.mean, s.deviation, s.activations));
    const Tensor one = top_k_hits(logits, b.labels, 1).to(kCpu),
                 five = top_k_hits(logits, b.labels, k).to(kCpu);
    current_stream(s.device).sync();
    const double valid = one.data<float>()[1];
    loss += valid * cross_entropy(logits, b.labels).item();
    top1 += one.data<float>()[0];
    top5 += five.data<float>()[0];
    images += valid;
    if (verdicts) judge_batch(logits, b, plan, step, *verdicts);
  }
  s.odd_files->test.add(loader.odd());
  const auto parts = comm::gather_numbers(comm, {loss, top1, top5, images});
  loss = top1 = top5 = images = 0;
  for (const auto& p : parts) loss += p[0], top1 += p[1], top5 += p[2], images += p[3];
  if (images == 0) throw BadFile("none of the test images could be read");
  return Score{100 * top1 / images, classes > 5 ? std::optional(100 * top5 / images) : std::nullopt,
               loss / images, int64_t(images)};
}

}  // namespace skein::apps
