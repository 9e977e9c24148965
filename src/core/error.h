// Errors are values. Functions return them up to the top level of a program (the command line, the launcher,
// the session program), which prints them. Warnings, which end nothing, may be printed anywhere.
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

namespace containerize {

/// The kind of a failure, which decides the exit code.
enum class Fault {
    failure, ///< something that should have worked did not: exit code 1
    input,   ///< usage, or a file or value that the user gave: exit code 2
    engine,  ///< the native engine cannot run this here, but another may: exit code 1 if there is none
};

/// One failure, in the words that the user will read:
///   containerize: <where>: <what>: <why>
///   <hint>
/// (A member with `= {}` may be left out of an initialiser without a warning of g++.)
struct Error {
    std::string what;       ///< what could not be done: "cannot write the image"
    std::string why = {};   ///< the reason: "No space left on device"; may be empty
    std::string where = {}; ///< "file" or "file:line" that the error is about; may be empty
    std::string hint = {};  ///< what the user can do; may be empty, may have several lines
    Fault fault = Fault::failure;
};

template<class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> fail(Error error) {
    return std::unexpected(std::move(error));
}

/// The value of a Result, or nothing of a Status; the surrounding function returns its error. It is a whole
/// statement or the right side of one, because what else the statement has computed would be lost:
///     auto image = TRY(open_image(path));
///     TRY(check_image(image));
#define TRY(...)                                                                                             \
    __extension__({                                                                                          \
        auto&& result_ = (__VA_ARGS__);                                                                      \
        if (!result_) [[unlikely]]                                                                           \
            return std::unexpected(std::forward<decltype(result_)>(result_).error());                        \
        *std::forward<decltype(result_)>(result_);                                                           \
    })

/// A failed system call; `error_number` is its errno.
std::unexpected<Error> fail_errno(std::string what, std::string where = {}, int error_number = errno);

/// A mistake in the user's input (exit code 2).
std::unexpected<Error> fail_input(std::string what, std::string why = {}, std::string where = {},
                                  std::string hint = {});

/// "what: why", for the reason of another error.
std::string what_and_why(const Error& error);

/// The message as printed, without the program's name and without a final newline.
std::string to_string(const Error& error);

} // namespace containerize
