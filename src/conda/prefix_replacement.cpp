#include "conda/prefix_replacement.h"

#include "core/text.h"

#include <algorithm>
#include <utility>

namespace containerize::conda {

namespace {

/// Linux reads at most this many bytes (one less before 5.1).
constexpr std::size_t longest_shebang = 127;
/// Longer texts without a newline are taken to have no first line.
constexpr std::size_t longest_first_line = std::size_t{64} << 10U;

bool is_python(std::string_view interpreter) {
    return interpreter.substr(interpreter.rfind('/') + 1).starts_with("python");
}

} // namespace

std::string shebang(std::string_view interpreter, std::string_view arguments) {
    const std::string more = arguments.empty() ? "" : " " + std::string(arguments);
    const auto line = "#!" + std::string(interpreter) + more;
    if (line.size() <= longest_shebang && interpreter.find_first_of(" \t") == std::string_view::npos)
        return line + "\n";
    // To sh the second line executes the interpreter; to Python, which reads the file next, it starts a
    // string that the third line ends.
    if (is_python(interpreter)) {
        std::string quoted = "\"";
        for (const char c : interpreter) {
            if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
            quoted += c;
        }
        return "#!/bin/sh\n'''exec' " + quoted + "\"" + more + " \"$0\" \"$@\"\n' '''\n";
    }
    // Other interpreters cannot skip such lines. Every launch puts the environment's bin first on PATH.
    return "#!/usr/bin/env -S " + std::string(interpreter.substr(interpreter.rfind('/') + 1)) + more + "\n";
}

PrefixReplacement::PrefixReplacement(FileMode mode, std::string placeholder, std::string prefix,
                                     std::string path)
    : mode_(mode), placeholder_(std::move(placeholder)), prefix_(std::move(prefix)), path_(std::move(path)) {}

Result<std::string> PrefixReplacement::take(std::string_view content) {
    pending_ += content;
    return replaced(false);
}

Result<std::string> PrefixReplacement::finish() {
    return replaced(true);
}

Result<std::string> PrefixReplacement::replaced(bool at_end) {
    std::string result;
    at_ = 0;
    if (mode_ == FileMode::text) {
        if (first_line_ && !take_first_line(at_end, result)) return result;
        replace_in_text(result);
    } else {
        TRY(replace_in_binary(result));
    }
    // The end of the input may be the beginning of a placeholder.
    const auto rest = pending_.size() - at_;
    const auto kept = at_end ? 0 : std::min(rest, placeholder_.size() - 1);
    result.append(pending_, at_, rest - kept);
    pending_.erase(0, pending_.size() - kept);
    if (at_end) result.append(missing_bytes_, '\0');
    return result;
}

/// Returns false if the first line is incomplete.
bool PrefixReplacement::take_first_line(bool at_end, std::string& result) {
    const auto end = pending_.find('\n');
    const bool could_be = pending_.starts_with("#!") || std::string_view("#!").starts_with(pending_);
    if (could_be && end == pending_.npos && !at_end && pending_.size() < longest_first_line) return false;
    first_line_ = false;
    if (!pending_.starts_with("#!") || (end == pending_.npos && !at_end)) return true;
    auto line = pending_.substr(0, end);
    replace_all(line, placeholder_, prefix_);
    at_ = end == pending_.npos ? pending_.size() : end + 1;
    result = executable(line);
    if (result.empty()) result = line + (end == pending_.npos ? "" : "\n");
    return true;
}

/// A first line that the kernel can execute; empty if the interpreter is not below the prefix.
std::string PrefixReplacement::executable(std::string_view line) const {
    line.remove_prefix(2);
    while (line.starts_with(' '))
        line.remove_prefix(1);
    if (!line.starts_with(prefix_)) return {};
    // The prefix may contain blanks, so the interpreter ends at the first blank after it.
    const auto blank = line.find_first_of(" \t", prefix_.size());
    const auto interpreter = line.substr(0, blank);
    auto arguments = blank == line.npos ? std::string_view() : line.substr(blank + 1);
    while (arguments.ends_with('\r') || arguments.ends_with(' '))
        arguments.remove_suffix(1);
    return shebang(interpreter, arguments);
}

void PrefixReplacement::replace_in_text(std::string& result) {
    for (std::size_t hit = 0; (hit = pending_.find(placeholder_, at_)) != pending_.npos;) {
        result.append(pending_, at_, hit - at_).append(prefix_);
        at_ = hit + placeholder_.size();
    }
}

Status PrefixReplacement::replace_in_binary(std::string& result) {
    for (;;) {
        const auto rest = std::string_view(pending_).substr(at_);
        const auto string = in_string_ ? rest.substr(0, rest.find('\0')) : rest;
        const auto hit = string.find(placeholder_);
        if (hit == string.npos) {
            if (!in_string_ || string.size() == rest.size()) return {};
            result.append(string).append(missing_bytes_, '\0');
            at_ += string.size();
            in_string_ = false;
            missing_bytes_ = 0;
            continue;
        }
        if (prefix_.size() > placeholder_.size())
            return fail_input(
                "the prefix is too long for this package",
                "its binary file '" + path_ + "' has room for " + std::to_string(placeholder_.size()) +
                    " bytes, and the prefix has " + std::to_string(prefix_.size()),
                prefix_, "Choose a prefix of at most " + std::to_string(placeholder_.size()) + " bytes.");
        result.append(string.substr(0, hit)).append(prefix_);
        at_ += hit + placeholder_.size();
        in_string_ = true;
        missing_bytes_ += placeholder_.size() - prefix_.size();
    }
}

} // namespace containerize::conda
