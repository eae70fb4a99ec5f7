// CenterHost: the center that this process has, and the thread that serves it beside a worker.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "optim/center/center.h"

namespace skein::optim {

class CenterHost {
 public:
  ~CenterHost() { close(); }

  // Opens the center for so many workers. Returns the words of its invitation or, if that fails, the reason.
  std::string open(const Options&, std::unique_ptr<comm::Communicator> twin, int workers,
                   const Center::Column&, int64_t kept);
  // Throws BadFile if these are not an invitation's words, but a reason.
  static void require_invitation(const std::string& words);

  bool is_open() const { return center_ != nullptr; }
  Center& center() const { return *center_; }
  void serve_beside();  // on a thread of its own, until close()
  void close();         // ends that thread; the center stays as it is

 private:
  std::unique_ptr<Center> center_;
  std::atomic<bool> stop_{false};
  comm::Thread thread_;
};

}  // namespace skein::optim
