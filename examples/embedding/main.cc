// Four workers, threads of this process, train an MLP by stochastic gradient push on their own batches.
#include <skein/skein.h>

#include <cstdio>

using namespace skein;

int main() {
  run_workers(4, [](comm::Communicator& peers) {
    Learner learner(nn::make_model("mlp", {.height = 4, .width = 4, .channels = 1, .classes = 2}), peers,
                    {.algorithm = "sgp", .lr = 0.05f});
    float loss[2];  // of the first and of the last step
    for (uint64_t k = 0; k < 200; ++k) {
      const Tensor images({32, 4, 4, 1}), labels({32}, kI32);
      fill_normal(images, {1, Purpose::kSynthetic, k, uint32_t(peers.rank())}, 0, 1);
      for (int i = 0; i < 32; ++i)  // is the upper left brighter than the lower right?
        labels.data<int32_t>()[i] = images.data<float>()[16 * i] > images.data<float>()[16 * i + 15];
      loss[k > 0] = learner.step(images, labels).item();
    }
    const double apart = learner.finish();
    std::printf("worker %d: loss %.3f -> %.3f, models were %.1e apart, now |x| = %.9g\n", peers.rank(),
                loss[0], loss[1], apart, norm(learner.parameters()));
  });
}
