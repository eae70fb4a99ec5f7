// Reads and writes membership.json; parses --join.
#include "apps/launch/membership_note.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "apps/launch/elastic/register.h"
#include "apps/launch/host_list.h"
#include "apps/launch/job_key.h"
#include "comm/join/rendezvous.h"
#include "comm/join/sockets.h"
#include "comm/ports.h"
#include "engine/words/file.h"
#include "engine/words/json.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kMark = "skein_membership", *kRegisterField = "register", *kKey = "\"key\": \"";
constexpr size_t kMostBytes = 16 << 20, kMostHosts = 64, kLongestHost = 255;
constexpr double kProbe = 0.2;  // seconds that a host has to answer
bool is_port(int64_t n) { return n >= 1 && n <= comm::kLastPort; }

bool is_host(const std::string& s) {
  return !s.empty() && s.size() <= kLongestHost && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || std::strchr(".-_:%", c);
  });
}

std::optional<DoorAddress> read_door(const json& j) {
  if (!j.is_object() || !j.contains("hosts") || !j.contains("port")) return {};
  const json &hosts = j["hosts"], &port = j["port"];
  if (!hosts.is_array() || hosts.empty() || hosts.size() > kMostHosts) return {};
  if (!port.is_number_unsigned() || port > comm::kLastPort || !is_port(port.get<int64_t>())) return {};
  DoorAddress d{.hosts = {}, .port = port.get<int>()};
  for (const json& h : hosts) {
    if (!h.is_string() || !is_host(h.get_ref<const std::string&>())) return {};
    d.hosts.push_back(h.get<std::string>());
  }
  return d;
}

bool read_doors(const json& j, MembershipNote& n) {
  if (!j.is_object() || !j.contains(kMark) || j[kMark] != 1) return false;
  if (!j.contains("epoch") || !j.contains("members")) return false;
  const json &epoch = j["epoch"], &members = j["members"];
  if (!epoch.is_number_unsigned() || epoch < 1 || epoch > UINT32_MAX) return false;
  if (!members.is_array() || members.empty() || members.size() > size_t(kMostWorkers)) return false;
  n.epoch = epoch.get<uint32_t>();
  for (const json& m : members) {
    auto door = read_door(m);
    if (!door) return false;
    n.doors.push_back(std::move(*door));
  }
  if (!j.contains(kRegisterField)) return true;
  if (!j[kRegisterField].is_string()) return false;
  n.decided_in = j[kRegisterField].get<std::string>();
  return Register::is_name(n.decided_in);
}

// Takes the key out of the text, so that nothing copies it: zeros stay in its place. Returns whether it is
// well-formed or absent.
bool take_key(std::string& bytes, comm::Secret& key) {
  const size_t at = bytes.find(kKey);
  if (at == std::string::npos) return true;
  const size_t from = at + std::strlen(kKey), n = 2 * comm::kJobKeyBytes;
  if (bytes.size() < from + n || bytes[from + n] != '"') return false;
  const bool sound = bytes.find_first_not_of("0123456789abcdef", from) == from + n;
  if (sound) key = comm::Secret::from_hex(bytes.data() + from, n);
  std::fill_n(bytes.begin() + std::ptrdiff_t(from), n, '0');
  return sound;
}

// HOST:PORT; an address with colons is in brackets.
std::optional<DoorAddress> parse_address(const std::string& s) {
  const size_t colon = s.rfind(':');
  if (colon == std::string::npos) return {};
  const int port = number_in<int>(std::string_view(s).substr(colon + 1)).value_or(0);
  std::string host = s.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!is_port(port) || !is_host(host) || (host.find(':') != std::string::npos) != bracketed) return {};
  return DoorAddress{{host}, port};
}

}  // namespace

fs::path membership_note_in(const fs::path& run) { return run / "membership.json"; }

