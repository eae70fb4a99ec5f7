// Shards, and the caches that keep what is known of data sets between runs.
#include "data/sources/shards.h"

#include "data/sources/folder_index.h"
#include "data/sources/tar.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

constexpr size_t kBlock = 512, kSum = 148, kSumEnd = 156, kMagic = 257;

// Corrects the checksum of each header, so that the other fields are looked at.
std::string with_sums(std::string s) {
  for (size_t at = 0; at + kBlock <= s.size(); at += kBlock) {
    if (s.compare(at + kMagic, 5, "ustar") != 0) continue;
    unsigned sum = 0;
    for (size_t i = 0; i < kBlock; ++i) sum += i >= kSum && i < kSumEnd ? ' ' : uint8_t(s[at + i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    s.replace(at + kSum, sizeof digits, digits, sizeof digits);
  }
  return s;
}

void within(const data::Shard& shard, int64_t bytes) {
  for (const data::ShardSample& s : shard.samples)
    require(s.offset >= 0 && s.size >= 0 && s.size <= bytes && s.offset <= bytes - s.size && s.label >= 0,
            "a sample lies outside its shard");
}

// Between the fields of a cache are zeros; the corpus has newlines, to be readable.
std::string fields_of(Input& in) {
  std::string s = in.rest();
  for (char& c : s)
    if (c == '\n') c = '\0';
  return s;
}

}  // namespace

void tar(Input in) {
  const std::string bytes = with_sums(in.rest()), path = put("a.tar", bytes);
  may_refuse([&] {
    const auto shards = data::index_shards(path, {path}, nullptr);
    within(shards.at(0), int64_t(bytes.size()));
    data::Bytes part;
    for (const data::ShardSample& s : shards[0].samples)
      require(data::read_part(path, s.offset, s.size, part), "a sample cannot be read");
  });
}

void folder_index(Input in) {
  may_refuse([&] {
    for (const data::IndexedDirectory& d : data::parse_image_index(fields_of(in))) {
      const auto leads_out = [](const std::string& s) {
        return s.starts_with('/') || ("/" + s + "/").find("/../") != std::string::npos;
      };
      require(!leads_out(d.path), "the cache names a directory outside");
      for (const std::string& name : d.images) require(!leads_out(name), "the cache names an image outside");
    }
  });
}

void shard_index(Input in) {
  may_refuse([&] {
    for (const auto& [name, known] : data::parse_shard_index(fields_of(in)))
      within(known.shard, known.times.size);
  });
}

}  // namespace skein::fuzz
