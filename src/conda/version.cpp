#include "conda/version.h"

#include "core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include <re2/re2.h>

namespace containerize::conda {

namespace {

constexpr std::uint64_t infinite = std::numeric_limits<std::uint64_t>::max();
/// Longer than any real version or pattern. Bounds the time for matching.
constexpr std::size_t longest_text = 512;
constexpr std::string_view of_versions = "0123456789abcdefghijklmnopqrstuvwxyz_.+!-";
/// Has as many digits as always fit into 64 bits.
constexpr std::uint64_t largest_number = 9'999'999'999'999'999'999U;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::unexpected<Error> bad_version(std::string_view text, std::string why) {
    return fail_input("invalid version: '" + std::string(text) + "'", std::move(why));
}

std::unexpected<Error> bad_spec(std::string_view text, std::string why) {
    return fail_input("invalid version condition: '" + std::string(text) + "'", std::move(why));
}

std::string as_expression(std::string_view glob) {
    std::string expression = "^";
    for (const char c : glob) {
        if (c == '*') expression += '.';
        if (c == '.' || c == '+') expression += '\\';
        expression += c;
    }
    return expression + "$";
}

/// Memory limit in bytes for a compiled regular expression; real ones need a few thousand.
constexpr std::int64_t largest_expression = 1 << 20;

/// RE2 matches in linear time for any expression, while the C library's regex may exhaust memory on a few
/// characters such as "a++++++++".
std::shared_ptr<const re2::RE2> compiled(const std::string& expression) {
    re2::RE2::Options options;
    options.set_max_mem(largest_expression);
    options.set_log_errors(false);
    return std::make_shared<const re2::RE2>(expression, options);
}

bool glob_matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

} // namespace

std::weak_ordering Version::Token::operator<=>(const Token& other) const {
    if (word.empty() != other.word.empty())
        return word.empty() ? std::weak_ordering::greater : std::weak_ordering::less;
    if (word.empty()) return number <=> other.number;
    return word <=> other.word;
}

Result<Version::Parts> Version::split(std::string_view text) {
    Parts parts;
    for (std::size_t start = 0; start <= text.size();) {
        const auto end = std::min(text.find('.', start), text.size());
        const auto part = text.substr(start, end - start);
        start = end + 1;
        if (part.empty()) return bad_version(text, "a part between two dots is empty");
        Part tokens;
        // A part that starts with letters gets a leading 0: "1.a" is older than "1.0".
        if (!is_digit(part.front())) tokens.push_back({});
        for (std::size_t at = 0; at < part.size();) {
            const bool digits = is_digit(part[at]);
            std::size_t stop = at;
            while (stop < part.size() && is_digit(part[stop]) == digits)
                ++stop;
            const auto run = part.substr(at, stop - at);
            at = stop;
            Token token;
            if (digits) {
                const auto number = to_number<std::uint64_t>(run);
                if (!number || *number > largest_number)
                    return bad_version(text, "a number in it is too large");
                token.number = *number;
            } else if (run == "post") {
                token.number = infinite;
            } else {
                // Upper case sorts before '_' and lower case, so "dev" comes first.
                token.word = run == "dev" ? "DEV" : std::string(run);
            }
            tokens.push_back(std::move(token));
        }
        parts.push_back(std::move(tokens));
    }
    return parts;
}

Result<Version> Version::parse(std::string_view given) {
    const auto start = given.find_first_not_of(" \t");
    if (start == given.npos) return bad_version(given, "it is empty");
    given = given.substr(start, given.find_last_not_of(" \t") - start + 1);
    auto text = lower(given);
    if (text.size() > longest_text) return bad_version(given.substr(0, 40), "it is too long");
    if (text.find_first_not_of(of_versions) != std::string::npos)
        return bad_version(given, "it contains a character that is not allowed in versions");
    // conda treats '-' as '_', which separates parts, and rejects versions with both.
    if (text.find('_') == std::string::npos) std::ranges::replace(text, '-', '_');
    if (text.find('-') != std::string::npos) return bad_version(given, "it contains both '-' and '_'");

    Version version;
    version.text_ = given;
    std::string_view rest = text;
    Token epoch;
    if (const auto mark = rest.find('!'); mark != rest.npos) {
        const auto number = to_number<std::uint64_t>(rest.substr(0, mark));
        if (!number || mark > 18) return bad_version(given, "the epoch before '!' is not a number");
        epoch.number = *number;
        rest.remove_prefix(mark + 1);
    }
    if (rest.find('!') != rest.npos) return bad_version(given, "it contains more than one '!'");
    std::string local;
    if (const auto plus = rest.find('+'); plus != rest.npos) {
        local = rest.substr(plus + 1);
        rest = rest.substr(0, plus);
        if (local.find('+') != std::string::npos) return bad_version(given, "it contains more than one '+'");
        std::ranges::replace(local, '_', '.');
        auto parts = split(local);
        if (!parts) return bad_version(given, parts.error().why);
        version.local_ = std::move(*parts);
    }
    std::string release(rest);
    // A final underscore belongs to the last part ("1.0.2_" of openssl).
    const bool tail = release.size() > 1 && release.back() == '_';
    std::replace(release.begin(), release.end() - (tail ? 1 : 0), '_', '.');
    auto parts = split(release);
    if (!parts) return bad_version(given, parts.error().why);
    version.parts_ = std::move(*parts);
    version.parts_.insert(version.parts_.begin(), Part{epoch});
    return version;
}

std::weak_ordering Version::compare(const Parts& one, const Parts& other) {
    static const Part no_part;
    static const Token zero;
    for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
        const Part& a = i < one.size() ? one[i] : no_part;
        const Part& b = i < other.size() ? other[i] : no_part;
        for (std::size_t j = 0; j < std::max<std::size_t>({a.size(), b.size(), 1}); ++j) {
            const auto order = (j < a.size() ? a[j] : zero) <=> (j < b.size() ? b[j] : zero);
            if (order != 0) return order;
        }
    }
    return std::weak_ordering::equivalent;
}

