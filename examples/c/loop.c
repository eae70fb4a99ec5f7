// A training loop in C: each worker fits a line to points of its own, and all end with the same line.
//
//   cc -std=c11 loop.c -o loop -I$PREFIX/include/skein -L$PREFIX/lib -lskein_c -Wl,-rpath,$PREFIX/lib
//   RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 ./loop & RANK=1 ... ./loop; or by torchrun, srun, mpirun
#include <stdio.h>
#include <stdlib.h>

#include "skein_c.h"

enum { kNumbers = 8, kPoints = 32 };

static void must(skein_status s) {
  if (s == SKEIN_OK) return;
  fprintf(stderr, "loop: %s\n", skein_last_error());
  exit(1);
}

struct task {
  float w[kNumbers], g[kNumbers];
  uint32_t state;  // of the points that are drawn
};

static float draw(struct task* t) {
  t->state = t->state * 1664525u + 1013904223u;
  return (float)(t->state >> 8) / (float)(1 << 23) - 1;
}

// The mean of (w p - true p)^2 / 2 over fresh points p, where true = 1, 2, 3, ...
static int gradient(void* context, float* loss) {
  struct task* t = context;
  for (int i = 0; i < kNumbers; ++i) t->g[i] = 0;
  for (int n = 0; n < kPoints; ++n) {
    float p[kNumbers], off = 0;
    for (int i = 0; i < kNumbers; ++i) p[i] = draw(t), off += (t->w[i] - (float)(i + 1)) * p[i];
    for (int i = 0; i < kNumbers; ++i) t->g[i] += off * p[i] / kPoints;
    *loss += off * off / 2 / kPoints;
  }
  return 0;
}

int main(void) {
  skein_job* job;
  must(skein_join(&job, NULL, 0));
  const int rank = skein_rank(job);
  struct task t = {.state = 17u + (uint32_t)rank};
  const skein_vectors memory = {
      .parameters = t.w, .parameter_count = kNumbers, .gradient = t.g};
  const skein_option options[] = {{"optimizer", "adamw"}, {"lr", "0.1"}, {"weight-decay", "0"}, {"tau", "4"}};
  skein_worker* worker;
  must(skein_worker_new(&worker, job, "local-sgd", &memory, options, sizeof options / sizeof *options));
  float first = 0, last = 0;
  double apart = 0, bytes = 0;
  for (int k = 0; k < 400; ++k) must(skein_step(worker, gradient, &t, k == 0 ? &first : &last));
  must(skein_finish(worker, &apart));
  must(skein_figure(worker, "bytes", &bytes));
  printf("worker %d of %d: loss %.3f -> %.6f, %.0f bytes sent, w = %.6f .. %.6f\n", rank, skein_world(job),
         (double)first, (double)last, bytes, (double)t.w[0], (double)t.w[kNumbers - 1]);
  skein_worker_end(worker);
  must(skein_leave(job));
  return 0;
}
