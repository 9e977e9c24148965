#include "conda/prefix_replacement.h"

#include "util/text.h"

#include <algorithm>
#include <utility>

namespace containerize::conda {

namespace {

/// What Linux reads of a first line; before 5.1 one byte less counted.
constexpr std::size_t longest_shebang = 127;

bool is_python(std::string_view interpreter) {
    return interpreter.substr(interpreter.rfind('/') + 1).starts_with("python");
}

} // namespace

std::string shebang(std::string_view interpreter, std::string_view arguments) {
    std::string line =
        "#!" + std::string(interpreter) + (arguments.empty() ? "" : " " + std::string(arguments));
    if (line.size() <= longest_shebang && interpreter.find_first_of(" \t") == std::string_view::npos)
        return line + "\n";
    const std::string more = arguments.empty() ? "" : " " + std::string(arguments);
    // For sh the second line executes the interpreter. For Python, which reads the file next, it is the
    // beginning of a string that the third line ends.
    if (is_python(interpreter)) {
        std::string quoted = "\"";
        for (const char c : interpreter) {
            if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
            quoted += c;
        }
        return "#!/bin/sh\n'''exec' " + quoted + "\"" + more + " \"$0\" \"$@\"\n' '''\n";
    }
    // Others would choke on such lines. The environment's bin comes first on PATH in every launch.
    return "#!/usr/bin/env -S " + std::string(interpreter.substr(interpreter.rfind('/') + 1)) + more + "\n";
}

std::string replace_in_text(std::string_view content, std::string_view placeholder, std::string_view prefix) {
    std::string text(content);
    const bool had_shebang = text.starts_with("#!");
    replace_all(text, placeholder, prefix);
    if (!had_shebang) return text;
    const auto end = std::min(text.find('\n'), text.size());
    auto line = std::string_view(text).substr(2, end - 2);
    while (line.starts_with(' '))
        line.remove_prefix(1);
    // The prefix may have blanks: the interpreter ends at the first one after it.
    const auto start = line.starts_with(prefix) ? prefix.size() : 0;
    const auto blank = line.find_first_of(" \t", start);
    const auto interpreter = line.substr(0, blank);
    auto arguments = blank == line.npos ? std::string_view() : line.substr(blank + 1);
    if (start == 0) return text; // not ours
    while (arguments.ends_with('\r') || arguments.ends_with(' '))
        arguments.remove_suffix(1);
    const auto replaced = shebang(interpreter, arguments);
    return replaced + text.substr(std::min(end + 1, text.size()));
}

Result<std::string> replace_in_binary(std::string content, std::string_view placeholder,
                                      std::string_view prefix, const std::string& path) {
    if (content.find(placeholder) == std::string::npos) return content;
    if (prefix.size() > placeholder.size())
        return fail_input("the prefix is too long for this package",
                          "its binary '" + path + "' has room for " + std::to_string(placeholder.size()) +
                              " bytes, and the prefix has " + std::to_string(prefix.size()),
                          std::string(prefix),
                          "Choose a prefix of at most " + std::to_string(placeholder.size()) + " bytes.");
    for (std::size_t at = 0; (at = content.find(placeholder, at)) != std::string::npos;) {
        const auto end = std::min(content.find('\0', at), content.size());
        std::string string = content.substr(at, end - at);
        replace_all(string, placeholder, prefix);
        string.resize(end - at, '\0');
        content.replace(at, end - at, string);
        at = end;
    }
    return content;
}

} // namespace containerize::conda
