// Writes tar archives (ustar), the shards of webdataset: for tests and for tools.
#pragma once
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base.h"

namespace skein {

class TarBytes {
 public:
  // `type`: 0 a file, 5 a directory, g and x attributes in pax format, L the GNU way of a long name.
  void add(const std::string& name, const std::vector<uint8_t>& content, char type = '0') {
    if (name.size() > 100) throw BadOption("a name in a tar archive has at most 100 bytes: " + name);
    char head[512] = {};
    std::memcpy(head, name.data(), name.size());
    std::snprintf(head + 100, 8, "%07o", 0644);
    std::snprintf(head + 108, 8, "%07o", 0);
    std::snprintf(head + 116, 8, "%07o", 0);
    std::snprintf(head + 124, 12, "%011llo", static_cast<unsigned long long>(content.size()));
    std::snprintf(head + 136, 12, "%011o", 0);
    head[156] = type;
    std::memcpy(head + 257, "ustar\00000", 8);
    std::memset(head + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    std::snprintf(head + 148, 8, "%06o", sum);
    bytes_.insert(bytes_.end(), head, head + sizeof head);
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    bytes_.resize((bytes_.size() + 511) / 512 * 512);
  }
  void add(const std::string& name, const std::string& content) {
    add(name, std::vector<uint8_t>(content.begin(), content.end()));
  }
  // The archive so far, with its end.
  std::vector<uint8_t> finished() const {
    std::vector<uint8_t> all = bytes_;
    all.resize(all.size() + 1024);
    return all;
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace skein
