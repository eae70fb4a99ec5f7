// Fake NCCL functions, as strict as NCCL is with nonblocking communicators. Members are threads of this
// process, and their "devices" are host memory.
//
// A call returns ncclInProgress. A thread of the communicator does its work, but only after the
// communicator's state has been queried a few times, so that code that does not query it finds nothing
// done. A call in between is refused with ncclInvalidArgument, which becomes the communicator's state. So
// is any call after ncclCommFinalize, except ncclCommDestroy, which requires it. A destroyed communicator
// must not be used again.
#pragma once
#include <condition_variable>
#include <cstring>
#include <set>
#include <thread>

#include "engine/cuda/nccl_library.h"
#include "tests/support/fake_group.h"
#include "tests/support/testing.h"

namespace skein::testing {

// What members have done since the current FakeNccl was made.
struct NcclCounts {
  std::atomic<int> calls{0}, refused{0}, finalized{0}, destroyed{0}, aborted{0};
};

class NcclMember {
 public:
  using Job = std::function<bool()>;  // false: a member has ended the group
  NcclMember(int rank, std::shared_ptr<Table> table, const std::atomic<bool>& stuck)
      : rank_(rank), table_(std::move(table)), stuck_(stuck) {
    begin([this] { return meet(nullptr, [](auto&) {}); });
  }
  ~NcclMember() {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true, changed_.notify_all();
    }
    worker_.join();
  }
  template <class F>
  bool meet(void* mine, F f) {
    return table_->meet(rank_, mine, f);
  }
  ncclResult_t begin(Job job) {
    const std::lock_guard lock(mutex_);
    if (state_ == ncclInProgress) state_ = ncclInvalidArgument;
    if (state_ != ncclSuccess) return state_;
    state_ = ncclInProgress, looks_ = 0, job_ = std::move(job);
    return state_;
  }
  ncclResult_t look() {
    const std::lock_guard lock(mutex_);
    if (++looks_ >= kLooks) changed_.notify_all();
    return table_->ended() ? ncclRemoteError : state_;
  }
  bool finalize() { return !finalized_.exchange(true); }
  bool finalized() const { return finalized_; }
  void end() { table_->end(); }

 private:
  static constexpr int kLooks = 3;
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return gone_ || (job_ && looks_ >= kLooks && !stuck_); });
      if (gone_) return;
      const Job job = std::exchange(job_, nullptr);
      lock.unlock();
      const bool done = job();
      lock.lock();
      if (state_ == ncclInProgress) state_ = done ? ncclSuccess : ncclRemoteError;
    }
  }
  const int rank_;
  const std::shared_ptr<Table> table_;
  const std::atomic<bool>& stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ncclResult_t state_ = ncclSuccess;
  int looks_ = 0;
  Job job_;
  bool gone_ = false;
  std::atomic<bool> finalized_{false};
  std::thread worker_{[this] { work(); }};
};

// A table of functions instead of NCCL (cuda::groups_by()); one at a time. Members must end before it does.
class FakeNccl {
 public:
  FakeNccl() {
    EXPECT_EQ(the(), nullptr);
    the() = this;
    table.ncclGetVersion = [](int* v) { return *v = 20000, ncclSuccess; };
    table.ncclGetErrorString = [](ncclResult_t r) {
      return r == ncclInvalidArgument ? "invalid argument"
             : r == ncclRemoteError   ? "remote error"
                                      : "no error";
    };
    table.ncclGetLastError = [](ncclComm_t) { return ""; };
    table.ncclGetUniqueId = new_id, table.ncclCommInitRankConfig = init;
    table.ncclCommGetAsyncError = look, table.ncclCommFinalize = finalize;
    table.ncclCommDestroy = destroy, table.ncclCommAbort = abort;
    table.ncclAllReduce = sum, table.ncclBroadcast = broadcast;
  }
  ~FakeNccl() {
    EXPECT_EQ(members_.size(), 0u) << "communicators that nobody has ended";
    the() = nullptr;
  }
  FakeNccl(const FakeNccl&) = delete;

