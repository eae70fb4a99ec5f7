// Agreement on success, by one gather and one broadcast.
#include "apps/together.h"

#include <cstring>

namespace skein::apps {
namespace {

Tensor bytes_of(const std::string& s) {
  return Tensor::of<uint8_t>({int64_t(s.size())}, {s.begin(), s.end()});
}
std::string string_of(const Tensor& t) { return {static_cast<const char*>(t.raw()), size_t(t.size())}; }

// The first letter is the kind; " " is no error.
std::string attempt(const std::function<void()>& f) {
  try {
    f();
    return " ";
  } catch (const comm::PeerLost&) {
    throw;  // all miss the same one
  } catch (const BadOption& e) { return text('o', e.what()); } catch (const BadFile& e) {
    return text('f', e.what());
  } catch (const Error& e) { return text('e', e.what()); }
}

}  // namespace

std::vector<std::string> texts_at_rank_zero(comm::Communicator& comm, const std::string& mine) {
  std::vector<std::string> all;
  for (const Tensor& t : comm.gather(bytes_of(mine), 0)) all.push_back(string_of(t));
  return all;
}

std::string text_of_rank(comm::Communicator& comm, int rank, const std::string& mine) {
  const Tensor length = Tensor::of<int64_t>({1}, {int64_t(mine.size())});
  comm.broadcast(length, rank);
  if (length.data<int64_t>()[0] == 0) return {};
  const Tensor bytes({length.data<int64_t>()[0]}, kU8);
  if (comm.rank() == rank) std::memcpy(bytes.raw(), mine.data(), mine.size());
  comm.broadcast(bytes, rank);
  return string_of(bytes);
}

void together(comm::Communicator& comm, const std::function<void()>& f) {
  if (comm.size() == 1) return f();
  std::string verdict = attempt(f);
  for (const std::string& other : texts_at_rank_zero(comm, verdict))
    if (verdict == " ") verdict = other;
  verdict = from_rank_zero(comm, verdict);
  if (verdict[0] == 'o') throw Agreed<BadOption>(verdict.substr(1));
  if (verdict[0] == 'f') throw Agreed<BadFile>(verdict.substr(1));
  if (verdict[0] == 'e') throw Agreed<Error>(verdict.substr(1));
}

}  // namespace skein::apps