void write_membership(const fs::path& run, const MembershipNote& n) {
  CHECK(!n.doors.empty());
  json members = json::array();
  for (const DoorAddress& d : n.doors) members.push_back({{"hosts", d.hosts}, {"port", d.port}});
  std::string words =
      text("{\"", kMark, "\": 1, \"epoch\": ", n.epoch, ", \"members\": ", json_text(members));
  const comm::WipedAtEnd wiped{words};
  if (!n.decided_in.empty()) words += text(", \"", kRegisterField, "\": \"", n.decided_in, "\"");
  if (!n.key.empty()) {
    std::string digits = n.key.hex();
    const comm::WipedAtEnd too{digits};
    words.append(", ").append(kKey).append(digits).append("\"");
  }
  words += "}\n";
  write_file(membership_note_in(run), words, Writing::kPrivate);
}

MembershipNote parse_membership(std::string& bytes, const std::string& from) {
  MembershipNote n;
  if (!take_key(bytes, n.key) || !read_doors(parse_json(bytes), n))
    throw BadFile(from + ": does not name the members of a running job; remove it");
  return n;
}

std::optional<MembershipNote> read_membership(const fs::path& run) {
  const fs::path path = membership_note_in(run);
  look_afresh(run);
  const comm::Fd f(open_to_read(path));
  if (!f && (errno == ENOENT || errno == ESTALE || errno == ENOTDIR)) return {};
  if (!f)
    throw BadFile(
        text(path.string(), ": ", errno == ESPIPE ? "is no file; remove it" : std::strerror(errno)));
  check_private(f.get(), path);
  std::string bytes;
  char some[16384];
  for (ssize_t got; bytes.size() <= kMostBytes && (got = read(f.get(), some, sizeof some)) > 0;)
    bytes.append(some, size_t(got));
  if (bytes.size() > kMostBytes)
    throw BadFile(path.string() + ": is too long for a list of members; remove it");
  return parse_membership(bytes, path);
}

void remove_membership(const fs::path& run) {
  std::error_code none;
  fs::remove(membership_note_in(run), none);
}

Destination parse_join(const std::string& where) {
  if (!is_directory(where)) {
    if (auto door = parse_address(where)) return {{std::move(*door)}, {}, where};
    throw BadOption(
        text("--join: '", where,
             "' is neither HOST:PORT nor the directory of a run; a running job's --output has the "
             "addresses of its workers"));
  }
  const std::string path = membership_note_in(where);
  auto note = read_membership(where);
  if (!note)
    throw Error(
        text("--join ", where, ": there is no ", path,
             ": is a run with --elastic on at work there, and is the directory the same on this host?"));
  return {std::move(note->doors), std::move(note->key), text(path, " (epoch ", note->epoch, ")")};
}

std::optional<bool> is_open(DoorAddress a) {
  if (!std::all_of(a.hosts.begin(), a.hosts.end(), comm::leads_back))
    std::erase_if(a.hosts, comm::leads_back);
  for (const std::string& host : a.hosts)
    if (const auto heard = comm::listens(host, a.port, comm::after(kProbe))) return heard;
  return {};
}

bool has_running_job(const std::string& output) {
  const auto note = read_membership(output);
  return note && std::any_of(note->doors.begin(), note->doors.end(),
                             [](const DoorAddress& a) { return is_open(a).value_or(false); });
}

bool all_have_ended(const MembershipNote& n) {
  return std::none_of(n.doors.begin(), n.doors.end(),
                      [](const DoorAddress& a) { return is_open(a).value_or(true); });
}

Error nobody_answered(const Destination& d, double seconds) {
  const size_t n = d.doors.size();
  return Error(
      text("--join: ", d.found, " names ", n, n == 1 ? " worker" : " workers",
           n == 1 ? ", which" : ", none of which", n == 1 ? " has not answered" : " has answered", " within ",
           seconds,
           " s; the job has ended, or its workers cannot be reached from this host (those that --workers ",
           "started on one host hear newcomers of that host alone, at 127.0.0.1)"));
}

}  // namespace skein::apps
