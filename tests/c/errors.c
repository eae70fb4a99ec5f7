// What the C interface does with mistakes: a status and one sentence each, and the worker goes on.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skein_c.h"

static void expect(skein_status wanted, const char* words, skein_status got, int line) {
  if (got == wanted && (got == SKEIN_OK || strstr(skein_last_error(), words))) return;
  fprintf(stderr, "errors.c:%d: status %d '%s', not %d '...%s...'\n", line, got, skein_last_error(), wanted, words);
  exit(1);
}
#define EXPECT(wanted, words, call) expect(wanted, words, call, __LINE__)
#define OK(call) EXPECT(SKEIN_OK, "", call)
#define WRONG(words, call) EXPECT(SKEIN_BAD_OPTION, words, call)

struct scene {
  skein_job* job;
  skein_worker* worker;
  float* g;
  int calls, fails;
};

static int gradient(void* context, float* loss) {
  struct scene* s = context;
  ++s->calls;
  for (int i = 0; i < 3; ++i) s->g[i] = 1;
  *loss = 7;
  OK(skein_ready(s->worker, 0));
  EXPECT(SKEIN_ERROR, "in the middle of a step", skein_leave(s->job));
  return s->fails;
}

int main(void) {
  struct scene s = {0};
  const skein_option far[] = {{"deadlin", "3"}}, maybe[] = {{"elastic", "yes"}}, twice[] = {{"lr", "1"}, {"lr", "2"}}, odd[] = {{"lr", "fast"}},
                     unread[] = {{"taau", "3"}}, unnamed[] = {{NULL, "3"}},
                     sgd[] = {{"lr", "0.5"}, {"momentum", "0"}}, sam[] = {{"optimizer", "sam"}, {"lr", "0.5"}};
  if (skein_c_version() != SKEIN_C_VERSION) return 1;
  WRONG("did you mean deadline?", skein_join(&s.job, far, 1));
  WRONG("is NULL", skein_join(NULL, NULL, 0));
  WRONG("on or off", skein_join(&s.job, maybe, 1));
  OK(skein_join(&s.job, NULL, 0));
  if (skein_rank(s.job) != 0 || skein_world(s.job) != 1 || skein_world(NULL) != -1) return 1;
  OK(skein_barrier(s.job));

  float x[3] = {0}, many[80] = {0};
  double y[2] = {0.1, 1e300};
  OK(skein_average_floats(s.job, x, 3));
  OK(skein_average_doubles(s.job, y, 2));
  if (y[0] != 0.1 || y[1] != 1e300) return 1;
  WRONG("worker 0 gives no such array", skein_average_floats(s.job, NULL, 3));
  WRONG("worker 0 gives no such array", skein_average_doubles(s.job, y, -1));

  const skein_vectors v = {.parameters = x, .parameter_count = 3}, none = {.parameters = x},
                      nowhere = {.parameter_count = 3};
  const skein_part large[] = {{2, 2, 0, 1}}, small[] = {{1, 2, 0, 1}, {1, 3, 0, 0}};
  const skein_vectors beyond = {.parameters = x, .parameter_count = 3, .parts = large, .part_count = 1},
                      short_of = {.parameters = many, .parameter_count = 80, .parts = small, .part_count = 1},
                      two = {.parameters = many, .parameter_count = 67, .parts = small, .part_count = 2};
  WRONG("did you mean sgp?", skein_worker_new(&s.worker, s.job, "sgpp", &v, NULL, 0));
  WRONG("the algorithm is NULL", skein_worker_new(&s.worker, s.job, NULL, &v, NULL, 0));
  WRONG("lr: the option is given twice", skein_worker_new(&s.worker, s.job, "sgd", &v, twice, 2));
  WRONG("lr fast: a number is wanted", skein_worker_new(&s.worker, s.job, "sgd", &v, odd, 1));
  WRONG("sgd does not read taau", skein_worker_new(&s.worker, s.job, "sgd", &v, unread, 1));
  WRONG("the name of an option is NULL", skein_worker_new(&s.worker, s.job, "sgd", &v, unnamed, 1));
  WRONG("options is NULL", skein_worker_new(&s.worker, s.job, "sgd", &v, NULL, 1));
  WRONG("without parameters", skein_worker_new(&s.worker, s.job, "sgd", &none, NULL, 0));
  WRONG("parameters: 3 numbers at", skein_worker_new(&s.worker, s.job, "sgd", &nowhere, NULL, 0));
  WRONG("part 0 of 2 x 2 numbers", skein_worker_new(&s.worker, s.job, "sgd", &beyond, NULL, 0));
  WRONG("these parts take 64 numbers, and there are 80", skein_worker_new(&s.worker, s.job, "sgd", &short_of, NULL, 0));
  OK(skein_worker_new(&s.worker, s.job, "sgd", &two, NULL, 0));
  skein_worker_end(s.worker);

  OK(skein_worker_new(&s.worker, s.job, "sgd", &v, sgd, 2));
  s.g = skein_gradient_of(s.worker);
  float loss = 0;
  OK(skein_step(s.worker, gradient, &s, &loss));
  if (loss != 7 || x[0] != -0.5f || x[2] != -0.5f) return 1;
  WRONG("the gradient function is NULL", skein_step(s.worker, NULL, &s, &loss));
  s.fails = 5;
  EXPECT(SKEIN_GRADIENT_FAILED, "has failed", skein_step(s.worker, gradient, &s, &loss));
  if (x[0] != -0.5f) return 1;
  s.fails = 0;
  OK(skein_step(s.worker, gradient, &s, NULL));
  EXPECT(SKEIN_ERROR, "ready() belongs into the gradient function", skein_ready(s.worker, 0));
  EXPECT(SKEIN_BAD_FILE, "nowhere", skein_load(s.worker, "nowhere"));
  double steps = 0;
  OK(skein_figure(s.worker, "steps", &steps));
  WRONG("there is no figure stepps", skein_figure(s.worker, "stepps", &steps));
  if (steps != 2) return 1;
  skein_worker_end(s.worker);

  OK(skein_worker_new(&s.worker, s.job, "sgd", &v, sam, 2));
  s.g = skein_gradient_of(s.worker), s.calls = 0;
  OK(skein_step(s.worker, gradient, &s, &loss));
  if (s.calls != 2) return 1;
  OK(skein_leave(s.job));
  EXPECT(SKEIN_ERROR, "has been left", skein_step(s.worker, gradient, &s, &loss));
  skein_worker_end(s.worker);
  skein_worker_end(NULL);
  puts("mistakes are told");
  return 0;
}
