// Worlds of real processes for tests: the test binary executes itself in a named role, once per rank.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <thread>

#include "comm/communicator/communicator.h"
#include "comm/join/sockets.h"

namespace skein::comm {

// Length, then bytes.
inline void write_word(int fd, const std::string& s) {
  const uint64_t n = s.size();
  std::string all(reinterpret_cast<const char*>(&n), 8);
  all += s;
  for (size_t at = 0; at < all.size();) {
    const ssize_t w = ::send(fd, all.data() + at, all.size() - at, MSG_NOSIGNAL);
    if (w <= 0) throw Error("the test's parent is gone");
    at += size_t(w);
  }
}
inline bool read_exactly(int fd, char* to, size_t n) {
  for (size_t at = 0; at < n;) {
    const ssize_t r = ::read(fd, to + at, n - at);
    if (r <= 0) return false;
    at += size_t(r);
  }
  return true;
}
inline bool read_word(int fd, std::string& s) {
  uint64_t n = 0;
  if (!read_exactly(fd, reinterpret_cast<char*>(&n), 8)) return false;
  s.resize(n);
  return read_exactly(fd, s.data(), n);
}

// Exchanges through the parent, with a socket pair for each process.
class ParentExchange final : public Exchange {
 public:
  ParentExchange(int fd, Rank rank, int size) : fd_(fd), rank_(rank), size_(size) {}
  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<std::string> all_gather(const std::string& mine) override {
    write_word(fd_, mine);
    std::vector<std::string> all(static_cast<size_t>(size_));
    for (std::string& s : all)
      if (!read_word(fd_, s)) throw Error("the test's parent is gone");
    return all;
  }

 private:
  const int fd_;
  const Rank rank_;
  const int size_;
};

using Role = std::function<void(Exchange&, const std::string& argument)>;
inline std::map<std::string, Role>& roles() {
  static std::map<std::string, Role> all;
  return all;
}
struct AddRole {
  AddRole(const std::string& name, Role f) { roles()[name] = std::move(f); }
};

// n processes in a role. Their exit codes are 0, or 1 with the error on stderr, or 128 + signal.
class Processes {
 public:
  Processes(const std::string& role, int n, const std::string& argument) {
    for (Rank r = 0; r < n; ++r) start(role, r, n, argument);
    relay_ = std::thread([this] { relay(); });
  }
  ~Processes() {
    for (pid_t p : pids_)
      if (p > 0) ::kill(p, SIGKILL), ::waitpid(p, nullptr, 0);
    for (int fd : fds_) ::shutdown(fd, SHUT_RDWR);
    relay_.join();
    for (int fd : fds_) ::close(fd);
  }
  void signal(Rank r, int number) { ::kill(pids_[size_t(r)], number); }
  // Waits for a rank and returns its exit code; -1 if it has not ended after `seconds`.
  int wait(Rank r, double seconds = 60) {
    for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); Clock::now() < end;
         std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
      int status = 0;
      if (::waitpid(pids_[size_t(r)], &status, WNOHANG) == 0) continue;
      pids_[size_t(r)] = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
  }
  int size() const { return int(pids_.size()); }

 private:
  void start(const std::string& role, Rank r, int n, const std::string& argument) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail_system("socketpair");
    const std::string words[] = {"/proc/self/exe", "--role=" + role, text(r),
                                 text(n),          text(pair[1]),    argument};
    char* argv[7] = {};
    for (int i = 0; i < 6; ++i) argv[i] = const_cast<char*>(words[i].c_str());
    const pid_t parent = ::getpid(), p = ::fork();
    if (p == 0) {
      ::fcntl(pair[1], F_SETFD, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(3);
      ::execv(argv[0], argv);
      ::_exit(3);
    }
    ::close(pair[1]);
    pids_.push_back(p);
    fds_.push_back(pair[0]);
  }
  void relay() {
    for (std::vector<std::string> words(fds_.size());;) {
      for (size_t i = 0; i < fds_.size(); ++i)
        if (!read_word(fds_[i], words[i])) return;
      try {
        for (int fd : fds_)
          for (const std::string& w : words) write_word(fd, w);
      } catch (const Error&) { return; }
    }
  }
  std::vector<pid_t> pids_;
  std::vector<int> fds_;
  std::thread relay_;
};

inline void expect_all_end_well(Processes& p) {
  for (Rank r = 0; r < p.size(); ++r) EXPECT_EQ(p.wait(r), 0) << "rank " << r;
}

// Plays the role of a process that a test started and returns its exit status; nothing in a
// process that runs tests.
inline std::optional<int> play_role(int argc, char** argv) {
  if (argc != 6 || std::string(argv[1]).rfind("--role=", 0) != 0) return std::nullopt;
  ParentExchange exchange(std::stoi(argv[4]), std::stoi(argv[2]), std::stoi(argv[3]));
  try {
    roles().at(argv[1] + 7)(exchange, argv[5]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "rank " << argv[2] << ": " << e.what() << std::endl;
    return 1;
  }
}

}  // namespace skein::comm
