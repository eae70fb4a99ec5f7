// OrderLog: a text file, one number a line.
#include "optim/order_log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/words/file.h"
#include "engine/words/number.h"

namespace skein::optim {

namespace {
constexpr const char* kTitle = "skein order of arrivals 1";
}

OrderLog::OrderLog(const Options& o, const std::string& name) {
  const std::string record = o.word("record", ""), replay = o.word("replay", "");
  if (!record.empty() && !replay.empty())
    throw BadOption("--record and --replay: a run is recorded or done again, not both");
  if (record.empty() && replay.empty()) return;
  replaying_ = !replay.empty();
  path_ = (replaying_ ? replay : record) + "." + name;
  std::string title;
  if (!replaying_) {
    if (std::ifstream there(path_); std::getline(there, title) && title != kTitle)
      fail("this is no recording, and is not overwritten");
    file_ = std::fopen(path_.c_str(), "a+e");  // a resumed run keeps what it had
    if (!file_) fail(std::strerror(errno));
    std::fseek(file_, 0, SEEK_END);
    if (std::ftell(file_) == 0) std::fprintf(file_, "%s\n", kTitle);
    return;
  }
  std::istringstream in(read_file(path_));
  if (!std::getline(in, title) || title != kTitle) fail("this is no recording");
  for (std::string word; in >> word;) {
    const auto v = number_in<int64_t>(word);
    if (!v) fail(text("damaged after ", past_.size(), " entries"));
    past_.push_back(*v);
  }
}

OrderLog::~OrderLog() {
  if (file_) std::fclose(file_);
}

void OrderLog::fail(const std::string& what) const {
  throw BadFile(path_ + ": " + what + "; a recording is made with --record");
}

int64_t OrderLog::next() const {
  CHECK(replaying_, "nothing is replayed");
  if (ended()) fail(text("the recording ends after ", past_.size(), " entries"));
  return past_[size_t(at_)];
}

void OrderLog::happened(int64_t v) {
  if (!file_ && !replaying_) return;
  if (replaying_ && next() != v)
    throw Error(text(path_, ": entry ", at_, " is ", next(), ", but ", v,
                     " happened: this is the recording of another run"));
  if (file_ && !placed_) go_to(at_);
  if (file_ && std::fprintf(file_, "%lld\n", static_cast<long long>(v)) < 0) fail(std::strerror(errno));
  ++at_;
}

bool OrderLog::has_meeting(int64_t event, bool steps_since) const {
  if (!replaying_ || (!ended() && next() == event)) return true;
  if (!steps_since) return false;
  throw Error(
      "--replay: the recorded run did not evaluate, save or stop at this step; replay it with the same "
      "--checkpoint-every, --eval-every and length");
}

int64_t OrderLog::position() {
  if (file_ && std::fflush(file_) != 0) fail(std::strerror(errno));
  return at_;
}

void OrderLog::go_to(int64_t position) {
  at_ = position;
  if (!file_) return;
  placed_ = true;
  std::rewind(file_);
  int64_t lines = 0;
  int c;
  while (lines <= at_ && (c = std::fgetc(file_)) != EOF) lines += c == '\n';
  if (lines != at_ + 1) fail(text("it has ", lines - 1, " entries, the checkpoint is of ", at_));
  if (ftruncate(fileno(file_), std::ftell(file_)) != 0) fail(std::strerror(errno));
  std::fseek(file_, 0, SEEK_END);
}

void OrderLog::visit(Archive& a) {
  int64_t at = position();
  a("log", at);
  if (a.loading()) go_to(at);
}

}  // namespace skein::optim
