// The lanes UCX chooses: shared memory between processes of one host when it may, TCP alone when it must.
#include "tests/support/roles.h"

namespace skein::comm {
namespace {

bool says(const std::string& line, const std::string& word) { return line.find(word) != std::string::npos; }

// "anything" or "tcp": what UCX may use. Every peer's line is looked at, and a message goes each way.
void look_at_lanes(Exchange& e, const std::string& allowed) {
  TransportOptions o = way("ucx");
  if (allowed == "tcp") o.tls = allowed;
  const auto t = connect(e, o);
  Communicator c(*t, in_seconds(20));
  const Tensor x = vector_of(c.rank(), 500000, c.allocator());
  const Rank other = 1 - c.rank();
  c.push(other, 3, 0, 1, x);
  CHECK(c.take(other, 3, 0, x).payload.data<float>()[499999] == sample(other, 499999));
  std::istringstream lines(t->describe());
  int peers = 0;
  for (std::string line; std::getline(lines, line); ++peers) {
    const bool memory = says(line, "posix") || says(line, "sysv") || says(line, "cma");
    CHECK(says(line, text("rank ", other, ": ucx")), line);
    CHECK(memory == (allowed != "tcp"), "lanes chosen:", line);
    if (allowed == "tcp") CHECK(says(line, "tcp"), line);
  }
  CHECK(peers == 1, peers);
  c.barrier();
}
const AddRole kLanes("lanes", look_at_lanes);

// The same where peers may be killed.
void look_at_lanes_that_outlive_peers(Exchange& e, const std::string& allowed) {
  TransportOptions o = way("ucx");
  o.outlives_peers = true;
  if (allowed == "tcp") o.tls = allowed;
  const auto t = connect(e, o);
  const std::string line = t->describe();
  CHECK(says(line, "ucx tcp") == (allowed == "tcp"), line);
  CHECK(says(line, "shared memory") == (allowed != "tcp"), line);
  Communicator(*t, in_seconds(20)).barrier();
}
const AddRole kLanesThatOutlive("lanes that outlive", look_at_lanes_that_outlive_peers);

// With error handling UCX calls shared memory unreachable unless told otherwise, and takes TCP
// without a word.
TEST(Lanes, ProcessesOfOneHostGetSharedMemory) {
  Processes p("lanes", 2, "anything");
  expect_all_end_well(p);
}
TEST(Lanes, OfOneHostAreNoneOfUcxsSharedMemoryWherePeersMayBeKilled) {
  for (const char* allowed : {"anything", "tcp"}) {
    Processes p("lanes that outlive", 2, allowed);
    expect_all_end_well(p);
  }
}
TEST(Lanes, AreTcpAloneWhereToldSo) {
  Processes p("lanes", 2, "tcp");
  expect_all_end_well(p);
}

}  // namespace
}  // namespace skein::comm
