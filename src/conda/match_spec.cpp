#include "conda/match_spec.h"

#include "core/text.h"
#include "core/url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace containerize::conda {

namespace {

constexpr std::size_t longest_spec = 4096;
constexpr std::string_view of_keys = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

class Parser {
public:
    Parser(std::string_view given, UnknownKeys unknown_keys) : given_(given), unknown_keys_(unknown_keys) {
        spec_.text = without_credentials_within(given);
    }

    Result<MatchSpec> parse() {
        std::string_view rest = trimmed(given_);
        if (rest.empty()) return refuse("it is empty");
        if (rest.size() > longest_spec) return refuse("it is too long");
        if (std::ranges::any_of(rest, [](unsigned char c) { return c < 0x20 && c != '\t'; }))
            return refuse("it contains a control character");
        if (is_package(rest)) return package(rest);
        // A comment, as `conda list` writes it.
        if (const auto comment = rest.find('#'); comment != rest.npos)
            rest = trimmed(rest.substr(0, comment));
        if (rest.ends_with(']')) TRY(brackets(rest));
        TRY(channel(rest));
        TRY(name_and_version(rest));
        return spec_;
    }

private:
    std::unexpected<Error> refuse(std::string why, std::string hint = {}) const {
        return fail_input("invalid package specification: '" + spec_.text.substr(0, 200) + "'",
                          std::move(why), {}, std::move(hint));
    }

    static bool is_package(std::string_view text) {
        const auto path = text.substr(0, text.find('#'));
        const bool archive = path.ends_with(".conda") || path.ends_with(".tar.bz2");
        return archive && path.find('/') != path.npos && path.find_first_of("[ ") == path.npos;
    }

    /// The URL or path of a package, optionally followed by "#" and a checksum.
    Result<MatchSpec> package(std::string_view text) {
        const auto mark = text.find('#');
        if (mark != text.npos) {
            auto digest = text.substr(mark + 1);
            text = text.substr(0, mark);
            for (const std::string_view start : {"sha256:", "sha256="})
                if (digest.starts_with(start)) digest.remove_prefix(start.size());
            if (is_hex(lower(digest), 32))
                spec_.md5 = lower(digest);
            else if (is_hex(lower(digest), 64))
                spec_.sha256 = lower(digest);
            else
                return refuse("the text after '#' is not an md5 or sha256 checksum");
        }
        spec_.url = text;
        const auto slash = text.rfind('/');
        spec_.file_name = text.substr(slash + 1);
        const auto parts = parse_file_name(spec_.file_name);
        if (!parts) return refuse("its file name does not have the form NAME-VERSION-BUILD");
        spec_.name = parts->name;
        auto version = VersionSpec::parse("==" + parts->version);
        auto build = StringMatch::parse(parts->build);
        if (!version || !build) return refuse("its file name does not have the form NAME-VERSION-BUILD");
        spec_.version = std::move(*version);
        spec_.build = std::move(*build);
        const auto directory = text.substr(0, slash);
        const auto subdir = directory.substr(directory.rfind('/') + 1);
        if (is_subdir(subdir) && subdir.size() < directory.size()) {
            spec_.subdir = subdir;
            spec_.channel = directory.substr(0, directory.size() - subdir.size() - 1);
        }
        return spec_;
    }

    /// Whether `text` does not end inside brackets.
    static bool is_closed(std::string_view text) {
        const auto open = text.rfind('[');
        return open == text.npos || text.find(']', open) != text.npos;
    }

    /// Whether `text` can stand before "::", also after its credentials are removed.
    static bool is_channel(const std::string& text) {
        return std::ranges::all_of(std::array{text, without_credentials(text)}, [](std::string_view one) {
            return !one.empty() && one.find("::") == one.npos && !one.ends_with(':') && is_closed(one);
        });
    }

