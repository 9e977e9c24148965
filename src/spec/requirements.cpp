#include "spec/requirements.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "core/variables.h"
#include "spec/requirement_options.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/text_limits.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <utility>

namespace containerize::spec {

namespace {

std::string where(const RequirementLine& line) {
    return line.foreign.empty() ? line.file.string() + ":" + std::to_string(line.number) : line.foreign;
}

bool is_blank(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// A '#' starts a comment only at the start of the line or after a blank; elsewhere it may belong to a URL.
std::string_view without_comment(std::string_view line) {
    for (std::size_t at = 0; at < line.size(); ++at)
        if (line[at] == '#' && (at == 0 || is_blank(line[at - 1]))) return line.substr(0, at);
    return line;
}

/// Follows a line while its variables are expanded, and tells whether a value may hold a secret at its end. A
/// login is recognised without this, and a host is none.
class PlaceInLine {
public:
    /// Reads what was added to the line.
    void advance(std::string_view line) {
        for (; read_ < line.size(); ++read_)
            read_character(line);
    }

    [[nodiscard]] bool may_hold_secret(std::string_view value) const {
        const auto scheme = value.find("://");
        const bool is_remote = scheme != value.npos && !value.substr(0, scheme).ends_with("file");
        const bool is_in_url = part_ == Part::host || part_ == Part::path || part_ == Part::fragment;
        return is_in_url ? part_ == Part::path : is_remote || is_of_build_;
    }

private:
    /// Of the current word.
    enum class Part { word, local_url, host, path, fragment };

    void read_character(std::string_view line) {
        const char c = line[read_];
        const auto before = line.substr(word_, read_ - word_);
        if (std::string_view(" \t'\"").find(c) != std::string_view::npos) {
            part_ = Part::word;
            word_ = read_ + 1;
        } else if (part_ == Part::word && c == '/' && before.ends_with(":/")) {
            part_ = before.ends_with("file:/") ? Part::local_url : Part::host;
        } else if (part_ == Part::host && (c == '/' || c == '?')) {
            part_ = Part::path;
        } else if ((part_ == Part::host || part_ == Part::path) && c == '#') {
            part_ = Part::fragment;
        }
        const auto so_far = line.substr(0, read_ + 1);
        constexpr std::array<std::string_view, 3> of_builds = {"--config-setting", "-C", "-option"};
        is_of_build_ = is_of_build_ || std::ranges::any_of(of_builds, [so_far](std::string_view option) {
                           return so_far.ends_with(option);
                       });
    }

    std::size_t read_ = 0, word_ = 0; ///< where the unread text and the current word begin
    Part part_ = Part::word;
    bool is_of_build_ = false; ///< the line has an option of builds
};

/// Like pip, expands ${NAME} if the name has only upper-case letters, digits and underscores, and the
/// variable is set and not empty. The text ends early where it becomes longer than a line may be.
void expand_variables(std::string_view text, RequirementLine& line) {
    struct Known {
        std::string value;
        bool noted = false;
    };
    std::map<std::string, Known, std::less<>> variables;
    PlaceInLine place;
    auto& expanded = line.text;
    for (std::size_t at = 0; at < text.size() && expanded.size() <= longest_line;) {
        const auto end = text.substr(at).starts_with("${")
                             ? text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at + 2)
                             : std::string_view::npos;
        if (end != std::string_view::npos && text[end] == '}' && end > at + 2) {
            const auto name = text.substr(at + 2, end - at - 2);
            auto known = variables.find(name);
            if (known == variables.end())
                known = variables.emplace(name, Known{.value = named_variable(std::string(name))}).first;
            auto& [value, noted] = known->second;
            if (!value.empty()) {
                place.advance(expanded);
                if (!noted && place.may_hold_secret(value)) {
                    line.variables.emplace_back(name, value);
                    noted = true;
                }
                expanded += value;
                at = end + 1;
                continue;
            }
        }
        expanded += text[at++];
    }
}

/// Each takes stack space.
constexpr std::size_t deepest_include = 100;

/// What all files of requirements may still have together.
struct Budget {
    std::size_t lines = most_packages, bytes = largest_text;
};

/// Joins continued lines and trims them. Each gets the number of its first line.
Result<std::vector<RequirementLine>> logical_lines(std::string_view text, const fs::path& file,
                                                   Budget& budget) {
    std::vector<RequirementLine> result;
    std::string joined;
    std::size_t number = 0;
    std::size_t first = 0;
    const auto finish = [&]() -> Status {
        const auto content = trimmed(without_comment(joined));
        if (!content.empty()) {
            RequirementLine line{.file = file, .number = first, .text = {}, .written = std::string(content)};
            expand_variables(content, line);
            if (line.text.size() > longest_line) return too_large(where(line), "1 MiB for a line");
            if (budget.lines == 0) return too_large(where(line), "50,000 requirements");
            if (budget.bytes < line.text.size()) return too_large(where(line), "16 MiB");
            --budget.lines;
            budget.bytes -= line.text.size();
            result.push_back(std::move(line));
        }
        joined.clear();
        first = 0;
        return {};
    };
    for (auto line : split_lines(text)) {
        ++number;
        if (first == 0) first = number;
        // Like pip: a comment line ends a continuation, even if it ends in a backslash.
        const bool comment = trimmed(line).starts_with('#');
        const bool continues = line.ends_with('\\') && !comment;
        if (continues) line.remove_suffix(1);
        if (comment) joined += ' ';
        joined += line;
        if (!continues) TRY(finish());
    }
    TRY(finish());
    return result;
}

/// "https://...", "git+ssh://..." or "file:...".
bool is_url(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const auto scheme = text.substr(0, colon);
    const bool letters = std::ranges::all_of(
        scheme, [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; });
    return letters && (text.substr(colon).starts_with("://") || scheme == "file");
}

bool is_archive(std::string_view name) {
    constexpr std::array endings = {".whl",     ".zip", ".tar.gz", ".tgz", ".tar",
                                    ".tar.bz2", ".tbz", ".tar.xz", ".txz"};
    return std::ranges::any_of(endings, [name](std::string_view ending) { return name.ends_with(ending); });
}

bool looks_like_path(std::string_view text) {
    return text.starts_with('.') || text.find('/') != std::string_view::npos;
}

/// The part of a line before its first option, as pip splits it.
std::string_view before_options(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at)
        if (text[at] == '-' && (at == 0 || text[at - 1] == ' ')) return text.substr(0, at);
    return text;
}

/// The length of the name and "[extras]" at the start of a requirement; 0 if there is no name.
std::size_t name_length(std::string_view text) {
    const auto inner = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
    };
    auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, inner) - text.begin());
    const auto alphanumeric = [&](std::size_t at) {
        return std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (end == 0 || !alphanumeric(0) || !alphanumeric(end - 1)) return 0;
    while (end < text.size() && is_blank(text[end]))
        ++end;
    if (end < text.size() && text[end] == '[') {
        const auto close = text.find(']', end);
        return close == std::string_view::npos ? 0 : close + 1;
    }
    return end;
}

