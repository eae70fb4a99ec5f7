// Setup: the parts of a run, opened and checked before anything is written.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "apps/config/config.h"
#include "apps/launch/placement.h"
#include "apps/model/preparation.h"
#include "apps/model/weights.h"
#include "apps/setup/odd_files.h"
#include "data/loader.h"
#include "data/pictures/augment.h"
#include "data/source.h"
#include "data/sources/split.h"
#include "nn/models.h"

namespace skein::apps {

// What open_setup() opens: a record, which the parts of a training read and nothing changes.
struct Setup : Share {
  Place place;
  bool alone = true;     // one worker that sends no messages: there is no other worker, server or center
  std::string messages;  // how messages go between GPUs; empty if there are none
  DType activations = kF32;
  data::Split data;
  data::ImageSize image;               // image size of a training batch
  std::vector<float> mean, deviation;  // pixels are normalized by these, the training data's
  data::Augment augment = data::Augment::kNone;
  int64_t global_batch = 0, steps_per_epoch = 0, total_steps = 0;
  std::shared_ptr<data::Portions> portions;  // null if nothing is trained
  std::shared_ptr<OddFiles> odd_files;       // those found so far by readers of this setup
  std::unique_ptr<nn::Module> model;         // initialized from the seed
};

// The images that --data names. Throws BadOption or BadFile.
data::Split open_images(const Config&);

// Opens data and model, and gives the calling thread its team of compute threads. Throws BadOption
// or BadFile, saying what is wrong with which flag or file. `opened`: the data, if another setup
// has opened them.
Setup open_setup(const Config&, const Place& = {}, const data::Split& opened = {});

// The preparation that evaluate() applies to this setup's test images.
Preparation preparation_of(const Setup&);
// The description of a model of this run after so many steps.
ModelInfo model_info(const Config&, const Setup&, int64_t steps);

// Which samples this worker's steps hold: pure functions of seed, step, rank and world.
data::Plan train_plan(const Config&, const Setup&);

}  // namespace skein::apps