    /// Whether `text` looks like a platform, including newer ones that is_subdir() does not know.
    static bool is_platform(std::string_view text) {
        return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == text.npos;
    }
    // The messages do not quote the text, which may hold a secret.
    static constexpr const char* no_channel = "invalid channel";
    static constexpr const char* no_platform = "invalid platform (linux-64 is a valid one)";

    /// The position of "[KEY=", otherwise of the first '['. Names, values, "channel[subdir]::" and IPv6
    /// addresses may contain brackets, too.
    static std::size_t start_of_attributes(std::string_view text) {
        const auto mark = text.substr(0, text.find_first_of("'\"")).find("::");
        const bool has_channel = mark != text.npos && is_closed(text.substr(0, mark));
        const auto first = text.find('[', has_channel ? mark : 0);
        for (auto open = first; open != text.npos; open = text.find('[', open + 1)) {
            const auto inner = trimmed(text.substr(open + 1));
            const auto key_end = inner.find_first_not_of(of_keys);
            if (key_end != inner.npos && key_end > 0 && trimmed(inner.substr(key_end)).starts_with('='))
                return open;
        }
        return first;
    }

    /// Parses "[version='>=1',build=*cuda*]" at the end of `rest` and removes it.
    Status brackets(std::string_view& rest) {
        const auto open = start_of_attributes(rest);
        if (open == rest.npos) return refuse("a '[' is missing");
        std::string_view inner = rest.substr(open + 1, rest.size() - open - 2);
        rest = trimmed(rest.substr(0, open));
        while (!(inner = trimmed(inner)).empty()) {
            const auto equals = inner.find('=');
            if (equals == inner.npos) return refuse("each part in brackets must be KEY=VALUE");
            const auto key = lower(trimmed(inner.substr(0, equals)));
            inner = trimmed(inner.substr(equals + 1));
            std::string_view value;
            if (!inner.empty() && (inner.front() == '\'' || inner.front() == '"')) {
                const auto end = inner.find(inner.front(), 1);
                if (end == inner.npos) return refuse("a quotation mark is missing");
                value = inner.substr(1, end - 1);
                inner = trimmed(inner.substr(end + 1));
                if (!inner.empty() && inner.front() != ',')
                    return refuse("a ',' is missing between two parts in brackets");
            } else {
                const auto end = std::min(end_of_value(inner), inner.size());
                value = trimmed(inner.substr(0, end));
                inner = inner.substr(end);
            }
            if (inner.starts_with(',')) inner.remove_prefix(1);
            TRY(attribute(key, trimmed(value)));
        }
        return {};
    }

    /// A value ends at a comma that is followed by KEY=: in "version=>=1,<2,build=*" at the second one.
    static std::size_t end_of_value(std::string_view text) {
        for (auto comma = text.find(','); comma != text.npos; comma = text.find(',', comma + 1)) {
            const auto after = trimmed(text.substr(comma + 1));
            const auto word = after.find_first_not_of(of_keys);
            if (word != after.npos && word > 0 && after[word] == '=' &&
                after.substr(word).find_first_not_of('=') == 1)
                return comma;
        }
        return text.npos;
    }

    Status attribute(const std::string& key, std::string_view value) {
        if (value.empty()) return refuse("'" + key + "' has no value");
        if (value.find('\'') != value.npos && value.find('"') != value.npos)
            return refuse("'" + key + "' contains both kinds of quotation marks");
        if (key == "channel" && !is_channel(std::string(value))) return refuse(no_channel);
        if (key == "subdir" && !is_platform(value)) return refuse(no_platform);
        const auto text_fields = std::to_array<std::pair<std::string_view, std::string*>>({
            {"channel", &spec_.channel},
            {"subdir", &spec_.subdir},
            {"fn", &spec_.file_name},
            {"license", &spec_.license},
            {"license_family", &spec_.license_family},
        });
        for (const auto& [name, field] : text_fields)
            if (key == name) {
                *field = value;
                return {};
            }
        if (key == "version") return set_version(value);
        if (key == "build") return set_build(value);
        if (key == "build_number") return set_build_number(value);
        if (key == "name")
            spec_.name = lower(value);
        else if (key == "features")
            spec_.features = words_in(value, " ,");
        else if (key == "track_features")
            spec_.track_features = words_in(value, " ,");
        else if (key != "optional") // which has no effect here
            return checksum_or_unknown(key, value);
        return {};
    }