std::weak_ordering Version::operator<=>(const Version& other) const {
    const auto order = compare(parts_, other.parts_);
    return order != 0 ? order : compare(local_, other.local_);
}

bool Version::starts_with(const Version& prefix) const {
    const bool local = !prefix.local_.empty();
    if (local && compare(parts_, prefix.parts_) != 0) return false;
    const Parts& mine = local ? local_ : parts_;
    const Parts& wanted = local ? prefix.local_ : prefix.parts_;
    const auto head = [](const Parts& parts, std::size_t count) {
        return Parts(parts.begin(),
                     parts.begin() + static_cast<std::ptrdiff_t>(std::min(count, parts.size())));
    };
    const std::size_t last = wanted.size() - 1;
    if (compare(head(mine, last), head(wanted, last)) != 0) return false;
    static const Part no_part;
    const Part& a = last < mine.size() ? mine[last] : no_part;
    const Part& b = wanted[last];
    static const Token zero;
    for (std::size_t j = 0; j + 1 < b.size(); ++j)
        if ((j < a.size() ? a[j] : zero) != b[j]) return false;
    const Token& mine_last = b.size() <= a.size() ? a[b.size() - 1] : zero;
    if (b.back().word.empty()) return mine_last == b.back();
    return mine_last.word.starts_with(b.back().word);
}

struct VersionSpec::Condition {
    enum class Kind {
        all,
        any,
        always,
        equal,
        unequal,
        less,
        less_equal,
        greater,
        greater_equal,
        starts,
        not_starts,
        compatible,
        text
    };
    Kind kind = Kind::always;
    std::vector<std::shared_ptr<const Condition>> parts = {}; ///< for all and any
    std::optional<Version> version = {};
    std::optional<Version> family = {}; ///< for compatible: the version without its last part
    std::optional<StringMatch> pattern = {};
};

