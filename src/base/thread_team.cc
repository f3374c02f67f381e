#include "base/thread_team.h"

#include <pthread.h>
#include <xmmintrin.h>

#include <string>
#include <system_error>

namespace pagoda {

namespace {

// About 50 us of pauses on a 3 GHz core: longer than the gap between two operators of a step, shorter than a time slice.
constexpr int kSpinRounds = 2000;
constexpr unsigned kFlushBits = 0x8040;  // MXCSR: FTZ (bit 15) and DAZ (bit 6)

// Waits until `value` differs from `old`: a bounded spin, then a futex wait.
uint32_t wait_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpinRounds; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    _mm_pause();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
  }
}

}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushBits); }
ScopedFlushDenormals::~ScopedFlushDenormals() { _mm_setcsr(saved_); }

ThreadTeam::ThreadTeam(int num_threads) : num_threads_(num_threads) {}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::create(int num_threads) {
  if (num_threads < 1 || num_threads > 4096) {
    return invalid_argument("a thread team needs 1 to 4096 threads, not " + std::to_string(num_threads));
  }
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(num_threads));
  try {
    for (int member = 1; member < num_threads; ++member) {
      team->threads_.emplace_back([t = team.get(), member] { t->worker(member); });
      const std::string name = "pagoda-c" + std::to_string(member);
      pthread_setname_np(team->threads_.back().native_handle(), name.c_str());
    }
  } catch (const std::system_error& e) {
    return internal_error("cannot start compute thread " + std::to_string(team->threads_.size() + 1) + ": " + e.what());
  }
  return team;
}

ThreadTeam::~ThreadTeam() {
  stopping_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadTeam::worker(int member) {
  ScopedFlushDenormals flush;
  uint32_t seen = 0;
  for (;;) {
    seen = wait_change(generation_, seen);
    if (stopping_.load(std::memory_order_acquire)) return;
    fn_(arg_, member);
    if (num_done_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(num_threads_ - 1)) {
      num_done_.notify_one();
    }
  }
}

void ThreadTeam::run_raw(RawFn fn, void* arg) {
  ScopedFlushDenormals flush;
  if (num_threads_ == 1) {
    fn(arg, 0);
    return;
  }
  fn_ = fn;
  arg_ = arg;
  num_done_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  fn(arg, 0);
  const auto wanted = static_cast<uint32_t>(num_threads_ - 1);
  for (uint32_t done = num_done_.load(std::memory_order_acquire); done != wanted;) done = wait_change(num_done_, done);
}

void ThreadTeam::run_on_caller(void (*fn)(void* arg, int64_t end), void* arg, int64_t end) {
  ScopedFlushDenormals flush;
  fn(arg, end);
}

void ThreadTeam::barrier() {
  if (num_threads_ == 1) return;
  const uint32_t phase = barrier_phase_.load(std::memory_order_acquire);
  if (barrier_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(num_threads_)) {
    barrier_arrived_.store(0, std::memory_order_relaxed);
    barrier_phase_.fetch_add(1, std::memory_order_release);
    barrier_phase_.notify_all();
    return;
  }
  wait_change(barrier_phase_, phase);
}

}  // namespace pagoda
