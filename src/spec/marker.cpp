#include "spec/marker.h"

#include "core/text.h"
#include "spec/package_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

namespace containerize::spec {

namespace {

/// Markers of real locks have a few alternatives with a few conditions each.
constexpr std::size_t most_alternatives = 200;
constexpr std::size_t most_conditions = 500; // of all together
constexpr std::size_t longest_marker = 64 << 10;
constexpr std::size_t deepest_bracket = 50;

constexpr auto variables = std::to_array<std::string_view>(
    {"python_version", "python_full_version", "os_name", "sys_platform", "platform_release",
     "platform_system", "platform_version", "platform_machine", "platform_python_implementation",
     "implementation_name", "implementation_version", "extra", "extras", "dependency_groups"});

/// Longer ones come before those with which they start.
constexpr auto comparisons = std::to_array<std::string_view>({"===", "==", "!=", "~=", "<=", ">=", "<", ">"});

constexpr auto opposites = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"==", "!="}, {"<", ">="}, {">", "<="}, {"in", "not in"}});

struct Operand {
    std::string text;
    bool is_variable = false;
};

std::string quoted(const std::string& text) {
    const char quote = text.find('\'') == text.npos ? '\'' : '"';
    return quote + text + quote;
}

std::string written(const Operand& operand) {
    return operand.is_variable ? operand.text : quoted(operand.text);
}

Marker constant(bool value) {
    return value ? Marker() : Marker::never();
}

bool is_letter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

class MarkerParser {
public:
    MarkerParser(std::string_view text, const MarkerFacts& facts) : text_(text), facts_(facts) {}

    Result<Marker> parse() {
        if (text_.size() > longest_marker) return wrong("it is too long");
        auto marker = TRY(alternatives());
        skip_blanks();
        if (at_ != text_.size()) return wrong("something follows it");
        if (marker.is_too_complex()) return wrong("it is too complex");
        return marker;
    }

private:
    [[nodiscard]] std::unexpected<Error> wrong(std::string why) const {
        return fail_input("invalid marker '" + std::string(text_.substr(0, 200)) + "'", std::move(why));
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
            ++at_;
    }

    bool take(std::string_view token) {
        skip_blanks();
        const auto rest = text_.substr(at_);
        if (!rest.starts_with(token)) return false;
        const bool is_word = is_letter(token.back());
        if (is_word && rest.size() > token.size() && is_letter(rest[token.size()])) return false;
        at_ += token.size();
        return true;
    }

    Result<Marker> alternatives() {
        std::vector<Marker> markers = {TRY(conditions())};
        while (take("or"))
            markers.push_back(TRY(conditions()));
        return Marker::any_of(markers);
    }

    Result<Marker> conditions() {
        auto marker = TRY(condition());
        while (take("and"))
            marker &= TRY(condition());
        return marker;
    }

    Result<Marker> condition() {
        if (!take("(")) return comparison();
        if (++depth_ > deepest_bracket) return wrong("it has too many brackets");
        auto marker = TRY(alternatives());
        --depth_;
        if (!take(")")) return wrong("a bracket is not closed");
        return marker;
    }

    Result<Operand> operand() {
        skip_blanks();
        if (at_ == text_.size()) return wrong("a value is missing");
        if (const char quote = text_[at_]; quote == '\'' || quote == '"') {
            const auto end = text_.find(quote, at_ + 1);
            if (end == text_.npos) return wrong("a quote is not closed");
            const auto value = text_.substr(at_ + 1, end - at_ - 1);
            at_ = end + 1;
            if (value.find_first_of("\"'") != value.npos) return wrong("a value contains a quote");
            return Operand{.text = std::string(value)};
        }
        auto end = at_;
        while (end < text_.size() && is_letter(text_[end]))
            ++end;
        auto name = std::string(text_.substr(at_, end - at_));
        // As in old versions of Python's own tools.
        std::ranges::replace(name, '.', '_');
        if (name == "python_implementation") name = "platform_python_implementation";
        if (std::ranges::find(variables, name) == variables.end()) return wrong("a variable is unknown");
        at_ = end;
        return Operand{.text = name, .is_variable = true};
    }

    std::string take_comparison() {
        if (take("in")) return "in";
        if (take("not")) return take("in") ? "not in" : "";
        for (const auto one : comparisons)
            if (take(one)) return std::string(one);
        return "";
    }

    Result<Marker> comparison() {
        const auto left = TRY(operand());
        const auto comparison = take_comparison();
        if (comparison.empty()) return wrong("a comparison is missing");
        const auto right = TRY(operand());
        if (left.is_variable == right.is_variable)
            return wrong("a variable must be compared with a value in quotes");
        const auto& variable = left.is_variable ? left.text : right.text;
        if (const auto* chosen = chosen_parts(variable))
            return TRY(membership(variable, left.is_variable ? right.text : left.text, comparison, *chosen));
        if (const auto known = known_value(variable)) {
            const auto& first = left.is_variable ? *known : left.text;
            const auto& second = left.is_variable ? right.text : *known;
            if (const auto result = decided(first, comparison, second)) return constant(*result);
        }
        return Marker::of(written(left), comparison, written(right));
    }

