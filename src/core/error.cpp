#include "core/error.h"

#include "core/printable.h"

#include <cstring>

#include <sys/resource.h>

namespace containerize {

namespace {

std::string file_size_hint() {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
    return "The file size limit of this session is " + std::to_string(limit.rlim_cur) +
           " bytes. Raise it with `ulimit -f unlimited`, or ask the site's support.";
}

} // namespace

std::unexpected<Error> fail_errno(std::string what, std::string where, int error_number) {
    return fail({.what = std::move(what),
                 .why = std::strerror(error_number),
                 .where = std::move(where),
                 .hint = error_number == EFBIG ? file_size_hint() : std::string()});
}

std::unexpected<Error> fail_input(std::string what, std::string why, std::string where, std::string hint) {
    return fail({.what = std::move(what),
                 .why = std::move(why),
                 .where = std::move(where),
                 .hint = std::move(hint),
                 .fault = Fault::input});
}

std::string what_and_why(const Error& error) {
    if (error.why.empty()) return error.what;
    // A reason of several lines starts on a line of its own.
    return error.what + (error.why.starts_with('\n') ? ":" : ": ") + error.why;
}

namespace {

/// A message may quote a malformed file whose only line has a megabyte. No word is cut: a part of a secret
/// would not be recognised as such.
std::string with_short_lines(std::string_view text) {
    constexpr std::size_t longest = 5000; // more than a path
    std::string shortened;
    for (;;) {
        const auto line = text.substr(0, text.find('\n'));
        const auto whole_words = line.substr(0, longest).find_last_of(" '\"");
        shortened.append(line.size() <= longest ? line : line.substr(0, whole_words + 1));
        if (line.size() > longest) shortened += "...";
        if (line.size() == text.size()) return shortened;
        shortened += '\n';
        text.remove_prefix(line.size() + 1);
    }
}

} // namespace

std::string to_string(const Error& error) {
    auto text = (error.where.empty() ? "" : error.where + ": ") + what_and_why(error);
    if (!error.hint.empty()) text += "\n" + error.hint;
    return printable(with_short_lines(text));
}

} // namespace containerize
