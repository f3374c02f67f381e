#pragma once
// ThreadTeam: a fixed set of compute threads that run one function together. Member 0 is the calling thread.
//
// Ownership: made once per engine; must outlive the calls that run on it. One thread at a time may call run().
// Members have FTZ and DAZ on (kernels rely on it) from their first instruction to their last; the caller's mode is
// set for the duration of run() and restored.
// Waiting is spin-then-futex with a bounded spin, so an idle team costs nothing and a busy neighbour is not starved.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

class ThreadTeam {
 public:
  /// `num_threads` >= 1, the caller included. kInternal when the system refuses a thread.
  static Result<std::unique_ptr<ThreadTeam>> create(int num_threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return num_threads_; }

  /// Calls fn(member) once on each member, 0 <= member < size(), and returns when all are done. `fn` must not throw
  /// and must not call run().
  template <typename Fn>
  void run(Fn&& fn) {
    run_raw([](void* arg, int member) { (*static_cast<std::remove_reference_t<Fn>*>(arg))(member); }, &fn);
  }

  /// Splits [0, n) into contiguous items of `grain`, handed out dynamically: fn(begin, end, member).
  template <typename Fn>
  void parallel_for(int64_t n, int64_t grain, Fn&& fn) {
    if (n <= 0) return;
    if (n <= grain || num_threads_ == 1) {
      run_on_caller([](void* arg, int64_t end) { (*static_cast<std::remove_reference_t<Fn>*>(arg))(0, end, 0); }, &fn, n);
      return;
    }
    std::atomic<int64_t> next{0};
    run([&](int member) {
      for (;;) {
        const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= n) return;
        fn(begin, begin + grain < n ? begin + grain : n, member);
      }
    });
  }

  /// All members wait here until the last arrives; only inside run(), by every member.
  void barrier();

 private:
  using RawFn = void (*)(void* arg, int member);
  explicit ThreadTeam(int num_threads);
  void run_raw(RawFn fn, void* arg);
  void run_on_caller(void (*fn)(void* arg, int64_t end), void* arg, int64_t end);
  void worker(int member);

  const int num_threads_;
  RawFn fn_ = nullptr;
  void* arg_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};  // bumped to start a run
  alignas(64) std::atomic<uint32_t> num_done_{0};    // members finished with this run
  alignas(64) std::atomic<uint32_t> barrier_arrived_{0};
  alignas(64) std::atomic<uint32_t> barrier_phase_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

/// Sets flush-to-zero and denormals-are-zero for the current scope (x86 MXCSR).
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals();
  ~ScopedFlushDenormals();
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  unsigned saved_;
};

}  // namespace pagoda
