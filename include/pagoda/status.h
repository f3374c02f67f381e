#pragma once
// Status and Result<T>: how every fallible function of Pagoda reports an outcome that a correct program can meet
// (bad file, bad request, no room). Bugs in Pagoda itself are PAGODA_CHECK failures, not statuses.
//
// Thread rule: values; copy them freely between threads.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pagoda {

/// Canonical codes. A front end maps each to its own vocabulary (exit code, HTTP status) in exactly one place.
enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument,     ///< The caller asked for something that can never work.
  kNotFound,            ///< A named thing (file, key, tensor) does not exist.
  kDataLoss,            ///< A file is malformed, truncated or contradicts itself.
  kUnimplemented,       ///< Well-formed, but of a kind that Pagoda does not support.
  kResourceExhausted,   ///< A limit, memory or a queue is full.
  kFailedPrecondition,  ///< The object is not in a state that allows the call.
  kCancelled,           ///< The caller or a shutdown ended the work.
  kInternal,            ///< The operating system or a library failed in a way the caller cannot mend.
};

std::string_view status_code_name(StatusCode code);

/// One pointer wide; null means success. The message says what happened, where, and what to change.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : rep_(code == StatusCode::kOk ? nullptr : std::make_shared<const Rep>(Rep{code, std::move(message)})) {}

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  std::string_view message() const { return rep_ ? std::string_view(rep_->message) : std::string_view(); }
  /// "data loss: model.gguf: ..." for a person; "ok" on success.
  std::string to_string() const;
  /// The same code with `context` and ": " before the message; success stays success.
  Status with_context(std::string_view context) const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

inline Status invalid_argument(std::string m) { return {StatusCode::kInvalidArgument, std::move(m)}; }
inline Status not_found(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status data_loss(std::string m) { return {StatusCode::kDataLoss, std::move(m)}; }
inline Status unimplemented(std::string m) { return {StatusCode::kUnimplemented, std::move(m)}; }
inline Status resource_exhausted(std::string m) { return {StatusCode::kResourceExhausted, std::move(m)}; }
inline Status failed_precondition(std::string m) { return {StatusCode::kFailedPrecondition, std::move(m)}; }
inline Status cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }
inline Status internal_error(std::string m) { return {StatusCode::kInternal, std::move(m)}; }

/// A T or the Status that says why there is none (the interface of std::expected<T, Status>).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}              // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {       // NOLINT: implicit by design
    if (status_.ok()) status_ = internal_error("Result made from an ok Status");
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pagoda

// Leaves the calling function with the status when `expr` failed.
#define PAGODA_RETURN_IF_ERROR(expr)                         \
  do {                                                       \
    if (::pagoda::Status pagoda_status_ = (expr); !pagoda_status_.ok()) return pagoda_status_; \
  } while (false)

// `PAGODA_ASSIGN_OR_RETURN(auto x, f())`: x = the value, or leave with the status.
#define PAGODA_ASSIGN_OR_RETURN(lhs, expr) PAGODA_ASSIGN_OR_RETURN_(lhs, expr, __LINE__)
#define PAGODA_ASSIGN_OR_RETURN_(lhs, expr, line) PAGODA_ASSIGN_OR_RETURN__(lhs, expr, line)
#define PAGODA_ASSIGN_OR_RETURN__(lhs, expr, line)                     \
  auto pagoda_result_##line = (expr);                                   \
  if (!pagoda_result_##line.ok()) return pagoda_result_##line.status(); \
  lhs = std::move(pagoda_result_##line).value()
