// Agreement on success, by one gather and one broadcast.
#include "apps/base/together.h"

namespace skein::apps {
namespace {

// Returns the error as text: the first letter is its kind, and " " means no error.
std::string attempt(const std::function<void()>& f) {
  try {
    f();
    return " ";
  } catch (const comm::PeerLost&) {
    throw;  // all workers miss the same peer
  } catch (const comm::EpochEnds&) {
    throw;  // for all
  } catch (const BadOption& e) { return text('o', e.what()); } catch (const BadFile& e) {
    return text('f', e.what());
  } catch (const Error& e) { return text('e', e.what()); }
}

}  // namespace

std::string first_said(comm::Communicator& comm, const std::string& mine) {
  std::string said;
  for (const std::string& one : comm::gather_text(comm, mine, 0))
    if (said.empty()) said = one;
  return from_rank_zero(comm, said);
}

void together(comm::Communicator& comm, const std::function<void()>& f) {
  if (comm.size() == 1) return f();
  std::string verdict = attempt(f);
  for (const std::string& other : comm::gather_text(comm, verdict, 0))
    if (verdict == " ") verdict = other;
  verdict = from_rank_zero(comm, verdict);
  if (verdict[0] == 'o') throw Agreed<BadOption>(verdict.substr(1));
  if (verdict[0] == 'f') throw Agreed<BadFile>(verdict.substr(1));
  if (verdict[0] == 'e') throw Agreed<Error>(verdict.substr(1));
}

}  // namespace skein::apps
