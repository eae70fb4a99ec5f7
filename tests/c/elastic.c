// A worker of an elastic job: elastic PLACE [DIES_AT]. It kills itself in that step, and the others go on.
// POSIX, for nanosleep.
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "skein_c.h"

enum { kNumbers = 8, kSteps = 200 };

static void must(skein_status s) {
  if (s == SKEIN_OK) return;
  fprintf(stderr, "elastic: %s\n", skein_last_error());
  exit(1);
}

struct task {
  float w[kNumbers], g[kNumbers];
  skein_worker* worker;
  long dies_at;
};

static int gradient(void* context, float* loss) {
  struct task* t = context;
  const struct timespec moment = {.tv_nsec = 5000000};
  nanosleep(&moment, NULL);
  if (t->dies_at > 0 && skein_steps(t->worker) >= t->dies_at) raise(SIGKILL);
  for (int i = 0; i < kNumbers; ++i) t->g[i] = t->w[i] - (float)(i + 1), *loss += t->g[i] * t->g[i] / 2;
  return 0;
}

int main(int count, char** words) {
  if (count < 2) return 2;
  const skein_option elastic[] = {{"place", words[1]}, {"elastic", "on"}}, rate[] = {{"lr", "0.05"}};
  skein_job* job;
  must(skein_join(&job, elastic, 2));
  struct task t = {.dies_at = count > 2 ? atol(words[2]) : 0};
  const skein_vectors memory = {.parameters = t.w, .parameter_count = kNumbers, .gradient = t.g};
  must(skein_worker_new(&t.worker, job, "allreduce", &memory, rate, 1));
  const long first = (long)skein_steps(t.worker);
  double changes = 0;
  while (skein_steps(t.worker) < kSteps) must(skein_step(t.worker, gradient, &t, NULL));
  must(skein_finish(t.worker, NULL));
  must(skein_figure(t.worker, "changes", &changes));
  printf("from step %ld to %ld, %d workers, %.0f changes, w = %.4f .. %.4f\n", first,
         (long)skein_steps(t.worker), skein_world(job), changes, (double)t.w[0], (double)t.w[kNumbers - 1]);
  skein_worker_end(t.worker);
  must(skein_leave(job));
  return 0;
}