    Status checksum_or_unknown(const std::string& key, std::string_view value) {
        for (const auto& [name, size, field] : {std::tuple{"md5", std::size_t{32}, &spec_.md5},
                                                std::tuple{"sha256", std::size_t{64}, &spec_.sha256}}) {
            if (key != name) continue;
            if (!is_hex(lower(value), size))
                return refuse("'" + std::string(value) + "' is not a valid " + key + " checksum");
            *field = lower(value);
            return {};
        }
        // Without them, a channel's dependency would mean something else.
        static constexpr auto unsupported = std::to_array<std::pair<std::string_view, std::string_view>>(
            {{"when", "Leave it out, or request the package only where the condition holds."},
             {"extras", "Request the packages of the group instead."},
             {"flags", "Select the variant with build=PATTERN instead."}});
        for (const auto& [name, hint] : unsupported)
            if (key == name) return refuse("'" + key + "' is not supported", std::string(hint));
        if (unknown_keys_ == UnknownKeys::ignored) return {};
        return refuse("unknown key '" + key + "' in brackets",
                      key == "url" ? "Write only the URL, in place of the package name."
                                   : "Known keys: version, build, build_number, channel, subdir, fn, md5, "
                                     "sha256, license, license_family, features, track_features.");
    }

    /// Parses "conda-forge/linux-64::" at the start of `rest` and removes it.
    Status channel(std::string_view& rest) {
        const auto mark = rest.find("::");
        if (mark == rest.npos) {
            if (rest.find(':') != rest.npos &&
                rest.substr(0, rest.find_first_of(" =<>!~")).find(':') != rest.npos)
                return refuse("namespaces are not supported", "Write channel::package.");
            return {};
        }
        auto written = trimmed(rest.substr(0, mark));
        rest = trimmed(rest.substr(mark + 2));
        if (written.empty()) return refuse("there is no channel before '::'");
        if (!is_closed(written)) return refuse("a ']' is missing before '::'");
        if (const auto open = written.find('['); open != written.npos && written.ends_with(']')) {
            spec_.subdir = written.substr(open + 1, written.size() - open - 2);
            if (!is_platform(spec_.subdir)) return refuse(no_platform);
            written = written.substr(0, open);
        } else if (const auto slash = written.rfind('/');
                   slash != written.npos && is_subdir(written.substr(slash + 1))) {
            spec_.subdir = written.substr(slash + 1);
            written = written.substr(0, slash);
        }
        if (!is_channel(std::string(written))) return refuse(no_channel);
        spec_.channel = written;
        return {};
    }

    Status name_and_version(std::string_view rest) {
        const auto end = std::min(rest.find_first_of(" \t=<>!~"), rest.size());
        if (const auto name = lower(rest.substr(0, end)); !name.empty()) spec_.name = name;
        if (spec_.name.empty())
            return refuse("it has no package name", "Use \"*\" as the name if any package is acceptable.");
        constexpr std::string_view of_patterns = "abcdefghijklmnopqrstuvwxyz0123456789_-.+*^$()|[]\\?";
        const auto allowed =
            is_name_pattern(spec_.name) ? of_patterns : of_patterns.substr(0, of_patterns.find('*'));
        if (const auto bad = spec_.name.find_first_not_of(allowed); bad != std::string::npos)
            return refuse(std::string("a package name cannot contain '") + spec_.name[bad] + "'");
        if (spec_.name.ends_with(".conda") || spec_.name.ends_with(".tar.bz2"))
            return refuse("it is the name of a package file",
                          "Write the file's path, with a '/', or its URL.");
        if (auto pattern = StringMatch::parse(spec_.name); !pattern) return refuse(pattern.error().why);
        rest = trimmed(rest.substr(end));
        if (rest.empty()) return {};
        return version_and_build(rest);
    }

