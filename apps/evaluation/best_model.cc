// The file of the best model and its metadata.
#include "apps/evaluation/best_model.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/words/file.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;

// The metadata of a file that BestModel has written; nothing for any other file.
std::optional<Best> read_best(const std::string& path) {
  const ModelInfo info = info_of(path, read_safetensors(path));
  const auto number = [&](const char* key, double& v) {
    const auto at = info.more.find(key);
    if (at == info.more.end()) return false;
    const std::string& s = at->second;
    return std::from_chars(s.data(), s.data() + s.size(), v).ec == std::errc();
  };
  Best b;
  b.step = info.steps;
  if (!number("best_top1", b.top1) || !number("best_loss", b.loss) || !number("best_epoch", b.epoch))
    return {};
  b.ema = info.more.count("best_of") && info.more.at("best_of") == "ema";
  return b;
}

}  // namespace

void BestModel::begin(const std::string& directory) {
  path_ = (fs::path(directory) / kFile).string();
  best_.reset();
  std::error_code none;
  fs::remove(path_, none);
}

void BestModel::resume(const std::string& directory, const std::string& from, int64_t step) {
  path_ = (fs::path(directory) / kFile).string();
  best_.reset();
  const std::string source = (fs::path(from) / kFile).string();
  std::error_code none;
  if (!fs::exists(source, none)) return;
  try {
    const std::optional<Best> before = read_best(source);
    if (before && before->step <= step) best_ = before;
  } catch (const BadFile&) {  // the next evaluation replaces it
  }
  if (best_ && !fs::equivalent(source, path_, none)) write_file(path_, read_file(source));
}

bool BestModel::is_better(const Score& s) const {
  return !best_ || s.top1 > best_->top1 || (s.top1 == best_->top1 && s.loss < best_->loss);
}

void BestModel::keep(const Score& s, double epoch, bool ema, nn::Module& model, ModelInfo info) {
  const Best now{.top1 = s.top1, .loss = s.loss, .epoch = epoch, .step = info.steps, .ema = ema};
  info.more["best_top1"] = fmt::format("{}", now.top1), info.more["best_loss"] = fmt::format("{}", now.loss);
  info.more["best_epoch"] = fmt::format("{}", now.epoch), info.more["best_of"] = ema ? "ema" : "model";
  export_model(path_, model, info);
  best_ = now;
}

Json to_json(const Best& b) {
  return {{"top1", b.top1},
          {"loss", b.loss},
          {"step", b.step},
          {"epoch", b.epoch},
          {"of", b.ema ? "ema" : "model"},
          {"file", BestModel::kFile}};
}

}  // namespace skein::apps
