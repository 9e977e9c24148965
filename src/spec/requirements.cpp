#include "spec/requirements.h"

#include "util/filesystem.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>
#include <string_view>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

// All that pip takes in a requirements file (pip 26's documentation, and what older versions took).
constexpr std::array<std::string_view, 24> options = {"-i",
                                                      "--index-url",
                                                      "--pypi-url",
                                                      "--extra-index-url",
                                                      "--no-index",
                                                      "-f",
                                                      "--find-links",
                                                      "--no-binary",
                                                      "--only-binary",
                                                      "--prefer-binary",
                                                      "--pre",
                                                      "--trusted-host",
                                                      "--use-feature",
                                                      "--require-hashes",
                                                      "-r",
                                                      "--requirement",
                                                      "-c",
                                                      "--constraint",
                                                      "-e",
                                                      "--editable",
                                                      "--process-dependency-links",
                                                      "--always-unzip",
                                                      "-Z",
                                                      "--no-use-wheel"};

std::string where(const RequirementLine& line) {
    return line.file.string() + ":" + std::to_string(line.number);
}

std::string_view trimmed(std::string_view text) {
    static constexpr std::string_view blanks = " \t\r\f\v";
    const auto start = text.find_first_not_of(blanks);
    if (start == std::string_view::npos) return {};
    return text.substr(start, text.find_last_not_of(blanks) - start + 1);
}

// A '#' begins a comment at the line's start or after a blank: in a URL it is a fragment.
std::string_view without_comment(std::string_view line) {
    for (std::size_t at = 0; at < line.size(); ++at)
        if (line[at] == '#' && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t'))
            return line.substr(0, at);
    return line;
}

bool is_utf8(std::string_view text, std::size_t& bad_line) {
    bad_line = 1;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const std::size_t length = byte < 0x80          ? 1
                                   : (byte >> 5U) == 6  ? 2
                                   : (byte >> 4U) == 14 ? 3
                                   : (byte >> 3U) == 30 ? 4
                                                        : 0;
        if (length == 0 || i + length > text.size()) return false;
        for (std::size_t k = 1; k < length; ++k)
            if ((static_cast<unsigned char>(text[i + k]) >> 6U) != 2) return false;
        if (byte == '\n') ++bad_line;
        i += length;
    }
    return true;
}

// pip replaces ${NAME} of upper case letters, digits and underscores where the variable is set.
std::string expand_variables(const std::string& text) {
    static const std::regex variable(R"(\$\{([A-Z0-9_]+)\})");
    std::string expanded;
    auto rest = text.cbegin();
    for (std::sregex_iterator match(text.begin(), text.end(), variable), end; match != end; ++match) {
        const char* value = std::getenv((*match)[1].str().c_str());
        expanded.append(rest, match->prefix().second);
        expanded.append(value == nullptr ? match->str() : std::string(value));
        rest = (*match)[0].second;
    }
    return expanded.append(rest, text.cend());
}

bool is_url(std::string_view text) {
    const auto colon = text.find("://");
    return colon != std::string_view::npos && colon > 0 && text.find('/') > colon;
}

/// "-r file", "-rfile", "--requirement=file" and "--requirement file" -> {"-r", "file"}.
std::pair<std::string, std::string> split_option(std::string_view text) {
    if (text.starts_with("--")) {
        const auto end = text.find_first_of("= \t");
        const auto value = end == std::string_view::npos ? std::string_view() : trimmed(text.substr(end + 1));
        return {std::string(text.substr(0, end)), std::string(value)};
    }
    return {std::string(text.substr(0, 2)),
            std::string(trimmed(text.substr(std::min<std::size_t>(2, text.size()))))};
}

class Reader {
public:
    Status read(const fs::path& file, const std::string& included_from) {
        std::error_code ignored;
        const fs::path real = fs::weakly_canonical(file, ignored);
        if (std::ranges::find(open_, real) != open_.end()) {
            std::string chain;
            for (const auto& one : open_)
                chain += one.string() + " -> ";
            return fail_input("the requirements include themselves", chain + real.string(), included_from,
                              "Remove one of the -r or -c lines.");
        }
        if (std::ranges::find(result.files, file) != result.files.end()) return {};
        auto content = read_file(file);
        if (!content) {
            content.error().fault = Fault::input;
            if (!included_from.empty()) {
                content.error().what = "cannot read '" + file.string() + "', which is included here";
                content.error().where = included_from;
            }
            return fail(std::move(content.error()));
        }
        result.files.push_back(file);
        open_.push_back(real);
        Status done = read_lines(file, *content);
        open_.pop_back();
        return done;
    }

