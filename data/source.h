// DataSource: index -> pixels and a label. Sources are read from many threads at once.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein::data {

struct ImageSize {
  int height = 0, width = 0, channels = 0;
  bool operator==(const ImageSize&) const = default;
};

// What augmentation decided for one sample: which region of the source image becomes the output, and whether
// it is mirrored. Regions are fractions of the source, so that they can be drawn before the image's size is
// known. A View is a pure function of (seed, epoch, index); see augment.h.
struct View {
  // kWhole: resize the whole image. kCenter: short side to `resize_to`, then the center. kRegion: area and
  // aspect of torchvision's RandomResizedCrop. kShift: the whole image at the output's size, padded by `pad`
  // zeros and cropped at an offset (CIFAR). Mirroring comes last.
  enum Kind : uint8_t { kWhole, kCenter, kRegion, kShift } kind = kWhole;
  bool mirror = false;
  int resize_to = 0;
  int pad = 0, shift_y = 0, shift_x = 0;  // 0 <= shift <= 2 pad
  // kRegion: ten candidate (area, log aspect) pairs, then the position; the first that fits is taken.
  std::array<float, 10> area{}, log_aspect{};
  float at_y = 0, at_x = 0;  // [0, 1)
  // Color changes that follow, in this order; a factor of 1 changes nothing.
  struct Color {
    enum What : uint8_t { kBrightness, kContrast, kSaturation } what = kBrightness;
    float factor = 1;
  };
  std::array<Color, 3> colors{};
  bool is_jittered() const { return colors[0].factor != 1 || colors[1].factor != 1 || colors[2].factor != 1; }
};

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t size() const = 0;
  // Names in label order; their number is the number of classes.
  virtual const std::vector<std::string>& classes() const = 0;
  // The size of every image; height and width are 0 if images differ.
  virtual ImageSize image() const = 0;
  virtual int32_t label(int64_t index) const = 0;
  // Writes out.height x out.width x out.channels bytes, HWC. Returns false if the image cannot be
  // read (damaged file). Sources of files tell reading() (reading.h) what is odd about a file, and
  // how long the stages took.
  [[nodiscard]] virtual bool read(int64_t index, const View&, const ImageSize& out,
                                  uint8_t* pixels) const = 0;
  // For messages: a path, or "item 17 of train-images-idx3-ubyte.gz".
  virtual std::string name(int64_t index) const = 0;
  // Identifies a sample wherever the data set is stored: its path below the root. Empty if
  // samples have no names.
  virtual std::string key(int64_t) const { return ""; }
  // Per channel, of pixels scaled to [0, 1]: what normalize_image subtracts and divides by.
  virtual std::vector<float> mean() const = 0;
  virtual std::vector<float> std() const = 0;
};

struct Split {
  std::shared_ptr<DataSource> train, test;
  std::vector<std::string> notes = {};  // lines for the log: slow work of opening, and what was cached
  bool tenth = false;  // the test images are a tenth of each class, taken from the training images
};
struct SourceRow {
  const char* name;    // as on the command line: "fashion-mnist"
  const char* source;  // citation, format
  // `path` is what follows the colon, "" if nothing did. `seed` is for synthetic data.
  Split (*open)(const std::string& path, uint64_t seed);
};
const std::vector<SourceRow>& sources();

// "KIND:PATH" for a directory given without its kind: webdataset if it holds .tar files, else imagefolder.
// Returns anything else unchanged.
std::string with_kind(const std::string& spec);

// Opens "KIND" or "KIND:PATH". Throws BadOption (unknown kind, with the nearest name) or BadFile (missing,
// empty, truncated, wrong magic, label out of range, no images, one class), each saying what and where.
Split open_data(const std::string& spec, uint64_t seed);

}  // namespace skein::data
