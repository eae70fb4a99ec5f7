// Opens data, model and device of a run, with every check that needs no training.
#include "apps/setup/setup.h"

#include "apps/base/printable.h"
#include "apps/setup/shared_data.h"
#include "engine/words/find_row.h"
#include "optim/strategy.h"

namespace skein::apps {
namespace {

data::ImageSize choose_image(const Config& c, const data::DataSource& source) {
  const data::ImageSize own = source.image();
  if (c.image_size > 0) return {int(c.image_size), int(c.image_size), own.channels};
  const nn::ModelRow& row = nn::model_row(c.model);
  if (own.height > 0 && std::min(own.height, own.width) >= row.smallest_size) return own;
  const int side = row.default_size > 0 ? int(row.default_size) : 224;
  return {side, side, own.channels};
}

std::shared_ptr<data::Portions> of_common_order(const Config& c, int64_t images, int world,
                                                int64_t global_batch) {
  auto p = std::make_shared<data::Portions>(images, global_batch, world, uint64_t(c.seed));
  if (!c.batch_size.shares.empty()) p->share_out(c.batch_size.shares);
  return p;
}

std::shared_ptr<data::Portions> deal(const Config& c, const data::DataSource& train, int world,
                                     int64_t global_batch) {
  const data::SplitRule rule = data::parse_split(c.split);
  if (rule.kind == data::SplitRule::kIid) return of_common_order(c, train.size(), world, global_batch);
  return std::make_shared<data::Portions>(
      data::make_shards(data::labels_of(train), int(train.classes().size()), rule, world, uint64_t(c.seed)),
      c.batch_size.most, uint64_t(c.seed));
}

}  // namespace

data::Split open_images(const Config& c) {
  if (c.data.empty())
    throw BadOption("--data is needed: KIND or KIND:PATH, with one of the kinds " +
                    joined(names_of(data::sources())));
  data::Split s;
  try {
    s = open_shared(c.data, uint64_t(c.seed));
  } catch (const BadFile& e) {
    if (c.origin("data").source != Source::kResumed) throw;
    throw BadFile(text(e.what(), "; if the data has moved, add --data ", c.data.substr(0, c.data.find(':')),
                       ":NEW_PATH to --resume"));
  }
  if (s.train->size() == 0 || s.test->size() == 0)
    throw BadFile(text(c.data, ": of its ", s.train->size() + s.test->size(), " images none is left for ",
                       s.test->size() == 0 ? "testing" : "training",
                       "; each class needs at least two, or provide separate test images (docs/data.md)"));
  return s;
}

Setup open_setup(const Config& c, const Place& place, const data::Split& opened) {
  Setup s;
  s.place = place;
  s.alone = place.world == 1 && !place.has_server && !optim::strategy_row(c.algorithm).center();
  static_cast<Share&>(s) = take_share(c, place);
  s.activations = activations_of(c);
  s.data = opened.train ? opened : open_images(c);
  s.odd_files = std::make_shared<OddFiles>();
  const data::DataSource& train = *s.data.train;
  s.image = choose_image(c, train);
  s.mean = train.mean(), s.deviation = train.std();
  s.augment = c.augment == "auto" ? data::default_augment(c.data.substr(0, c.data.find(':')), train.image())
                                  : data::parse_augment(c.augment);
  s.global_batch = c.eval_only ? c.batch_size.most : global_batch_of(c, s.place.world);
  if (!c.eval_only && s.global_batch > train.size()) {
    const int64_t most = train.size() / s.place.world;
    throw BadOption(text(c.origin("batch-size").place, ": ", s.global_batch, " images a step over ",
                         counted(s.place.world, "worker"), " are more than the ", train.size(),
                         " training images of ", c.data,
                         most > 0 ? text("; give ", most, " or less for each")
                                  : text("; give --workers ", train.size(), " or less")));
  }
  if (!c.eval_only) s.portions = deal(c, train, s.place.world, s.global_batch);
  s.steps_per_epoch = s.portions ? s.portions->steps_per_epoch() : 1;
  s.total_steps = c.steps > 0 ? c.steps : c.epochs * s.steps_per_epoch;
  s.model = nn::make_model(
      c.model, {s.image.height, s.image.width, s.image.channels, int64_t(train.classes().size())});
  nn::initialize(*s.model, uint64_t(c.seed));
  return s;
}

Preparation preparation_of(const Setup& s) {
  return {
      .image = s.image, .center = s.data.test->image().height == 0, .mean = s.mean, .deviation = s.deviation};
}

ModelInfo model_info(const Config& c, const Setup& s, int64_t steps) {
  return {.model = c.model,
          .classes = s.data.train->classes(),
          .steps = steps,
          .more = to_metadata(preparation_of(s))};
}

data::Plan train_plan(const Config& c, const Setup& s) {
  const int64_t per_epoch = s.steps_per_epoch;
  const uint64_t seed = uint64_t(c.seed);
  data::Plan plan;
  plan.count = [portions = s.portions, rank = s.place.rank](int64_t step) {
    return portions->samples(step, rank);
  };
  plan.index = [portions = s.portions, rank = s.place.rank](int64_t step, int64_t row) {
    return portions->index(step, rank, row);
  };
  plan.view = [=, augment = s.augment, image = s.image, jitter = c.color_jitter](int64_t step, int64_t,
                                                                                 int64_t index) {
    data::View v = data::train_view(augment, seed, step / per_epoch, index, image);
    data::draw_colors(v, jitter, seed, step / per_epoch, index);
    return v;
  };
  return plan;
}

}  // namespace skein::apps
