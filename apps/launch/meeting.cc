// Meeting: the ranks meet by variables, or by a note in a shared directory.
#include "apps/launch/meeting.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include "apps/base/environment.h"
#include "apps/launch/job_key.h"
#include "comm/ports.h"
#include "engine/words/file.h"
#include "engine/words/hash.h"

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using comm::Clock;
using comm::Fd;

constexpr const char* kFirstLine = "skein meeting 1";
constexpr const char* kKeyLine = "\nkey ";
constexpr const char* kGiveKey =
    "set SKEIN_KEY_FILE to a file of 32 random bytes, the same for all, readable by you alone";
}  // namespace

void write_note(const fs::path& path, const MeetingNote& n, const char* advice) {
  const std::string words = text(kFirstLine, "\nhosts ", n.hosts, "\nport ", n.port, kKeyLine);
  std::string key = n.key.hex();
  const comm::WipedAtEnd wiped{key};
  try {
    FileWriter file(path, Writing::kPrivate);
    file.write(words.data(), words.size());
    file.write(key.data(), key.size());
    file.write("\n", 1);
    file.close();
  } catch (const FileError& e) {
    throw BadFile(text(path.string(), ": rank 0's address and the job's key cannot be written: ",
                       std::strerror(e.code), "; ", advice));
  }
}

bool read_note(const fs::path& path, MeetingNote& n) {
  look_afresh(path.parent_path());
  const Fd f(open_to_read(path));
  if (!f && (errno == ENOENT || errno == ESTALE)) return false;
  if (!f)
    throw BadFile(
        text(path.string(), ": ", errno == ESPIPE ? "is no file; remove it" : std::strerror(errno)));
  check_private(f.get(), path.string());
  std::string all(8192, 0);
  const comm::WipedAtEnd wiped{all};
  const ssize_t got = read(f.get(), all.data(), all.size());
  const auto words = std::string_view(all).substr(0, size_t(std::max<ssize_t>(got, 0)));
  const size_t end = std::min(words.find(kKeyLine), words.size());
  std::string_view key = words.substr(std::min(words.size(), end + std::strlen(kKeyLine)));
  key = key.substr(0, key.find('\n'));
  std::istringstream in{std::string(words.substr(0, end))};
  std::string line, hosts, port, word;
  std::getline(in, line);
  in >> word >> hosts >> word >> port;
  if (line != kFirstLine || key.size() != 2 * comm::kJobKeyBytes ||
      key.find_first_not_of("0123456789abcdef") != key.npos ||
      port.find_first_not_of("0123456789") != std::string::npos || port.empty() || port.size() > 5 ||
      std::stoi(port) > comm::kLastPort)
    throw BadFile(path.string() + ": does not hold the address and key of rank 0; remove it");
  n = {hosts, std::stoi(port), comm::Secret::from_hex(key.data(), key.size())};
  return true;
}

Meeting::Meeting(const Seat& seat, const std::string& place, double deadline, comm::PortRange ports)
    : seat_(seat), ports_(ports) {
  o_.rank = seat.rank, o_.size = seat.world, o_.deadline = deadline;
  if (const auto host = variable("MASTER_ADDR")) o_.host = *host, fixed_host_ = true;
  if (const auto port = number("MASTER_PORT")) {
    if (*port < 1 || *port > comm::kLastPort)
      throw BadOption(text("environment variable MASTER_PORT=", *port, ": ports are numbered from 1 to ",
                           comm::kLastPort, "; any free one of rank 0's host from 1024 on"));
    o_.port = *port, fixed_port_ = true;
  }
  if (const auto fd = number("SKEIN_LISTEN_FD")) {
    o_.listener = Fd(*fd);
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    unsetenv("SKEIN_LISTEN_FD");
  }
  const auto key = given_job_key();
  if (key) o_.key = *key;
  if (key || seat.by == Seat::kVariables)
    by_variables();
  else
    by_note(place);
}

Meeting::~Meeting() {
  std::error_code none;
  if (note_.empty() || seat_.rank != 0) return;
  fs::remove(note_, none);
  for (const fs::path& dir : made_) ::rmdir(dir.c_str());  // removes only empty ones
}

comm::RendezvousOptions Meeting::options() { return std::move(o_); }

