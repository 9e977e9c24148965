#include "spec/requirement_options.h"

#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace containerize::spec {

namespace {

constexpr auto include = OptionKind::include;
constexpr auto editable = OptionKind::editable;

// Options of pip 26 and older versions. The installed pip may accept fewer.
constexpr auto options = std::to_array<Option>({
    {"--requirement", 'r', true, include},
    {"--constraint", 'c', true, include},
    {"--editable", 'e', true, editable},
    {"--index-url", 'i'},
    {"--pypi-url"},
    {"--extra-index-url"},
    {"--no-index", 0, false},
    {"--find-links", 'f'},
    {"--no-binary"},
    {"--only-binary"},
    {"--prefer-binary", 0, false},
    {"--require-hashes", 0, false},
    {"--pre", 0, false},
    {"--all-releases"},
    {"--only-final"},
    {"--uploaded-prior-to"},
    {"--trusted-host"},
    {"--use-feature"},
    {"--hash"},
    {"--config-settings", 'C'},
    {"--global-option"},
    {"--build-option"},
    {"--install-option"},
    {"--allow-external"},
    {"--allow-all-external", 0, false},
    {"--allow-unverified"},
    {"--always-unzip", 'Z', false},
    {"--process-dependency-links", 0, false},
    {"--use-wheel", 0, false},
    {"--no-use-wheel", 0, false},
});

} // namespace

const Option* find_option(std::string_view word) {
    if (!word.starts_with("--")) {
        const auto found =
            word.size() < 2 ? options.end() : std::ranges::find(options, word[1], &Option::letter);
        return found == options.end() ? nullptr : &*found;
    }
    const auto name = word.substr(0, word.find('='));
    const auto exact = std::ranges::find(options, name, &Option::name);
    if (exact != options.end()) return &*exact;
    // optparse accepts unambiguous abbreviations; pip rejects ambiguous ones, so any match will do.
    const auto begins = [name](const Option& option) {
        return name.size() > 2 && option.name.starts_with(name);
    };
    const auto found = std::ranges::find_if(options, begins);
    return found == options.end() ? nullptr : &*found;
}

bool has_option(std::string_view line, std::string_view name) {
    if (!line.starts_with('-')) return false;
    const auto words = split_words(line).value_or(std::vector<std::string>());
    return std::ranges::any_of(words, [name](const std::string& word) {
        const auto* option = word.starts_with('-') ? find_option(word) : nullptr;
        return option != nullptr && option->name == name;
    });
}

std::string_view attached_value(std::string_view word) {
    if (!word.starts_with("--")) return word.substr(std::min<std::size_t>(2, word.size()));
    const auto equals = word.find('=');
    return equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
}

} // namespace containerize::spec
