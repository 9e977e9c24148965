// What is said about options: by --help, and in the reference made from the tree.
#pragma once

#include "config/key.h"

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace containerize::cli {

/// Gives an option the description, the default and the values of a key.
CLI::Option* by_configuration(CLI::Option* option, config::Key key);

/// Adds the option of a key.
template<class Value>
CLI::Option* add_configured(CLI::App& command, config::Key key, Value& value) {
    return by_configuration(command.add_option(std::string(config::info(key).option), value), key);
}

/// Names values for help and completions, without checking them; like KeyInfo::choices.
CLI::Validator offer(std::string_view choices);

/// What completions offer for a value, besides its choices.
enum class Offer { nothing, files, directories, commands, installations };

struct OptionText {
    std::vector<std::string> names;   ///< "-q", "--quiet"; of a positional: "DIR"
    std::string value;                ///< "DIR"; empty for a flag
    std::vector<std::string> choices; ///< without "..."
    Offer offer = Offer::nothing;
    bool is_repeatable = false;
    std::string description; ///< a sentence, with what may be given and the default
    std::string_view key;    ///< of the configuration, which can set the default; may be empty
};
OptionText describe(const CLI::Option& option);

/// Formats --help.
class Help : public CLI::Formatter {
public:
    Help();
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
    std::string make_option(const CLI::Option* option, bool is_positional) const override;
    std::string make_option_usage(const CLI::Option* option) const override;
    std::string make_subcommand(const CLI::App* command) const override;
};

} // namespace containerize::cli