/// A single condition: ">=1.26".
bool is_condition(std::string_view text) {
    constexpr std::array<std::string_view, 8> operators = {"===", "==", "!=", "~=", "<=", ">=", "<", ">"};
    const auto* found =
        std::ranges::find_if(operators, [text](std::string_view one) { return text.starts_with(one); });
    if (found == operators.end()) return false;
    const auto version = trimmed(text.substr(found->size()));
    // "===" compares arbitrary strings.
    constexpr std::string_view of_versions =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.*+!_-";
    return !version.empty() && (*found == "===" ? version.find_first_of(" \t")
                                                : version.find_first_not_of(of_versions)) == version.npos;
}

/// Conditions such as ">=1.26, <3", optionally in parentheses.
bool are_conditions(std::string_view text) {
    if (text.starts_with('(') && text.ends_with(')')) text = trimmed(text.substr(1, text.size() - 2));
    return std::ranges::all_of(split(text, ','), [](std::string_view one) {
        one = trimmed(one);
        return one.empty() || is_condition(one);
    });
}

/// Whether `rest` can follow a name: nothing, a marker, a URL or conditions.
bool may_follow_name(std::string_view rest) {
    if (rest.find("${") != rest.npos) return true; // an unset variable: leave it to pip
    if (!rest.starts_with('@')) return are_conditions(rest);
    const auto place = trimmed(rest.substr(1));
    return !place.empty() && !place.starts_with('@');
}