    /// The extras or groups that a variable stands for; null for other variables.
    [[nodiscard]] const std::set<std::string>* chosen_parts(std::string_view variable) const {
        if (variable == "extra" || variable == "extras") return &facts_.extras;
        return variable == "dependency_groups" ? &facts_.groups : nullptr;
    }

    [[nodiscard]] Result<Marker> membership(std::string_view variable, const std::string& name,
                                            std::string_view comparison,
                                            const std::set<std::string>& chosen) const {
        const bool is_there = chosen.contains(normalised_name(name));
        const bool is_set = variable != "extra";
        if (comparison == (is_set ? "in" : "==")) return constant(is_there);
        if (comparison == (is_set ? "not in" : "!=")) return constant(!is_there);
        return wrong("`" + std::string(variable) + "` cannot be compared like this");
    }

    /// Programs run on Linux, on a machine of the kind for which the file is read.
    [[nodiscard]] std::optional<std::string> known_value(std::string_view variable) const {
        if (variable == "os_name") return "posix";
        if (variable == "sys_platform") return "linux";
        if (variable == "platform_system") return "Linux";
        if (variable == "platform_machine" && !facts_.machine.empty()) return facts_.machine;
        return std::nullopt;
    }

    static std::optional<bool> decided(const std::string& left, std::string_view comparison,
                                       const std::string& right) {
        if (comparison == "==") return left == right;
        if (comparison == "!=") return left != right;
        if (comparison == "in") return right.find(left) != right.npos;
        if (comparison == "not in") return right.find(left) == right.npos;
        return std::nullopt;
    }

    std::string_view text_;
    const MarkerFacts& facts_;
    std::size_t at_ = 0, depth_ = 0;
};

} // namespace

Marker Marker::of(const std::string& left, const std::string& comparison, const std::string& right) {
    Marker marker;
    marker.alternatives_ = {{{.left = left, .comparison = comparison, .right = right}}};
    return marker;
}

/// A condition that holds if the other does not; the same if there is none.
Marker::Condition Marker::opposite(const Condition& condition) {
    auto result = condition;
    for (const auto& [one, other] : opposites) {
        if (condition.comparison == one) result.comparison = other;
        if (condition.comparison == other) result.comparison = one;
    }
    return result;
}

Marker& Marker::operator&=(const Marker& other) {
    too_complex_ = too_complex_ || other.too_complex_ ||
                   alternatives_.size() * other.alternatives_.size() > most_alternatives * 10;
    std::set<Conditions> both;
    if (!too_complex_)
        for (const auto& one : alternatives_)
            for (auto conditions : other.alternatives_) {
                conditions.insert(one.begin(), one.end());
                both.insert(std::move(conditions));
            }
    alternatives_ = std::move(both);
    simplify();
    return *this;
}

Marker& Marker::operator|=(const Marker& other) {
    return *this = any_of({*this, other});
}

Marker Marker::any_of(const std::vector<Marker>& markers) {
    auto result = never();
    for (const auto& one : markers) {
        result.too_complex_ = result.too_complex_ || one.too_complex_;
        result.alternatives_.insert(one.alternatives_.begin(), one.alternatives_.end());
    }
    result.simplify();
    return result;
}

/// Removes what cannot hold, and what holds only where another alternative does.
void Marker::simplify() {
    std::erase_if(alternatives_, [](const Conditions& conditions) {
        return std::ranges::any_of(conditions, [&](const Condition& one) {
            const auto other = opposite(one);
            return other != one && conditions.contains(other);
        });
    });
    too_complex_ =
        too_complex_ || alternatives_.size() > most_alternatives || number_of_conditions() > most_conditions;
    if (too_complex_) alternatives_.clear();
    while (merge_opposites()) {
    }
    const auto all = alternatives_;
    std::erase_if(alternatives_, [&](const Conditions& conditions) {
        return std::ranges::any_of(all, [&](const Conditions& other) {
            return other.size() < conditions.size() && std::ranges::includes(conditions, other);
        });
    });
}

std::size_t Marker::number_of_conditions() const {
    std::size_t number = 0;
    for (const auto& conditions : alternatives_)
        number += conditions.size();
    return number;
}

/// Replaces two alternatives that differ only in a condition and its opposite.
bool Marker::merge_opposites() {
    if (alternatives_.size() < 2) return false;
    for (auto at = alternatives_.begin(); at != alternatives_.end(); ++at)
        for (const auto& one : *at) {
            auto rest = *at;
            rest.erase(one);
            auto other = rest;
            other.insert(opposite(one));
            const auto found = alternatives_.find(other);
            if (found == at || found == alternatives_.end()) continue; // `found == at` if it has no opposite
            alternatives_.erase(found);
            alternatives_.erase(at);
            alternatives_.insert(std::move(rest));
            return true;
        }
    return false;
}

std::string Marker::text() const {
    std::vector<std::string> alternatives;
    for (const auto& conditions : alternatives_) {
        std::vector<std::string> texts;
        for (const auto& one : conditions)
            texts.push_back(one.left + " " + one.comparison + " " + one.right);
        alternatives.push_back(joined(texts, " and "));
    }
    return joined(alternatives, " or ");
}

Result<Marker> parse_marker(std::string_view text, const MarkerFacts& facts) {
    if (trimmed(text).empty()) return Marker();
    return MarkerParser(text, facts).parse();
}

} // namespace containerize::spec