namespace {

using Condition = VersionSpec::Condition;
using Kind = Condition::Kind;

bool holds(const Condition& condition, const Version& version) {
    const auto of_part = [&](const auto& part) { return holds(*part, version); };
    switch (condition.kind) {
    case Kind::all:
        return std::ranges::all_of(condition.parts, of_part);
    case Kind::any:
        return std::ranges::any_of(condition.parts, of_part);
    case Kind::always:
        return true;
    case Kind::equal:
        return version == *condition.version;
    case Kind::unequal:
        return version != *condition.version;
    case Kind::less:
        return version < *condition.version;
    case Kind::less_equal:
        return version <= *condition.version;
    case Kind::greater:
        return version > *condition.version;
    case Kind::greater_equal:
        return version >= *condition.version;
    case Kind::starts:
        return version.starts_with(*condition.version);
    case Kind::not_starts:
        return !version.starts_with(*condition.version);
    case Kind::compatible:
        return version >= *condition.version && version.starts_with(*condition.family);
    case Kind::text:
        return condition.pattern->matches(version.text());
    }
    return false;
}

/// Parses ">=1.20,<2|3.*". ',' binds tighter than '|', and parentheses group.
class SpecParser {
public:
    explicit SpecParser(std::string_view text) : text_(text) {}

    Result<Condition> parse() {
        auto whole = any_of(0);
        if (whole && at_ < text_.size())
            return bad_spec(text_, std::string("unexpected '") + text_[at_] + "'");
        return whole;
    }

private:
    /// Limits recursion; more than anybody writes.
    static constexpr int deepest = 20;

    Result<Condition> any_of(int depth) { return list('|', Kind::any, depth); }
    Result<Condition> all_of(int depth) { return list(',', Kind::all, depth); }

    Result<Condition> list(char separator, Kind kind, int depth) {
        Condition result{.kind = kind};
        for (;;) {
            auto part = TRY(separator == '|' ? all_of(depth) : group(depth));
            result.parts.push_back(std::make_shared<const Condition>(std::move(part)));
            if (at_ >= text_.size() || text_[at_] != separator) break;
            ++at_;
        }
        if (result.parts.size() == 1) return *result.parts.front();
        return result;
    }

    Result<Condition> group(int depth) {
        if (at_ < text_.size() && text_[at_] == '(') {
            if (depth >= deepest) return bad_spec(text_, "too many parentheses");
            ++at_;
            auto inner = TRY(any_of(depth + 1));
            if (at_ >= text_.size() || text_[at_] != ')') return bad_spec(text_, "a ')' is missing");
            ++at_;
            return inner;
        }
        // A regular expression may contain any character, up to its '$'.
        const bool expression = at_ < text_.size() && text_[at_] == '^';
        auto end = expression ? text_.find('$', at_) : text_.find_first_of(",|()", at_);
        if (expression && end != text_.npos) ++end;
        end = std::min(end, text_.size());
        const auto leaf = text_.substr(at_, end - at_);
        at_ = end;
        return condition(leaf);
    }

    Result<Condition> condition(std::string_view leaf) const {
        if (leaf.empty()) return bad_spec(text_, "a condition is empty");
        if (leaf == "*") return Condition{};
        if (leaf.front() == '^' || leaf.back() == '$') return pattern(leaf);
        static constexpr auto operators = std::to_array<std::pair<std::string_view, Kind>>({
            {"==", Kind::equal},
            {"!=", Kind::unequal},
            {"<=", Kind::less_equal},
            {">=", Kind::greater_equal},
            {"~=", Kind::compatible},
            {"=", Kind::starts},
            {"<", Kind::less},
            {">", Kind::greater},
        });
        const auto* found =
            std::ranges::find_if(operators, [&](const auto& one) { return leaf.starts_with(one.first); });
        if (found != operators.end()) return relation(leaf, leaf.substr(found->first.size()), found->second);
        if (leaf.find_first_of("=<>~") != leaf.npos)
            return bad_spec(text_, "separate conditions with ',' or '|'");
        if (const auto star = leaf.find('*'); star != leaf.npos) {
            if (leaf.find_last_not_of('*') > star && leaf.find_last_not_of('*') != leaf.npos)
                return pattern(leaf);
            return with_version(Kind::starts, without_star(leaf));
        }
        return with_version(Kind::equal, leaf);
    }

    static std::string_view without_star(std::string_view text) {
        while (text.ends_with('*'))
            text.remove_suffix(1);
        while (text.ends_with('.'))
            text.remove_suffix(1);
        return text;
    }

