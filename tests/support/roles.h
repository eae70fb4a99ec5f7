// The roles of ranks in the tests of the shared and the UCX transport, which are the same for both.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>

#include "comm/average/in_place.h"
#include "comm/seal/greeting.h"
#include "tests/support/processes.h"
#include "tests/support/samples.h"

namespace skein::comm {

inline TransportOptions way(const std::string& word) {
  TransportOptions o;
  o.way = parse_way(word);
  o.key = Secret(std::string(kJobKeyBytes, 'k'));
  o.deadline = 20;
  return o;
}
inline CommunicatorOptions in_seconds(double s) {
  CommunicatorOptions o;
  o.deadline = s;
  return o;
}

// Sums of many sizes in the transport's memory and in plain memory, several at once.
inline void sum_vectors(Exchange& e, const std::string& word) {
  const auto t = connect(e, way(word));
  Communicator c(*t, in_seconds(20));
  for (int round = 0; round < 3; ++round)
    for (int64_t n : {0, 1, 13, 2049, 70001, 1000003}) {
      std::vector<Tensor> x = {vector_of(c.rank(), n, c.allocator()), vector_of(c.rank(), n, allocator(kCpu)),
                               vector_of(c.rank(), n, c.allocator())};
      Pendings all;
      for (const Tensor& v : x) all += c.all_reduce(v);
      all.wait();
      for (const Tensor& v : x)
        for (int64_t i = 0; i < n; ++i)
          CHECK(v.data<float>()[i] == sum_of(c.size(), i), n, i, v.data<float>()[i], sum_of(c.size(), i));
    }
  c.barrier();
}

inline void pass_messages(Exchange& e, const std::string& word) {
  const auto t = connect(e, way(word));
  CommunicatorOptions narrow = in_seconds(20);
  narrow.wire = kBF16;
  Communicator c(*t, in_seconds(20));
  const auto pair = c.group({0, 1});
  const Rank next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
  int64_t step = 0;
  for (int64_t n : {0, 1, 12, 13, 5000, 300000, 16 << 20}) {  // up to 64 MB
    const Tensor x = vector_of(c.rank(), n, c.allocator());
    c.push(next, 7, step, 0.5f, x, 0.25 + double(c.rank()));
    const Message m = c.take(last, 7, step++, x);
    CHECK(m.from == last && m.weight == 0.25 + double(last), m.from, m.weight);
    for (int64_t i = 0; i < n; i += 101) CHECK(m.payload.data<float>()[i] == 0.5f * sample(last, i), n, i);
  }
  {
    Communicator b(*t, narrow);  // the same tags in the same world: only group() gives an own id
    const auto g = b.group({1, 0});
    const Rank other = 1 - g->rank();
    const Tensor x = vector_of(g->rank(), 1000, g->allocator());
    g->push(other, 7, 0, 1, x);
    const Message m = g->take(other, 7, 0, x);
    for (int64_t i = 0; i < 1000; ++i) {
      const float want = sample(other, i);
      CHECK(std::abs(m.payload.data<float>()[i] - want) <= std::abs(want) / 256, i);
    }
  }
  for (int64_t n : {0, 5, 100001}) {
    if (n > 0 && share_memory(*pair, 1 - pair->rank())) {
      const Tensor x = vector_of(c.rank(), n, c.allocator());
      average_in_place(*pair, 1 - pair->rank(), x, 3, n);
      for (int64_t i = 0; i < n; ++i) CHECK(x.data<float>()[i] == 0.5f * (sample(0, i) + sample(1, i)), n, i);
    }
    const Tensor y = vector_of(c.rank(), n, c.allocator());
    c.broadcast(y, 1);
    for (int64_t i = 0; i < n; ++i) CHECK(y.data<float>()[i] == sample(1, i), n, i);
  }
  for (int64_t k = 0; k < 3000; ++k) {  // more than the rings hold
    c.push(next, 9, k, 1, Tensor::of<float>({20}, std::vector<float>(20, float(k))));
    if (k >= 300) CHECK(c.take(last, 9, k - 300).payload.data<float>()[19] == float(k - 300), k);
  }
  for (int64_t k = 2700; k < 3000; ++k) c.take(last, 9, k);
  // The last messages of a rank that ends at once arrive.
  c.push(next, 11, 0, 1, vector_of(c.rank(), 400000, c.allocator()));
  if (c.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(c.take(last, 11, 0).payload.data<float>()[399999] == sample(last, 399999));
}

template <class E, class F>
std::string expect_throw(F f) {
  try {
    f();
  } catch (const E& e) { return e.what(); }
  throw Error("what should have been thrown was not");
}

// Survivors leave together; otherwise one that notices the death late would miss an earlier survivor
// and name that one.
inline void leave_together(Transport& t, Rank dead) {
  Communicator c(t, {.deadline = 20, .all_needed = false});
  for (Rank r = 0; r < c.size(); ++r)
    if (r != dead && r != c.rank()) c.push(r, 12, 0, 1, Tensor::zeros({1}));
  for (Rank r = 0; r < c.size(); ++r)
    if (r != dead && r != c.rank()) c.take(r, 12, 0);
}

// Rank 1 dies in the middle; the others must know at once, by name.
inline void lose_rank_one(Exchange& e, const std::string& word) {
  const auto t = connect(e, way(word));
  Communicator c(*t, in_seconds(20));
  const Tensor x = vector_of(c.rank(), 1 << 20, c.allocator());
  c.all_reduce(x).wait();
  // It dies when the others have received all it sent, because a killed process loses what is still queued.
  for (Rank r : {0, 2}) {
    if (c.rank() == r) c.push(1, 5, 0, 1, Tensor::zeros({1}));
    if (c.rank() == 1) c.take(r, 5, 0);
  }
  if (c.rank() == 1) raise(SIGKILL);
  const auto began = Clock::now();
  try {
    c.all_reduce(x).wait();
    throw Error("a sum without rank 1 cannot be");
  } catch (const PeerLost& lost) { CHECK(lost.rank == 1, lost.what()); }
  CHECK(Clock::now() - began < std::chrono::seconds(15), "it took too long to notice");
  leave_together(*t, 1);
}

// Rank 1 is stopped. "shared/silence": noticed by its silence; "shared/deadline": by the wait's deadline.
inline void stop_rank_one(Exchange& e, const std::string& argument) {
  TransportOptions o = way(argument.substr(0, argument.find('/')));
  const bool by_silence = argument.ends_with("silence");
  o.silence = by_silence ? SilenceBounds{1, 1} : SilenceBounds{30, 30};
  const auto t = connect(e, o);
  Communicator c(*t, in_seconds(by_silence ? 20 : 1));
  c.barrier();
  if (c.rank() == 1) raise(SIGSTOP);
  const auto began = Clock::now();
  const auto lost = [&](Rank r, const char* what) {
    CHECK(r == 1 && std::string(what).find("rank 1") != std::string::npos, what);
  };
  try {
    c.take(1, 5, 42);
    throw Error("rank 1 is stopped and cannot have sent");
  } catch (const PeerLost& l) {
    CHECK(by_silence);
    lost(l.rank, l.what());
  } catch (const Timeout& l) {
    CHECK(!by_silence);
    lost(l.rank, l.what());
    CHECK(std::string(l.what()).find("tag 5, step 42") != std::string::npos, l.what());
  }
  CHECK(Clock::now() - began < std::chrono::seconds(15), "it took too long to notice");
}

// Ranks that call different sums, or are in different epochs: an error on both ends, at once.
inline void disagree(Exchange& e, const std::string& argument) {
  const auto t = connect(e, way(argument.substr(0, argument.find('/'))));
  Communicator c(*t, in_seconds(20));
  c.barrier();
  const auto began = Clock::now();
  const std::string what = expect_throw<Disagreement>([&] {
    if (argument.ends_with("epoch")) {
      c.membership().set_epoch(c.rank() == 0 ? 8 : 9);
      c.barrier();
    } else if (argument.ends_with("bytes")) {
      c.all_reduce(vector_of(c.rank(), 1000 + c.rank(), c.allocator())).wait();
    } else if (argument.ends_with("layout")) {
      c.push(1 - c.rank(), 3, 0, 1, Tensor::zeros({10 + c.rank()}));
      c.take(1 - c.rank(), 3, 0, Tensor({10 + c.rank()}));
    } else if (argument.ends_with("step")) {
      if (c.rank() == 0) c.push(1, 3, 6, 1, Tensor::zeros({4}));
      c.take(1 - c.rank(), 3, 5);
    } else {
      if (c.rank() == 0)
        c.barrier();
      else
        c.all_reduce(Tensor::zeros({10})).wait();
    }
  });
  CHECK(what.find("rank 0") != std::string::npos && what.find("rank 1") != std::string::npos, what);
  CHECK(Clock::now() - began < std::chrono::seconds(15), "it took too long to notice");
}

// Rank 1 sends and ends; rank 0, at `path`, sees that it is still there while nothing has been read.
inline void send_last_words(Exchange& e, const std::string& argument) {
  const size_t at = argument.find('/');
  const std::string path = argument.substr(at);
  {
    const auto t = connect(e, way(argument.substr(0, at)));
    Communicator c(*t, in_seconds(20));
    c.barrier();
    if (c.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the barrier may read what comes with it
      c.push(0, 3, 0, 1, vector_of(1, 8, c.allocator()));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const bool ended = std::filesystem::exists(path), read = t->mailbox().has({1, 1, 3, 0});
      CHECK(!ended || read, "rank 1 has ended before its message was read");
      CHECK(c.take(1, 3, 0).payload.size() == 8);
    }
  }
  if (e.rank() == 1) std::ofstream(path) << "ended";
}

inline const AddRole kSum("sum", sum_vectors), kPass("pass", pass_messages), kLose("lose", lose_rank_one),
    kStop("stop", stop_rank_one), kDisagree("disagree", disagree), kLastWords("last words", send_last_words);

}  // namespace skein::comm
