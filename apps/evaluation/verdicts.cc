// Judges logits, and counts by class.
#include "apps/evaluation/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/base/printable.h"

namespace skein::apps {
namespace {

constexpr size_t kFewClasses = 50;  // with more, the matrix would be mostly zeros and too large to read

std::string shortened(const std::string& name, size_t most) {
  const std::string whole = printable_name(name);
  if (whole.size() <= most) return whole;
  size_t end = most - 3;
  while (end > 0 && (whole[end] & 0xC0) == 0x80) --end;  // in a character of UTF-8
  return whole.substr(0, end) + "...";
}

// Classes in the order of the table.
std::vector<size_t> lowest_first(const Tally& t, size_t most) {
  std::vector<size_t> order;
  for (size_t c = 0; c < t.images.size(); ++c) order.push_back(c);
  if (order.size() <= most) return order;
  const auto share = [&](size_t c) { return t.images[c] ? double(t.correct[c]) / double(t.images[c]) : 2; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return share(a) < share(b); });
  order.resize(most);
  return order;
}

}  // namespace

void judge(const Tensor& logits, const Tensor& labels, const std::vector<int64_t>& indices,
           std::vector<Verdict>& verdicts) {
  const int64_t classes = logits.dim(1);
  for (int64_t row = 0; row < logits.dim(0); ++row) {
    const int32_t truth = labels.data<int32_t>()[row];
    if (truth < 0) continue;
    const float* const all = logits.data<float>() + row * classes;
    const float* const largest = std::max_element(all, all + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(double(all[c]) - double(*largest));
    verdicts.push_back({indices[size_t(row)], truth, int32_t(largest - all), float(1 / sum)});
  }
}

std::vector<Verdict> gather_verdicts(comm::Communicator& comm, const std::vector<Verdict>& mine) {
  const Tensor bytes({int64_t(mine.size() * sizeof(Verdict))}, kU8);
  if (!mine.empty()) std::memcpy(bytes.raw(), mine.data(), mine.size() * sizeof(Verdict));
  std::vector<Verdict> all;
  for (const Tensor& t : comm.gather(bytes, 0)) {
    const size_t before = all.size(), more = size_t(t.size()) / sizeof(Verdict);
    all.resize(before + more);
    if (more > 0) std::memcpy(all.data() + before, t.raw(), more * sizeof(Verdict));
  }
  std::sort(all.begin(), all.end(), [](const Verdict& a, const Verdict& b) { return a.index < b.index; });
  return all;
}

Tally tally(const std::vector<Verdict>& verdicts, size_t classes) {
  Tally t{std::vector<int64_t>(classes), std::vector<int64_t>(classes), {}};
  std::map<std::pair<int32_t, int32_t>, int64_t> wrong;
  for (const Verdict& v : verdicts) {
    ++t.images.at(size_t(v.truth));
    if (v.guess == v.truth)
      ++t.correct[size_t(v.truth)];
    else
      ++wrong[{v.truth, v.guess}];
  }
  for (const auto& [pair, n] : wrong) t.confusions.push_back({pair.first, pair.second, n});
  std::stable_sort(t.confusions.begin(), t.confusions.end(),
                   [](const auto& a, const auto& b) { return a.images > b.images; });
  return t;
}

std::vector<Verdict> boldest_mistakes(const std::vector<Verdict>& verdicts, size_t most) {
  std::vector<Verdict> wrong;
  std::copy_if(verdicts.begin(), verdicts.end(), std::back_inserter(wrong),
               [](const Verdict& v) { return v.guess != v.truth; });
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const Verdict& a, const Verdict& b) { return a.probability > b.probability; });
  wrong.resize(std::min(wrong.size(), most));
  return wrong;
}

Json to_json(const Tally& t, const std::vector<std::string>& classes) {
  Json j = {{"classes", classes}, {"images_by_class", t.images}, {"correct_by_class", t.correct}};
  Json& confusions = j["confusions"] = Json::array();
  for (const Tally::Confusion& c : t.confusions) confusions.push_back({c.truth, c.guess, c.images});
  if (classes.size() > kFewClasses) return j;
  std::vector<std::vector<int64_t>> matrix(classes.size(), std::vector<int64_t>(classes.size()));
  for (size_t c = 0; c < classes.size(); ++c) matrix[c][c] = t.correct[c];
  for (const Tally::Confusion& c : t.confusions) matrix[size_t(c.truth)][size_t(c.guess)] = c.images;
  j["confusion"] = matrix;
  return j;
}

std::string class_table(const Tally& t, const std::vector<std::string>& classes, size_t most) {
  constexpr size_t kWidest = 32;
  const std::vector<size_t> order = lowest_first(t, most);
  size_t width = 5;
  for (const size_t c : order) width = std::max(width, shortened(classes[c], kWidest).size());
  std::string all = fmt::format("{:<{}}  images    top-1  most often taken for\n", "class", width);
  for (const size_t c : order) {
    const auto wrong = std::find_if(t.confusions.begin(), t.confusions.end(),
                                    [&](const Tally::Confusion& x) { return size_t(x.truth) == c; });
    const std::string share =
        t.images[c] ? fmt::format("{:.2f} %", 100 * double(t.correct[c]) / double(t.images[c])) : "-";
    std::string line =
        fmt::format("{:<{}}  {:>6} {:>8}", shortened(classes[c], kWidest), width, t.images[c], share);
    if (wrong != t.confusions.end())
      line += fmt::format("  {} ({})", shortened(classes[size_t(wrong->guess)], kWidest), wrong->images);
    all += line + '\n';
  }
  if (order.size() < classes.size())
    all += fmt::format("the {} classes with the lowest accuracy, of {}; all of them with --json\n",
                       order.size(), classes.size());
  return all;
}

}  // namespace skein::apps