/// The package that a requirement names; empty if it has a marker or is a path or URL without a name.
std::string requested_name(std::string_view text) {
    const auto requirement = trimmed(before_options(text));
    if (is_url(requirement) || requirement.find(';') != requirement.npos) return {};
    const auto length = name_length(requirement);
    const auto rest = trimmed(requirement.substr(length));
    if (length == 0 || !may_follow_name(rest) || (!rest.starts_with('@') && is_archive(requirement)))
        return {};
    const auto name = requirement.substr(0, length);
    return std::string(name.substr(0, name.find_first_of(" \t[")));
}

class RequirementsFileReader {
public:
    explicit RequirementsFileReader(fs::path directory) : directory_(std::move(directory)) {}

    Status read(const fs::path& file, const std::string& included_from) {
        std::error_code ignored;
        const fs::path real = fs::weakly_canonical(file, ignored);
        if (const auto begin = std::ranges::find(open_, real); begin != open_.end()) {
            std::string chain;
            for (auto one = begin; one != open_.end(); ++one)
                chain += one->string() + " -> ";
            return fail_input("the requirements file includes itself", chain + real.string(), included_from,
                              "Remove one of these -r or -c lines.");
        }
        if (std::ranges::find(known_, real) != known_.end()) return {};
        if (open_.size() == deepest_include)
            return fail_input("files are included too deeply",
                              "at most " + std::to_string(deepest_include) + " may include one another",
                              included_from);
        auto read_content = read_input_file(file, largest_text);
        if (!read_content && !included_from.empty()) {
            auto& error = read_content.error();
            error.what = "cannot read '" + file.string() + "', which is included here";
            error.where = included_from;
            error.hint = "Paths of included files are relative to the including file.";
        }
        auto content = TRY(std::move(read_content));
        auto text = TRY(decode(content, file));
        result.files.push_back(file);
        known_.push_back(real);
        // With the length, moving text from one file to the next changes the digest.
        digest.update(content.data(), content.size());
        const auto length = std::to_string(content.size()) + "\n";
        digest.update(length.data(), length.size());

        open_.push_back(real);
        auto lines = TRY(logical_lines(text, file, budget_));
        for (auto& line : lines) {
            line.constraint = are_constraints_;
            if (!are_constraints_) line.name = requested_name(line.text);
            result.lines.push_back(line);
            TRY(check(line));
        }
        open_.pop_back();
        return {};
    }

    Status check_foreign(const Located& foreign) {
        auto lines = TRY(logical_lines(foreign.text, directory_ / "", budget_));
        for (auto& line : lines) {
            line.foreign = foreign.where;
            line.name = requested_name(line.text);
            result.lines.push_back(line);
            TRY(check(line));
        }
        return {};
    }

    Requirements result;
    Sha256 digest;

private:
    Status check(const RequirementLine& line) {
        const auto requirement = trimmed(before_options(line.text));
        const auto words = split_words(std::string_view(line.text).substr(before_options(line.text).size()));
        if (!words)
            return fail_input("a quote is not closed in '" + line.written + "'", {}, where(line),
                              "Options follow shell rules. Write a literal quote as \\'.");
        for (std::size_t at = 0; at < words->size(); ++at)
            // pip ignores -r and -e after a requirement.
            TRY(check_option(line, *words, at, requirement.empty()));
        return requirement.empty() ? Status() : check_requirement(line, requirement);
    }