    Result<Condition> relation(std::string_view leaf, std::string_view version, Kind kind) const {
        if (version.empty()) return bad_spec(text_, "there is no version after '" + std::string(leaf) + "'");
        if (version.find_first_of("=<>~") != version.npos)
            return bad_spec(text_, "separate conditions with ',' or '|'");
        if (!version.ends_with('*')) return with_version(kind, version);
        version = without_star(version);
        if (version.empty()) return bad_spec(text_, "'" + std::string(leaf) + "' has no version to compare");
        if (kind == Kind::compatible) return bad_spec(text_, "'~=' cannot be used with '*'");
        if (kind == Kind::equal) kind = Kind::starts;
        if (kind == Kind::unequal) kind = Kind::not_starts;
        return with_version(kind, version); // ">=1.8.*": conda ignores the star, too
    }

    Result<Condition> with_version(Kind kind, std::string_view text) const {
        if (text.empty()) return Condition{};
        auto version = Version::parse(text);
        if (!version) return bad_spec(text_, what_and_why(version.error()));
        Condition result{.kind = kind, .version = std::move(*version)};
        if (kind == Kind::compatible) {
            const auto dot = text.rfind('.');
            if (dot == text.npos) return bad_spec(text_, "'~=' needs a version of at least two parts");
            auto family = Version::parse(text.substr(0, dot));
            if (!family) return bad_spec(text_, family.error().what);
            result.family = std::move(*family);
        }
        return result;
    }

    Result<Condition> pattern(std::string_view leaf) const {
        auto match = StringMatch::parse(leaf);
        if (!match) return bad_spec(text_, match.error().why);
        const bool glob = leaf.front() != '^';
        if (glob && lower(leaf).find_first_not_of(std::string(of_versions) + "*") != std::string::npos)
            return bad_spec(text_, "it contains a character that is not allowed in versions");
        return Condition{.kind = Kind::text, .pattern = std::move(*match)};
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

} // namespace

Result<VersionSpec> VersionSpec::parse(std::string_view text) {
    VersionSpec spec;
    for (const char c : text)
        if (c != ' ' && c != '\t') spec.text_ += c;
    if (spec.text_.empty()) return bad_spec(text, "it is empty");
    if (spec.text_.size() > 4 * longest_text) return bad_spec(spec.text_.substr(0, 40), "it is too long");
    if (std::ranges::any_of(spec.text_, [](unsigned char c) { return c < ' ' || c == 0x7F; }))
        return bad_spec(spec.text_, "it contains a control character");
    auto condition = TRY(SpecParser(spec.text_).parse());
    spec.condition_ = std::make_shared<const Condition>(std::move(condition));
    return spec;
}

bool VersionSpec::matches(const Version& version) const {
    return holds(*condition_, version);
}

Result<StringMatch> StringMatch::parse(std::string_view text) {
    StringMatch match;
    match.text_ = text;
    if (text.size() > longest_text)
        return fail_input("a pattern is too long", {}, std::string(text.substr(0, 40)));
    const bool starts = text.starts_with('^');
    const bool ends = text.size() > 1 && text.ends_with('$');
    if (starts != ends)
        return fail_input("invalid pattern: '" + match.text_ + "'",
                          "a regular expression must start with '^' and end with '$'");
    const bool glob = text.find('*') != std::string_view::npos;
    // Like conda, treat a glob with a character set, "k[0-9]*", as a regular expression.
    const bool set = !starts && glob && text.find('[') != std::string_view::npos;
    if (starts || set) {
        const auto pattern = starts ? match.text_ : as_expression(text);
        match.expression_ = compiled(pattern);
        if (!match.expression_->ok())
            return fail_input("invalid regular expression: '" + match.text_ + "'",
                              match.expression_->error());
        match.kind_ = Kind::expression;
    } else if (glob) {
        match.kind_ = Kind::glob;
    }
    return match;
}

bool StringMatch::matches(std::string_view text) const {
    switch (kind_) {
    case Kind::exact:
        return text == text_;
    case Kind::glob:
        return glob_matches(text_, text);
    case Kind::expression:
        return re2::RE2::FullMatch(text, *expression_);
    }
    return false;
}

} // namespace containerize::conda