    /// Parses "=1.26=py311*", ">=1.20,<2", "1.26.* py311*" or "=3.7".
    Status version_and_build(std::string_view text) {
        std::string_view build;
        constexpr std::string_view part_of_version = "=!|,<>~";
        for (std::size_t at = 1; at + 1 < text.size(); ++at) {
            if (text[at] != '=' && text[at] != ' ') continue;
            const auto after = trimmed(text.substr(at + 1));
            const auto before = text.substr(0, at).back();
            if (part_of_version.find(before) != part_of_version.npos) continue;
            if (after.empty() || after.find_first_of("=,|<>~! ") != after.npos) continue;
            // A blank next to an operator does not separate: "1.2 =1.3", "numpy 1.20 , <2".
            if (part_of_version.find(trimmed(text.substr(0, at)).back()) != part_of_version.npos) continue;
            build = after;
            text = trimmed(text.substr(0, at));
            break;
        }
        // Values in brackets take precedence.
        if (!build.empty() && !spec_.build) TRY(set_build(build));
        if (spec_.version) return {};
        // "name=1.2=build" means exactly 1.2, while "name=1.2" means 1.2.*.
        const bool fuzzy = text.starts_with('=') && !text.starts_with("==");
        const auto bare = trimmed(text.substr(fuzzy ? 1 : 0));
        if (fuzzy && !build.empty() && bare.find_first_of(",|") == bare.npos) return set_version(bare);
        return set_version(text);
    }

    Status set_version(std::string_view text) {
        // Check for blanks first: parsing drops them, and ">=1 <2" would become ">=1<2".
        for (auto blank = text.find(' '); blank != text.npos; blank = text.find(' ', blank + 1)) {
            const auto before = trimmed(text.substr(0, blank));
            const auto after = trimmed(text.substr(blank));
            const bool joined = before.empty() || after.empty() ||
                                std::string_view("=!|,<>~(").find(before.back()) != std::string_view::npos ||
                                after.front() == ',' || after.front() == '|' || after.front() == ')';
            if (!joined)
                return refuse("'" + std::string(text) + "' has a space between two conditions",
                              "Separate conditions with ',' (and) or '|' (or).");
        }
        auto version = VersionSpec::parse(text);
        if (!version) return refuse(what_and_why(version.error()));
        spec_.version = std::move(*version);
        return {};
    }

    Status set_build(std::string_view text) {
        auto build = StringMatch::parse(text);
        if (!build) return refuse(what_and_why(build.error()));
        spec_.build = std::move(*build);
        return {};
    }

    Status set_build_number(std::string_view text) {
        auto number = VersionSpec::parse(text);
        if (!number) return refuse("'" + std::string(text) + "' is not a build number or a condition on one");
        spec_.build_number = std::move(*number);
        return {};
    }

    std::string_view given_;
    UnknownKeys unknown_keys_;
    MatchSpec spec_;
};

bool contains_all(const std::vector<std::string>& all, const std::vector<std::string>& wanted) {
    return std::ranges::all_of(wanted,
                               [&](const auto& one) { return std::ranges::find(all, one) != all.end(); });
}

} // namespace

bool is_name_pattern(std::string_view name) {
    return name.empty() || name.find_first_of("*^") != name.npos;
}

bool name_matches(std::string_view wanted, std::string_view name) {
    if (!is_name_pattern(wanted)) return wanted == name;
    const auto pattern = StringMatch::parse(wanted);
    return wanted.empty() || (pattern && pattern->matches(name));
}

