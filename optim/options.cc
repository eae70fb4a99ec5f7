// Reading options, and telling which values are in force.
#include "optim/options.h"

#include "engine/words/find_row.h"
#include "engine/words/number.h"

namespace skein::optim {
namespace {

// The shortest text that reads back as the same number.
std::string shortest(double v) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, v).ptr};
}

[[noreturn]] void refuse(const std::string& key, const std::string& value, const char* wanted) {
  throw BadOption(text("--", key, " ", value, ": ", wanted, " is needed"));
}

template <class T>
T within(const std::string& key, T v, T low, T high) {
  if (v >= low && v <= high) return v;
  const bool limited = high < std::numeric_limits<T>::max();
  throw BadOption(text("--", key, " ", v, ": allowed is ",
                       limited ? text("from ", low, " to ", high) : text(low, " or more")));
}

}  // namespace

void Options::chosen(const std::string& key, const std::string& value) const {
  if (in_force_ && !value.empty()) (*in_force_)[key] = value;
}

// The value given, which is then the one in force; null: there is none.
const std::string* Options::find(const std::string& key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return nullptr;
  chosen(key, at->second);
  return &at->second;
}

double Options::number(const std::string& key, double otherwise, double low, double high) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, shortest(otherwise)), otherwise;
  if (const auto v = number_in<double>(*said)) return within(key, *v, low, high);
  refuse(key, *said, "a number");
}

int64_t Options::integer(const std::string& key, int64_t otherwise, int64_t low) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, std::to_string(otherwise)), otherwise;
  if (const auto v = number_in<int64_t>(*said)) return within(key, *v, low, INT64_MAX);
  refuse(key, *said, "a whole number");
}

bool Options::flag(const std::string& key, bool otherwise) const {
  const std::string* said = find(key);
  if (!said) return chosen(key, otherwise ? "true" : "false"), otherwise;
  const std::string& v = *said;
  if (v == "true" || v == "on" || v == "yes" || v == "1" || v.empty())
    return true;  // a bare flag has no value
  if (v == "false" || v == "off" || v == "no" || v == "0") return false;
  refuse(key, v, "on or off");
}

std::string Options::word(const std::string& key, std::string otherwise) const {
  const std::string* said = find(key);
  if (!said) chosen(key, otherwise);
  return said ? *said : otherwise;
}

bool has_dedicated_server(const Options& o) {
  return one_of<bool>("--servers", o.word("servers", "inline"), {{"inline", false}, {"dedicated", true}});
}

void needs_plain_sgd(const Options& o, const std::string& algorithm, const std::string& why) {
  if (const std::string other = o.word("optimizer", "sgd"); other != "sgd")
    throw BadOption(text("--optimizer ", other, ": --algorithm ", algorithm, " ", why,
                         "; take --optimizer sgd, or another algorithm"));
}

void needs_one_rate(const Options& o, const std::string& algorithm) {
  if (o.word("rates", "") == "differ")
    throw BadOption(text("--layer-decay, --head-rate, --norm-rate: --algorithm ", algorithm,
                         " moves all parameters at one rate; leave them out, or take another algorithm"));
}

Codec codec_of(const Options& o) {
  const std::string word = o.word("wire", "fp32");
  const Codec codec = parse_codec(word);
  if (codec || word == "fp32" || word == "bf16") return codec;
  throw BadOption("--wire " + word + ": allowed are fp32, bf16, int8, int4 and topk:P, as topk:0.01" +
                  did_you_mean(word, {"fp32", "bf16", "int8", "int4"}));
}

BufferPolicy buffer_policy(const Options& o) {
  return one_of<BufferPolicy>("--bn-policy", o.word("bn-policy", "recompute"),
                              {{"local", BufferPolicy::kLocal},
                               {"mix", BufferPolicy::kMix},
                               {"recompute", BufferPolicy::kRecompute}});
}

}  // namespace skein::optim
