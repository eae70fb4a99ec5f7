// Groups runs by their flags, and names groups by the flags that differ.
#include "apps/report/run_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/config/config.h"

namespace skein::apps {
namespace {

// The parts of the environment that speed or results may depend on.
constexpr const char* kOfTheEnvironment[] = {"skein", "processor", "device", "threads"};

bool says_what_was_trained(const std::string& flag) {
  const Flag* f = find_flag(flags(), flag);
  return flag != "seed" && !(f && f->group == "record");
}

// Every flag of any run in the order of the table; flags of older or newer versions come last.
std::vector<std::string> all_flags(const std::vector<Json>& configs) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const bool known =
        std::any_of(configs.begin(), configs.end(), [&](const Json& c) { return c.contains(name); });
    if (known && says_what_was_trained(name) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const char* first : {"algorithm", "model", "data", "workers"}) add(first);
  for (const Flag& f : flags())
    if (f.group != "machine") add(f.name);
  for (const Flag& f : flags()) add(f.name);
  for (const Json& c : configs)
    for (const auto& [name, value] : c.items()) add(name);
  return names;
}

std::string identity_of(const RunFiles& run) {
  const Json config = run.config();
  std::set<std::string> parts;
  for (const auto& [name, value] : config.items())
    if (says_what_was_trained(name) && !value.is_null()) parts.insert(name + '=' + value.dump() + '\n');
  std::string all;
  for (const std::string& p : parts) all += p;
  return all;
}

std::string piece_of_label(const std::string& flag, const Json& config) {
  const std::string value = word(config, flag);
  if (flag == "algorithm" || flag == "model" || flag == "data") return value;
  if (flag == "workers") return value + (value == "1" ? " worker" : " workers");
  if (value == "true") return flag;
  if (value == "false") return "no " + flag;
  return flag + ' ' + (value.empty() ? "default" : value);
}

std::string name_of_directory(const std::string& directory) {
  const auto path = std::filesystem::path(directory).lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

template <class F>
size_t distinct(size_t n, F&& name) {
  std::set<std::string> all;
  for (size_t i = 0; i < n; ++i) all.insert(name(i));
  return all.size();
}

std::vector<std::string> labels_of(const std::vector<RunGroup>& groups) {
  std::vector<Json> configs;
  for (const RunGroup& g : groups) configs.push_back(g.runs[0].config());
  const size_t n = groups.size();
  std::vector<std::string> labels(n);
  const auto join = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() ? a + b : a + ", " + b;
  };
  size_t told = std::min<size_t>(n, 1);
  for (const std::string& flag : all_flags(configs)) {
    const auto longer = [&](size_t i) { return join(labels[i], piece_of_label(flag, configs[i])); };
    const size_t more = distinct(n, longer);
    const bool always = flag == "algorithm" ||
                        (flag == "data" && distinct(n, [&](size_t i) { return word(configs[i], flag); }) > 1);
    if (more <= told && !always) continue;
    for (size_t i = 0; i < n; ++i) labels[i] = longer(i);
    told = std::max(more, told);
  }
  if (told < n)
    for (size_t i = 0; i < n; ++i)
      labels[i] = join(labels[i], name_of_directory(groups[i].runs[0].directory));
  if (distinct(n, [&](size_t i) { return labels[i]; }) < n)
    for (size_t i = 0; i < n; ++i) labels[i] = groups[i].runs[0].directory;
  return labels;
}

}  // namespace

Rows RunGroup::rows(const std::string& kind) const {
  const auto of = [&](const RunFiles& run) {
    const auto found = run.rows.find(kind);
    return found == run.rows.end() ? Rows{} : found->second;
  };
  Rows first = of(runs[0]), all;
  std::vector<Rows> others;
  for (size_t i = 1; i < runs.size(); ++i) others.push_back(of(runs[i]));
  for (const auto& [step, event] : first) {
    std::vector<const Json*> events = {&event};
    for (const Rows& o : others)
      if (const auto at = o.find(step); at != o.end()) events.push_back(&at->second);
    if (events.size() < runs.size()) continue;
    Json& mean = all[step] = Json::object();
    for (const auto& [key, value] : event.items()) {
      if (!value.is_number() || key.ends_with("_min") || key.ends_with("_max"))
        continue;  // spread of workers
      double sum = 0, low = value.get<double>(), high = low;
      size_t count = 0;
      for (const Json* e : events) {
        const auto at = e->find(key);
        if (at == e->end() || !at->is_number()) continue;
        const double v = at->get<double>();
        sum += v, low = std::min(low, v), high = std::max(high, v), ++count;
      }
      if (count < runs.size()) continue;
      mean[key] = key == "step" ? value : Json(sum / double(count));
      if (runs.size() > 1) mean[key + "_min"] = low, mean[key + "_max"] = high;
    }
  }
  return all;
}

std::vector<RunGroup> group_runs(std::vector<RunFiles> runs) {
  std::vector<RunGroup> groups;
  std::vector<std::string> identities;
  std::vector<std::set<std::string>> seeds;
  for (RunFiles& run : runs) {
    const std::string identity = identity_of(run), seed = word(run.config(), "seed");
    size_t g = 0;  // equal flags and equal seeds are not a repetition: what differs is then not in the flags
    while (g < groups.size() && (identities[g] != identity || seed.empty() || seeds[g].count(seed))) ++g;
    if (g == groups.size()) groups.emplace_back(), identities.push_back(identity), seeds.emplace_back();
    seeds[g].insert(seed);
    groups[g].runs.push_back(std::move(run));
  }
  const std::vector<std::string> labels = labels_of(groups);
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g].label = labels[g].empty() ? name_of_directory(groups[g].runs[0].directory) : labels[g];
    if (groups[g].runs.size() > 1) groups[g].label += fmt::format(" ({} seeds)", groups[g].runs.size());
  }
  return groups;
}

Differences differences(const std::vector<RunGroup>& groups) {
  std::vector<Json> configs;
  for (const RunGroup& g : groups) configs.push_back(g.runs[0].config());
  Differences found;
  const auto sort_in = [&](const std::string& name, const Values& values) {
    if (std::count(values.begin(), values.end(), values[0]) == int64_t(values.size()))
      found.same.emplace_back(name, values[0]);
    else
      found.differ.emplace_back(name, values);
  };
  for (const std::string& flag : all_flags(configs)) {
    Values values;
    for (const Json& c : configs) values.push_back(word(c, flag));
    sort_in(flag, values);
  }
  for (const char* part : kOfTheEnvironment) {
    Values values;
    for (const RunGroup& g : groups) values.push_back(word(g.runs[0].environment(), part));
    const bool flag_too =
        std::any_of(configs.begin(), configs.end(), [&](const Json& c) { return c.contains(part); });
    if (!flag_too || std::count(values.begin(), values.end(), values[0]) != int64_t(values.size()))
      sort_in(flag_too ? text(part, " used") : text(part), values);
  }
  return found;
}

}  // namespace skein::apps
