// Exceptions and checks. Two families: LAMINA_CHECK* for the caller's faults (typed, named
// operator, what was seen, what is accepted) and LAMINA_INTERNAL_CHECK for our own.
#pragma once

#include <concepts>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "lamina/core/scalar_type.h"

namespace lamina {

enum class ErrorKind : uint8_t {
  Runtime,
  Index,
  Type,
  Value,
  NotImplemented,
  OutOfMemory,
  Internal,
  Overflow,
  LinAlg,  // a matrix that a factorization or an iteration fails on
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
};

namespace detail {
void append(std::string& out, std::string_view v);
void append(std::string& out, const char* v);
void append(std::string& out, bool v);
void append(std::string& out, double v);
void append(std::string& out, long long v);
void append(std::string& out, unsigned long long v);
void append(std::string& out, ScalarType v);
void append(std::string& out, std::span<const int64_t> v);  // [2, 3]
template <std::integral T>
void append(std::string& out, T v) {
  if constexpr (std::is_same_v<T, bool>)
    append(out, static_cast<bool>(v));
  else if constexpr (std::is_signed_v<T>)
    append(out, static_cast<long long>(v));
  else
    append(out, static_cast<unsigned long long>(v));
}
}  // namespace detail

// Concatenates its arguments; sizes print as [2, 3].
template <class... Args>
std::string str(const Args&... args) {
  using detail::append;  // types of ours bring their own, beside the type
  std::string out;
  (append(out, args), ...);
  return out;
}

[[noreturn]] void raise(ErrorKind kind, std::string message);
[[noreturn]] void raise_internal(const char* file, int line, const char* condition,
                                 std::string message);

}  // namespace lamina

// The message is built only when the check fails.
#define LAMINA_CHECK_KIND(kind, cond, ...)                 \
  do {                                                     \
    if (!(cond)) [[unlikely]]                              \
      [&]() __attribute__((noinline, cold)) {              \
        ::lamina::raise(kind, ::lamina::str(__VA_ARGS__)); \
      }();                                                 \
  } while (0)
#define LAMINA_CHECK(cond, ...) LAMINA_CHECK_KIND(::lamina::ErrorKind::Runtime, cond, __VA_ARGS__)
#define LAMINA_CHECK_INDEX(cond, ...) \
  LAMINA_CHECK_KIND(::lamina::ErrorKind::Index, cond, __VA_ARGS__)
#define LAMINA_CHECK_TYPE(cond, ...) LAMINA_CHECK_KIND(::lamina::ErrorKind::Type, cond, __VA_ARGS__)
#define LAMINA_CHECK_VALUE(cond, ...) \
  LAMINA_CHECK_KIND(::lamina::ErrorKind::Value, cond, __VA_ARGS__)
#define LAMINA_CHECK_IMPLEMENTED(cond, ...) \
  LAMINA_CHECK_KIND(::lamina::ErrorKind::NotImplemented, cond, __VA_ARGS__)
#define LAMINA_INTERNAL_CHECK(cond, ...)                                               \
  do {                                                                                 \
    if (!(cond)) [[unlikely]]                                                          \
      ::lamina::raise_internal(__FILE__, __LINE__, #cond, ::lamina::str(__VA_ARGS__)); \
  } while (0)
