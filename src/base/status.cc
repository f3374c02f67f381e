#include "pagoda/status.h"

namespace pagoda {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kDataLoss: return "malformed data";
    case StatusCode::kUnimplemented: return "not supported";
    case StatusCode::kResourceExhausted: return "resource exhausted";
    case StatusCode::kFailedPrecondition: return "failed precondition";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kInternal: return "internal error";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(status_code_name(code())) + ": " + std::string(message());
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  return {code(), std::string(context) + ": " + std::string(message())};
}

}  // namespace pagoda
