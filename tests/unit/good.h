// Takes values and errors that must be there, in the thread of a test.
#pragma once

#include "core/error.h"

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace containerize::test {

[[noreturn]] inline void end_test(const std::string& why, const std::source_location& where) {
    ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << why;
    throw std::runtime_error(why);
}

/// The value of a Result or an optional. Where there is none, the test fails and ends.
template<class T>
auto good(T result, const std::source_location& where = std::source_location::current()) {
    static_assert(requires { result.has_value(); });
    if (!result) {
        std::string why = "there is no value";
        if constexpr (requires { to_string(result.error()); }) why = to_string(result.error());
        end_test(why, where);
    }
    return *std::move(result);
}

/// The error of a Result. Where it has a value, the test fails and ends.
template<class T>
auto error_of(const T& result, const std::source_location& where = std::source_location::current()) {
    if (result) end_test("there is no error", where);
    return result.error();
}

} // namespace containerize::test