std::optional<FileName> parse_file_name(std::string_view file) {
    for (const std::string_view end : {".conda", ".tar.bz2"}) {
        if (!file.ends_with(end)) continue;
        file.remove_suffix(end.size());
        const auto second = file.rfind('-');
        const auto first = second == file.npos || second == 0 ? file.npos : file.rfind('-', second - 1);
        if (first == file.npos || first == 0 || second == first + 1 || second + 1 == file.size())
            return std::nullopt;
        return FileName{.name = lower(file.substr(0, first)),
                        .version = std::string(file.substr(first + 1, second - first - 1)),
                        .build = std::string(file.substr(second + 1))};
    }
    return std::nullopt;
}

bool is_subdir(std::string_view text) {
    static constexpr auto known = std::to_array<std::string_view>({"noarch",
                                                                   "linux-32",
                                                                   "linux-64",
                                                                   "linux-aarch64",
                                                                   "linux-armv6l",
                                                                   "linux-armv7l",
                                                                   "linux-ppc64",
                                                                   "linux-ppc64le",
                                                                   "linux-s390x",
                                                                   "linux-riscv32",
                                                                   "linux-riscv64",
                                                                   "osx-64",
                                                                   "osx-arm64",
                                                                   "win-32",
                                                                   "win-64",
                                                                   "win-arm64",
                                                                   "zos-z",
                                                                   "freebsd-64",
                                                                   "emscripten-wasm32",
                                                                   "wasi-wasm32"});
    return std::ranges::find(known, text) != known.end();
}

Result<MatchSpec> parse_match_spec(std::string_view text, UnknownKeys unknown_keys) {
    return Parser(text, unknown_keys).parse();
}

bool MatchSpec::matches(const PackageRecord& record) const {
    if (!name_matches(name, record.name)) return false;
    if (build && !build->matches(record.build)) return false;
    if (!subdir.empty() && subdir != record.subdir) return false;
    if (!file_name.empty() && file_name != record.file_name) return false;
    if (!md5.empty() && md5 != record.md5) return false;
    if (!sha256.empty() && sha256 != record.sha256) return false;
    if (!license.empty() && license != record.license) return false;
    if (!license_family.empty() && license_family != record.license_family) return false;
    if (!contains_all(record.track_features, track_features)) return false;
    if (version) {
        const auto parsed = Version::parse(record.version);
        if (!parsed || !version->matches(*parsed)) return false;
    }
    if (build_number) {
        const auto parsed = Version::parse(std::to_string(record.build_number));
        if (!parsed || !build_number->matches(*parsed)) return false;
    }
    return true;
}

// Values are quoted with the kind of quotation mark that they do not contain.
std::string MatchSpec::to_string() const {
    const bool subdir_of_channel = !channel.empty() && is_subdir(subdir);
    std::string result;
    if (!channel.empty())
        result = without_credentials(channel) + (subdir_of_channel ? "/" + subdir : "") + "::";
    result += name.empty() ? "*" : name;
    if (version) result += " " + version->text();
    // A build pattern with separators or operators must be in brackets, and so must one after "=1.2", since
    // "=1.2 build" means exactly 1.2.
    const bool is_fuzzy = version && version->text().starts_with('=') && !version->text().starts_with("==");
    const bool is_word =
        build && !is_fuzzy && build->text().find_first_of("=:,|<>~! \t'\"[]") == std::string::npos;
    if (is_word) result += (version ? " " : " * ") + build->text();
    std::string more;
    const auto add = [&more](std::string_view key, const std::string& value) {
        if (value.empty()) return;
        const char quote = value.find('\'') == std::string::npos ? '\'' : '"';
        more += (more.empty() ? "" : ",") + std::string(key) + "=" + quote + value + quote;
    };
    if (build && !is_word) add("build", build->text());
    if (build_number) add("build_number", build_number->text());
    if (!subdir_of_channel) add("subdir", subdir);
    add("fn", file_name);
    add("md5", md5);
    add("sha256", sha256);
    add("license", license);
    add("license_family", license_family);
    add("features", joined(features, " "));
    add("track_features", joined(track_features, " "));
    return more.empty() ? result : result + "[" + more + "]";
}

} // namespace containerize::conda
