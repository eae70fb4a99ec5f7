// Skein for C: the workers of a job train numbers in the caller's memory. docs/embedding.md has a program.
//
// Every worker of a job is a process that makes the same calls in the same order. No exception leaves these
// functions: they return a status, and skein_last_error() says in words what it means. All functions of one
// job must be called from one thread.
#ifndef SKEIN_C_H
#define SKEIN_C_H

#include <stddef.h>
#include <stdint.h>

// Changes when a program that was compiled against an older header would not work any more.
#define SKEIN_C_VERSION 1

#define SKEIN_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skein_status {
  SKEIN_OK = 0,
  SKEIN_ERROR = 1,
  SKEIN_BAD_OPTION = 2,  // no such algorithm, optimizer, option or value, or the workers disagree
  SKEIN_BAD_FILE = 3,    // a checkpoint is damaged, missing, or cannot be written
  SKEIN_PEER_LOST = 4,   // another worker has died or left
  SKEIN_TIMEOUT = 5,     // a wait took longer than the deadline
  SKEIN_GRADIENT_FAILED =
      6,  // the gradient function said so; the others wait for this worker until it leaves
  SKEIN_WORKERS_CHANGED = 7,  // of averages and barriers in an elastic job: take a step first
} skein_status;

typedef struct skein_job skein_job;
typedef struct skein_worker skein_worker;

typedef struct skein_option {
  const char *name, *value;
} skein_option;

// A parameter in the vector. Each begins at the next multiple of 64 numbers; what lies between is 0.
typedef struct skein_part {
  int64_t rows, columns;
  int hidden;  // other than 0: a matrix that muon orthogonalizes
  int decays;  // other than 0: it takes weight decay
} skein_part;

// What a worker trains, in memory that must live until skein_worker_end().
typedef struct skein_vectors {
  float* parameters;
  int64_t parameter_count;
  float* gradient;  // as many; NULL: memory of the worker's own, which skein_gradient_of() returns
  float* buffers;   // numbers that are averaged and not trained, such as running statistics; NULL: none
  int64_t buffer_count;
  const skein_part* parts;  // NULL: a single part, with weight decay
  size_t part_count;
} skein_vectors;

SKEIN_C_API int skein_c_version(void);  // SKEIN_C_VERSION of the library
// The message of this thread's last call that did not return SKEIN_OK. Valid until the next such call.
SKEIN_C_API const char* skein_last_error(void);

// ---- jobs -------------------------------------------------------------------------------------------------

// Joins the job that the environment describes (docs/launch.md); without one, the process is a job of one
// worker. Options: place, deadline, transport, seal, and wire (fp32 or bf16), as docs/flags.md explains them;
// `place` is a directory that all workers share. With elastic on, workers may die, and others join while the
// job runs: `place` is then a directory of this job alone, and a process that finds the job running there
// joins it. Such a job has one worker in each process. Its calls go on among those that are left, for which
// they may call the last gradient function again, with its context: both must remain valid until the next
// step or the worker's end. Count by skein_steps(), which a newcomer begins where the others are.
SKEIN_C_API skein_status skein_join(skein_job** job, const skein_option* options, size_t option_count);
// Ends the job's workers and leaves the others; what they wait for from this worker fails at once. Unless it
// is called in a gradient function, which is refused, the job is gone.
SKEIN_C_API skein_status skein_leave(skein_job* job);
SKEIN_C_API int skein_rank(const skein_job* job);   // of an elastic job, at present
SKEIN_C_API int skein_world(const skein_job* job);  // the number of workers, alike
SKEIN_C_API skein_status skein_barrier(skein_job* job);
// x <- its mean over all workers, with the same bits on all of them. All must give the same
// number of elements.
SKEIN_C_API skein_status skein_average_floats(skein_job* job, float* x, int64_t count);
SKEIN_C_API skein_status skein_average_doubles(skein_job* job, double* x, int64_t count);

// ---- workers ----------------------------------------------------------------------------------------------

// All workers start with the parameters and buffers of worker 0. Options: optimizer, lr, weight-decay, seed,
// and the flags of the algorithm and the optimizer, as docs/flags.md names them, without dashes.
SKEIN_C_API skein_status skein_worker_new(skein_worker** worker, skein_job* job, const char* algorithm,
                                          const skein_vectors* vectors, const skein_option* options,
                                          size_t option_count);
SKEIN_C_API void skein_worker_end(skein_worker* worker);  // NULL is no worker; also after skein_leave()
SKEIN_C_API float* skein_gradient_of(skein_worker* worker);

// Writes the gradient at the current parameters, and the loss. Returns 0, or another number if it fails.
typedef int (*skein_gradient)(void* context, float* loss);
// One step of the algorithm. `loss` may be NULL. Under sam the function is called twice, and in some
// steps of palsgd not at all, whose loss is 0. After a failure the parameters are
// as before, unless the algorithm is asynchronous.
SKEIN_C_API skein_status skein_step(skein_worker* worker, skein_gradient function, void* context,
                                    float* loss);
SKEIN_C_API int64_t skein_steps(const skein_worker* worker);  // taken by the job
// Within the gradient function: the gradient of this part is final, so that its sum over the workers may
// be under way. Each call also moves on what travels meanwhile.
SKEIN_C_API skein_status skein_ready(skein_worker* worker, size_t part);
SKEIN_C_API skein_status skein_set_rate(skein_worker* worker, float lr);
// Between show and hide the parameters hold the algorithm's model, which is the same on all workers.
SKEIN_C_API skein_status skein_show_model(skein_worker* worker);
SKEIN_C_API skein_status skein_hide_model(skein_worker* worker);
// Call it once, after the last step: the parameters are that model from then on. `apart` (may be NULL)
// receives how far the workers were from it.
SKEIN_C_API skein_status skein_finish(skein_worker* worker, double* apart);
// Checkpoints as in docs/checkpoints.md. skein_save() writes DIRECTORY/checkpoints/step-NNNNNNNN and keeps
// the newest `keep`; skein_load() takes one of them, or a directory, whose newest it loads, also if another
// number of workers wrote it. In an elastic job it comes before the first step; a newcomer has the others'
// state, and it does nothing.
SKEIN_C_API skein_status skein_save(skein_worker* worker, const char* directory, int keep);
SKEIN_C_API skein_status skein_load(skein_worker* worker, const char* path);
// steps, changes (of an elastic job's workers), messages, bytes, waited_s, in_flight_s
SKEIN_C_API skein_status skein_figure(const skein_worker* worker, const char* name, double* value);

#ifdef __cplusplus
}
#endif

#endif
