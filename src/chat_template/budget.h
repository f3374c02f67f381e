#pragma once
// What one render may spend: steps, bytes alive, bytes in one string. Every object a template makes is charged here
// before it is allocated and given back when it dies, so a template cannot hold more than the limit at any moment.
//
// Errors inside the interpreter travel as TemplateFailure; ChatTemplate turns it into a Status, so it never leaves this
// folder. A tree-walking interpreter meets an error at any depth of nested calls, which is what an exception is for.
//
// Thread rule: one Budget per render, used by one thread.

#include <cstddef>
#include <cstdint>
#include <string>

#include "pagoda/status.h"

namespace pagoda::jinja {

struct TemplateFailure {
  StatusCode code = StatusCode::kInvalidArgument;
  std::string message;
};

/// The template met a type error, an undefined value or its own raise_exception.
[[noreturn]] void fail(std::string message);
/// A limit was reached.
[[noreturn]] void fail_limit(std::string message);

struct BudgetLimits {
  uint64_t max_steps = 0;
  uint64_t max_string_bytes = 0;
  uint64_t max_memory_bytes = 0;
};

class Budget {
 public:
  explicit Budget(const BudgetLimits& limits) : limits_(limits) {}

  void step() { steps(1); }
  /// Charges `n` units of work; fails when the limit is passed.
  void steps(uint64_t n) {
    steps_ += n;
    if (steps_ > limits_.max_steps || n > limits_.max_steps) steps_exhausted();
  }
  /// Work on `bytes` of text. 64 bytes are one step: copying or scanning them costs about as much as one node.
  void work(uint64_t bytes) { steps(bytes / 64); }

  /// Fails before anything is allocated when `bytes` more would pass the limit.
  void take_memory(uint64_t bytes) {
    if (bytes > limits_.max_memory_bytes - memory_) memory_exhausted();
    memory_ += bytes;
  }
  void give_memory(uint64_t bytes) { memory_ -= bytes; }
  /// Fails when one more object of `bytes` would not fit; charges nothing.
  void check_memory(uint64_t bytes) const {
    if (bytes > limits_.max_memory_bytes - memory_) memory_exhausted();
  }
  /// Fails when a string of `bytes` is longer than one string may be.
  void check_string(uint64_t bytes) const {
    if (bytes > limits_.max_string_bytes) string_too_long();
  }
  uint64_t max_string_bytes() const { return limits_.max_string_bytes; }

 private:
  [[noreturn]] void steps_exhausted() const;
  [[noreturn]] void memory_exhausted() const;
  [[noreturn]] void string_too_long() const;

  BudgetLimits limits_;
  uint64_t steps_ = 0;
  uint64_t memory_ = 0;
};

}  // namespace pagoda::jinja
