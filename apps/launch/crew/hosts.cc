// Both ends of --hosts: the caller, and the process that answers on each host.
//
//   caller to host   a line each: key HEX, first RANK, count N, world N, env NAME HEX, end
//   host to caller   skein-host 1 PORT ADDRESS,...    the host is ready; where rank 0 would listen
//   caller to host   meet PORT ADDRESS,...            all are; the workers start
//                    signal N                         for the workers, at any time; the end of all this
//                                                     ends them
//   host to caller   skein-host reports REPORT        on stderr, where losses are replaced: superior.h
//   caller to host   through                          no fresh workers any more
#include "apps/launch/crew/hosts.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "apps/base/environment.h"
#include "apps/base/printable.h"
#include "apps/launch/crew/processes.h"
#include "apps/launch/crew/superior.h"
#include "apps/launch/crew/supervisor.h"
#include "comm/join/rendezvous.h"
#include "engine/words/number.h"

extern char** environ;

namespace skein::apps {
namespace {

namespace fs = std::filesystem;
using comm::Clock;
using comm::Fd;

constexpr const char* kMark = "SKEIN_HOST_PART";
constexpr const char *kReady = "skein-host 1 ", *kReport = "skein-host reports ";
constexpr int kNoDirectory = 121, kNoProgram = 122, kSshFailed = 255;

// The key passes through buffers of this process on its way to others; those are not concerned.
void leave_no_core() { prctl(PR_SET_DUMPABLE, 0); }

std::string own_path() {
  char path[PATH_MAX] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) comm::fail_system("reading /proc/self/exe");
  return path;
}

std::string command_for_shell(char** argv) {
  const std::string program = shell_quoted(own_path());
  std::string s = text("cd ", shell_quoted(fs::current_path()), " || exit ", kNoDirectory, "; test -x ",
                       program, " || exit ", kNoProgram, "; exec env ", kMark, "=1 ", program);
  for (char** a = argv + 1; *a; ++a) s += ' ' + shell_quoted(*a);
  return s;
}

std::vector<std::string> ssh_words() {
  std::istringstream in(
      variable("SKEIN_SSH")
          .value_or("ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15"));
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

bool can_run(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0;
  std::istringstream path(variable("PATH").value_or("/usr/bin:/bin"));
  for (std::string dir; std::getline(path, dir, ':');)
    if (access((fs::path(dir) / program).c_str(), X_OK) == 0) return true;
  return false;
}

// Variables that control libraries must be the same on all hosts.
std::string environment_lines() {
  std::string lines;
  for (char** e = environ; *e; ++e) {
    const std::string both = *e, name = both.substr(0, both.find('='));
    bool travels = false;
    for (const char* start : {"OMP_", "SKEIN_", "UCX_", "NCCL_"})
      travels = travels || name.rfind(start, 0) == 0;
    for (const char* own : {"SKEIN_KEY", "SKEIN_LISTEN", "SKEIN_SSH", kJoinVariable, kReportsVariable})
      travels = travels && name.rfind(own, 0) != 0;
    if (travels && both.size() > name.size())
      lines += text("env ", name, ' ', comm::hex(both.substr(name.size() + 1)), '\n');
  }
  return lines;
}

class Caller {
 public:
  Caller(const HostsJob& job, char** argv) : job_(job), team_(job.losses.loss, job.losses.patience) {
    const std::vector<std::string> ssh = ssh_words();
    if (ssh.empty() || !can_run(ssh[0]))
      throw BadOption(
          text("--hosts needs ", ssh.empty() ? "ssh" : ssh[0],
               ", which is not here: install openssh-client, or name another command in SKEIN_SSH"));
    until_ = comm::after(job.deadline);
    team_.output().heard = [this](Ward& w, const std::string& line, bool is_error) {
      return heard(w, line, is_error);
    };
    team_.tick = [this] { return tick(); };
    const std::string key = key_of_new_job(job.losses).hex(), command = command_for_shell(argv);
    int world = 0, first = 0;
    for (const HostShare& h : job.hosts) world += h.workers;
    said_.resize(job.hosts.size()), reported_.resize(job.hosts.size()), is_ready_.resize(job.hosts.size());
    for (const HostShare& h : job.hosts) {
      Ward& w = team_.start("host " + h.name, {.output = true, .orders = true},
                            [&](size_t) { become(ssh, h.name, command); });
      w.prefix = h.name + ": ";
      w.order(text("key ", key, "\nfirst ", first, "\ncount ", h.workers, "\nworld ", world, '\n',
                   environment_lines(), "end"));
      first += h.workers;
    }
  }

  int run() {
    const int status = team_.run();
    if (!trouble_.empty()) throw Error(trouble_);
    if (!met_ && team_.asked()) return kExitInterrupted;
    return status == kSshFailed ? 1 : status;
  }

 private:
  [[noreturn]] static void become(std::vector<std::string> words, const std::string& host,
                                  const std::string& command) {
    words.push_back(host), words.push_back(command);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    std::perror(argv[0]);
    _exit(kSshFailed);
  }

  size_t index(const Ward& w) { return size_t(&w - team_.wards().data()); }

  // Until all hosts are ready, their output is held back, because it may be the reason why one is not.
  bool heard(Ward& w, const std::string& line, bool is_error) {
    if (is_error && line.starts_with(kReport)) {
      team_.replacements().take_report(w, line.substr(std::string(kReport).size()));
      return true;
    }
    if (met_) return false;
    if (is_error && !line.empty()) said_[index(w)] = line;
    if (is_error || line.rfind(kReady, 0) != 0) return true;
    if (index(w) == 0) meet_ = "meet " + line.substr(std::string(kReady).size());
    w.plain = index(w) == 0;
    is_ready_[index(w)] = true;
    if (++ready_ < job_.hosts.size()) return true;
    met_ = true;
    for (Ward& other : team_.wards()) other.order(meet_);
    return true;
  }

  bool tick() {
    for (Ward& w : team_.wards()) {
      if (!w.ended || reported_[index(w)]) continue;
      if (met_) {
        if (w.exit_code() == kSshFailed && !team_.asked())
          std::fprintf(stderr, "the connection to %s was lost\n", w.name.c_str());
        reported_[index(w)] = true;
      } else if (w.errors && !waited_) {
        waited_ = true;  // waits one more round for its last output
      } else {
        trouble_ = why(w);
        return false;
      }
    }
    if (met_) return true;
    if (team_.asked()) return false;
    if (Clock::now() < until_) return true;
    trouble_ = text(ready_, " of ", job_.hosts.size(), " hosts were ready after ", job_.deadline, " s; ",
                    silent(), " did not answer");
    return false;
  }

  std::string silent() const {
    std::string names;
    for (size_t i = 0; i < job_.hosts.size(); ++i)
      if (!is_ready_[i]) names += (names.empty() ? "" : ", ") + job_.hosts[i].name;
    return names;
  }

  std::string why(const Ward& w) {
    const std::string &last = said_[index(w)], host = job_.hosts[index(w)].name;
    const std::string said = last.empty() ? "" : text(": ", last);
    switch (w.exit_code()) {
      case kNoDirectory:
        return text(w.name, ": there is no directory ", fs::current_path().string(),
                    "; every host needs it, best by a shared file system");
      case kNoProgram:
        return text(w.name, ": there is no program ", own_path(),
                    "; it must be at the same path on every host");
      case kSshFailed:
        return text(w.name, " cannot be reached", said, "; does `", ssh_words()[0], ' ', host,
                    " true` work without a password?");
      default:
        return text(w.name, ": the program ended with status ", w.exit_code(), said);
    }
  }

  const HostsJob job_;
  Supervisor team_;
  Clock::time_point until_;
  std::string meet_, trouble_;
  std::vector<std::string> said_;  // the last line of each host
  std::vector<bool> reported_, is_ready_;
  size_t ready_ = 0;
  bool met_ = false, waited_ = false;
};

// Returns -1 unless it is a number from 0 to `most`.
int whole(const std::string& digits, int most) {
  const int n = number_in<int>(digits).value_or(-1);
  return n <= most ? n : -1;
}

// Reads one line of stdin, and nothing behind it. Returns false at the end of stdin.
bool read_line(std::string& line) {
  line.clear();
  for (char c; read(STDIN_FILENO, &c, 1) == 1; line += c)
    if (c == '\n') return true;
  return false;
}

}  // namespace

int run_on_hosts(const HostsJob& job, char** argv) {
  leave_no_core();
  return Caller(job, argv).run();
}

bool is_part_of_hosts() { return variable(kMark).has_value(); }

int run_part_of_hosts(char** argv, const Losses& losses, comm::PortRange ports) {
  unsetenv(kMark);
  leave_no_core();
  Crew c;
  c.losses = losses;
  c.reported = [](const std::string& report) { std::fprintf(stderr, "%s%s\n", kReport, report.c_str()); };
  std::string line, word, value;
  while (read_line(line) && line != "end") {
    std::istringstream in(line);
    in >> word >> value;
    if (word == "key") c.key = comm::Secret::from_hex(value.data(), value.size());
    if (word == "first") c.first = whole(value, kMostWorkers);
    if (word == "count") c.count = whole(value, kMostWorkers);
    if (word == "world") c.world = whole(value, kMostWorkers);
    if (word == "env" && in >> word) setenv(value.c_str(), comm::unhex(word).c_str(), 1);
  }
  if (line != "end" || c.key.size() != comm::kJobKeyBytes || c.first < 0 || c.count < 1 ||
      c.world < c.first + c.count)
    throw Error(text(kMark, " is set, but stdin has no instructions; unset it"));
  if (c.first == 0) c.listener = comm::listen_at(c.port, false, ports);
  std::string addresses;
  if (const auto ssh = variable("SSH_CONNECTION")) {  // client, its port, our address, our port
    std::istringstream in(*ssh);
    in >> word >> word >> addresses;
  }
  for (const std::string& a : comm::own_addresses()) addresses += (addresses.empty() ? "" : ",") + a;
  std::printf("%s%d %s\n", kReady, c.port, addresses.c_str());
  std::fflush(stdout);
  if (!read_line(line)) return 1;  // another host failed, and the caller reports it
  std::istringstream in(line);
  if (!(in >> word >> c.port >> c.host) || word != "meet") return kExitInterrupted;
  c.orders = Fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  return run_crew(std::move(c), argv);
}

}  // namespace skein::apps