    Requirements result;

private:
    Status read_lines(const fs::path& file, std::string_view content) {
        if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
        std::size_t bad_line = 0;
        if (!is_utf8(content, bad_line))
            return fail_input("this is not UTF-8 text", {}, file.string() + ":" + std::to_string(bad_line),
                              "Save the file as UTF-8.");
        std::string joined;
        std::size_t first = 0;
        for (std::size_t number = 1; !content.empty(); ++number) {
            const auto end = content.find('\n');
            auto line = content.substr(0, end);
            content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (joined.empty()) first = number;
            // A comment line ends a continuation, as pip has it.
            const bool comment = trimmed(line).starts_with('#');
            if (line.ends_with('\\') && !comment) {
                joined.append(line.substr(0, line.size() - 1));
                continue;
            }
            joined.append(comment ? std::string_view() : line);
            const auto text = trimmed(without_comment(joined));
            if (!text.empty())
                if (auto done =
                        take({.file = file, .number = first, .text = expand_variables(std::string(text))});
                    !done)
                    return done;
            joined.clear();
        }
        if (const auto text = trimmed(without_comment(joined)); !text.empty())
            return take({.file = file, .number = first, .text = expand_variables(std::string(text))});
        return {};
    }

    Status take(const RequirementLine& line) {
        result.lines.push_back(line);
        return line.text.starts_with('-') ? take_option(line) : check_requirement(line);
    }

    Status take_option(const RequirementLine& line) {
        const auto [name, value] = split_option(line.text);
        if (std::ranges::find(options, name) == options.end())
            return fail_input("pip knows no option '" + name + "' in a requirements file", {}, where(line),
                              "Remove it, or set it by pip's configuration or environment.");
        const bool include =
            name == "-r" || name == "--requirement" || name == "-c" || name == "--constraint";
        const bool editable = name == "-e" || name == "--editable";
        if ((include || editable) && value.empty())
            return fail_input("'" + name + "' needs a value", {}, where(line), {});
        if (include && !is_url(value)) return read(line.file.parent_path() / value, where(line));
        if (editable) {
            result.editable.push_back(value);
            return check_local(line, value);
        }
        return {};
    }

    // A local path must be there; what else a requirement may be is pip's to say, but this catches what
    // cannot be one.
    Status check_requirement(const RequirementLine& line) {
        const auto& text = line.text;
        const auto end = text.find_first_of(" \t;");
        const auto first = text.substr(0, end);
        if (is_url(text) || first.find("://") != std::string::npos) return {};
        if (first.starts_with('.') || first.find('/') != std::string::npos || first.ends_with(".whl"))
            return check_local(line, first);
        static const std::regex shape(
            R"(([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])\s*(\[[^\]]*\])?\s*(@.*|\(.*|[<>=!~].*|;.*|--.*)?)");
        if (std::regex_match(text, shape)) return {};
        return fail_input("not a requirement: '" + text + "'", {}, where(line),
                          "Write a package's name and, if needed, versions: `numpy>=1.26,<3`.");
    }

    Status check_local(const RequirementLine& line, const std::string& value) {
        if (is_url(value)) return {};
        auto path = value.substr(0, value.find('#'));
        // "dir[extra]" names extras of the project in dir.
        if (path.ends_with(']')) path = path.substr(0, path.rfind('['));
        std::error_code failed;
        if (fs::exists(line.file.parent_path() / path, failed)) return {};
        return fail_input("there is no file or directory '" + path + "'", {}, where(line),
                          "Local paths are taken relative to the directory of the requirements file.");
    }

    std::vector<fs::path> open_;
};

} // namespace

Result<Requirements> read_requirements(const fs::path& file) {
    Reader reader;
    if (auto done = reader.read(file, {}); !done) return fail(std::move(done.error()));
    return std::move(reader.result);
}

} // namespace containerize::spec