    /// Advances `at` to the option's value if that is a separate word.
    Status check_option(const RequirementLine& line, const std::vector<std::string>& words, std::size_t& at,
                        bool alone) {
        const std::string& word = words[at];
        if (!word.starts_with('-')) {
            // What comes from a variable may be a secret.
            const bool is_written = line.written.find(word) != std::string::npos;
            log::warn(where(line) + ": pip ignores " + (is_written ? "'" + word + "'" : "a word") +
                      " after an option");
            return {};
        }
        const auto* option = find_option(word);
        if (option == nullptr)
            return fail_input("pip has no option '" + word.substr(0, word.find('=')) +
                                  "' for requirements files",
                              {}, where(line), "Remove it, or set it in pip's configuration.");
        if (!option->takes_value) return {};
        std::string value(attached_value(word));
        if (value.empty() && at + 1 < words.size()) value = words[++at];
        if (value.empty())
            return fail_input("'" + word + "' needs a value", {}, where(line),
                              "Write the value after the option.");
        if (!alone) return {};
        if (option->kind == OptionKind::include && !is_url(value)) {
            const bool outer =
                std::exchange(are_constraints_, are_constraints_ || option->name == "--constraint");
            auto done = read((line.file.parent_path() / value).lexically_normal(), where(line));
            are_constraints_ = outer;
            return done;
        }
        if (option->kind == OptionKind::editable) {
            result.editable.push_back(value);
            return value.find("://") != std::string::npos || is_url(value) ? Status()
                                                                           : check_local(line, value);
        }
        return {};
    }

    /// Rejects only what cannot be a requirement; everything else is left to pip.
    Status check_requirement(const RequirementLine& line, std::string_view requirement) {
        if (is_url(requirement)) return {};
        const auto named = trimmed(requirement.substr(0, requirement.find(';')));
        const auto length = name_length(named);
        const auto rest = trimmed(named.substr(length));
        const bool by_name = length > 0 && may_follow_name(rest);
        // "name @ dir/file.whl" ends like an archive, but starts with a name.
        if (by_name && (rest.starts_with('@') || !is_archive(named))) return {};
        if (looks_like_path(named) || is_archive(named)) return check_local(line, std::string(named));
        const bool conda = length > 0 && rest.starts_with('=');
        return fail_input(
            "invalid requirement: '" + line.written + "'", {}, where(line),
            conda ? "pip compares versions with `==`. A single `=` is conda syntax."
                  : "Write a package name and optional version conditions, such as `numpy>=1.26,<3`.");
    }

    Status check_local(const RequirementLine& line, const std::string& value) {
        std::error_code ignored;
        const auto exists = [&](const std::string& path) { return fs::exists(directory_ / path, ignored); };
        // "dir[extra]" names extras of the project in dir, "dir#egg=name" its name.
        const auto path = value.substr(0, std::min(value.find('#'), value.rfind('[')));
        if (exists(value) || exists(path)) return {};
        return fail_input("there is no file or directory '" + path + "'", {}, where(line),
                          "Local paths are relative to " + directory_.string() + ".");
    }

    fs::path directory_;          ///< working directory of the installer, for local paths
    std::vector<fs::path> known_; ///< canonical paths of all files read
    bool are_constraints_ = false;
    std::vector<fs::path> open_; ///< the current chain of includes
    Budget budget_;
};

} // namespace

Result<Requirements> read_requirements(const fs::path& file, const fs::path& working_directory) {
    RequirementsFileReader reader(working_directory);
    TRY(reader.read(file, {}));
    reader.result.sha256 = reader.digest.finish();
    return std::move(reader.result);
}

Result<Requirements> requirements_of(ConvertedFile converted, const fs::path& file) {
    RequirementsFileReader reader(file.parent_path());
    for (const auto& line : converted.lines)
        TRY(reader.check_foreign(line));
    reader.result.files = {file};
    reader.result.converted = std::move(converted);
    return std::move(reader.result);
}

Result<std::vector<fs::path>> check_requirements(const std::vector<Located>& lines,
                                                 const fs::path& directory) {
    RequirementsFileReader reader(directory);
    for (const auto& line : lines)
        TRY(reader.check_foreign(line));
    return std::move(reader.result.files);
}

} // namespace containerize::spec