  cuda::Nccl table;
  NcclCounts counts;
  std::atomic<bool> stuck{false};  // no more work is done

 private:
  static FakeNccl*& the() {
    static FakeNccl* one = nullptr;
    return one;
  }
  // The member of a handle, which must not be destroyed yet.
  static NcclMember* member(ncclComm_t c) {
    const std::lock_guard lock(the()->mutex_);
    auto* const m = reinterpret_cast<NcclMember*>(c);
    EXPECT_EQ(the()->members_.count(m), 1u) << "a communicator that is gone";
    return m;
  }
  static void forget(NcclMember* m) {
    {
      const std::lock_guard lock(the()->mutex_);
      the()->members_.erase(m);
    }
    delete m;
  }
  static ncclResult_t counted(ncclResult_t r) {
    ++the()->counts.calls;
    if (r == ncclInvalidArgument) ++the()->counts.refused;
    return r;
  }
  static ncclResult_t begin(ncclComm_t c, const NcclMember::Job& job) {
    return counted(member(c)->finalized() ? ncclInvalidArgument : member(c)->begin(job));
  }

  static ncclResult_t new_id(ncclUniqueId* id) {
    static std::atomic<int> next{0};
    std::memset(id, 0, sizeof *id);
    std::snprintf(id->internal, sizeof id->internal, "table %d", next++);
    return ncclSuccess;
  }
  static ncclResult_t init(ncclComm_t* c, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    EXPECT_EQ(config->blocking, 0);
    auto* const m = new NcclMember(rank, table_of(id.internal, size), the()->stuck);
    const std::lock_guard lock(the()->mutex_);
    the()->members_.insert(m);
    *c = reinterpret_cast<ncclComm_t>(m);
    return ncclInProgress;
  }
  static ncclResult_t look(ncclComm_t c, ncclResult_t* state) {
    return *state = member(c)->look(), ncclSuccess;
  }
  static ncclResult_t finalize(ncclComm_t c) {
    NcclMember* const m = member(c);
    const ncclResult_t r = begin(c, [m] { return m->meet(nullptr, [](auto&) {}); });
    if (r == ncclInProgress && m->finalize()) ++the()->counts.finalized;
    return r;
  }
  static ncclResult_t destroy(ncclComm_t c) {
    NcclMember* const m = member(c);
    if (!m->finalized() || m->look() != ncclSuccess) return counted(ncclInvalidArgument);
    ++the()->counts.destroyed;
    return forget(m), ncclSuccess;
  }
  static ncclResult_t abort(ncclComm_t c) {
    NcclMember* const m = member(c);
    ++the()->counts.aborted;
    return m->end(), forget(m), ncclSuccess;
  }
  static ncclResult_t sum(const void* from, void* to, size_t n, ncclDataType_t t, ncclRedOp_t op,
                          ncclComm_t c, cudaStream_t) {
    EXPECT_TRUE(from == to && op == ncclSum);
    return begin(c, [=, m = member(c)] {
      return m->meet(to, [&](const std::vector<void*>& all) {
        if (t == ncclFloat32) sum_into_all<float>(all, int64_t(n));
        if (t == ncclInt64) sum_into_all<int64_t>(all, int64_t(n));
      });
    });
  }
  static ncclResult_t broadcast(const void*, void* to, size_t n, ncclDataType_t t, int root, ncclComm_t c,
                                cudaStream_t) {
    EXPECT_EQ(t, ncclFloat32);
    return begin(c, [=, m = member(c)] {
      return m->meet(to, [&](const std::vector<void*>& all) {
        for (void* x : all)
          if (x != all[size_t(root)]) std::memcpy(x, all[size_t(root)], 4 * n);
      });
    });
  }
  std::mutex mutex_;
  std::set<NcclMember*> members_;
};

}  // namespace skein::testing