void Meeting::by_variables() {
  if (!fixed_host_ && seat_.by == Seat::kSlurm) o_.host = seat_.first_host, fixed_host_ = true;
  if (!fixed_port_ && seat_.by == Seat::kSlurm) o_.port = seat_.port, fixed_port_ = true;
  const std::string started =
      seat_.by == Seat::kVariables ? "RANK and WORLD_SIZE are set" : seat_.said + " and a job key are set";
  if (!fixed_host_) throw BadOption(started + ", MASTER_ADDR is not: where does rank 0 run?");
  if (!fixed_port_) throw BadOption(started + ", MASTER_PORT is not: any free port of rank 0's host");
  if (o_.key.empty())
    key_by_note();
  else if (!seat_.ports.empty() && !o_.listener)
    o_.key = key_of_start(o_.key, seat_.job);
  if (seat_.ports.empty() || o_.listener) return;
  o_.port = seat_.ports[0];
  o_.more_ports.assign(seat_.ports.begin() + 1, seat_.ports.end());
}

// A note in the user's home names the job by its address. If that is loopback, every host has one of its own.
// Rank 0 listens before it writes, so that a second job at the same port does not replace the first one's.
void Meeting::key_by_note() {
  const auto home = variable("HOME");
  if (!home) throw BadOption(text("workers started by RANK and WORLD_SIZE need a job key: ", kGiveKey));
  const bool here = o_.host == "localhost" || o_.host.starts_with("127.");
  const std::string job =
      seat_.job.empty() ? text(o_.host, ':', o_.port, here ? comm::host_identity() : "") : seat_.job;
  note_ = fs::path(*home) / ".config" / "skein" / ("job-" + fingerprint(job));
  if (seat_.rank > 0) return wait_for_note();
  if (seat_.ports.empty() && !o_.listener) o_.listener = comm::listen_at(o_.port, false);
  std::error_code none;
  fs::create_directories(note_.parent_path(), none);
  draw_key(o_.host);
}

void Meeting::draw_key(const std::string& hosts) {
  o_.key = comm::Secret::random(comm::kJobKeyBytes);
  write_note(note_, {hosts, o_.port, o_.key},
             seat_.by == Seat::kVariables ? kGiveKey
                                          : "choose an --output that all hosts share and you may write to");
}

void Meeting::by_note(const std::string& place) {
  note_ = fs::absolute(place).lexically_normal() / (".skein-meeting-" + seat_.job);
  if (seat_.rank == 0)
    leave_note();
  else
    wait_for_note();
}

void Meeting::leave_note() {
  std::error_code none;
  fs::path dir = note_.parent_path();
  for (fs::path d = dir; !d.empty() && !fs::exists(d, none); d = d.parent_path()) made_.push_back(d);
  fs::create_directories(dir, none);
  if (fixed_port_) {
    o_.listener = comm::listen_at(o_.port, false);
  } else {
    o_.port = ports_.any() ? seat_.port : 0;
    try {
      o_.listener = comm::listen_at(o_.port, false, ports_);
    } catch (const Error&) {  // the port is another job's; the others read which one was taken
      if (!ports_.any()) throw;
      o_.port = 0;
      o_.listener = comm::listen_at(o_.port, false);
    }
  }
  std::string hosts = fixed_host_ ? o_.host : seat_.node;
  if (!fixed_host_)
    for (const std::string& address : comm::own_addresses()) hosts += ',' + address;
  draw_key(hosts);
}

void Meeting::wait_for_note() {
  const auto until = comm::after(o_.deadline);
  const auto take = [this](comm::RendezvousOptions& o) {
    MeetingNote n;
    if (!read_note(note_, n)) return false;
    if (!fixed_host_) o.host = n.hosts;
    if (!fixed_port_) o.port = n.port;
    o.key = n.key;
    return true;
  };
  while (!take(o_)) {
    if (Clock::now() > until)
      throw Error(
          text("rank ", seat_.rank, " on ", seat_.node, " waited ", o_.deadline, " s for rank 0 to write ",
               note_.string(), ": was rank 0 started, and is that directory the same on all hosts? ",
               seat_.by == Seat::kVariables
                   ? text("Otherwise ", kGiveKey)
                   : "Give an --output that they share, or set MASTER_ADDR, MASTER_PORT and SKEIN_KEY_FILE"));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  // A note left by a killed job leads nowhere until the new rank 0 has replaced it.
  o_.look_again = [take](comm::RendezvousOptions& o) { take(o); };
}

}  // namespace skein::apps
