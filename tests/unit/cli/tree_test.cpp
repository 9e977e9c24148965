#include "cli/help.h"
#include "cli/parse.h"
#include "cli/tree.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace containerize::cli {

namespace {

using Words = std::vector<std::string>;

Words split(const std::string& line) {
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
}

/// One parsed command line.
struct Parsed {
    explicit Parsed(Words words)
        : call{.words = std::move(words), .program = {}, .line = {}, .action = {}},
          tree(make_tree(call.words.front(), call)), answer(parse(*tree, call)) {}
    explicit Parsed(const std::string& line) : Parsed(split(line)) {}

    Call call;
    std::unique_ptr<CLI::App> tree;
    std::optional<Answer> answer;
};

const CLI::App& innermost(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    return chosen.empty() ? app : innermost(*chosen.front());
}

/// Calls `look` for each command, with the words that lead to it.
template<class Look>
void for_each_command(const CLI::App& app, const Words& words, const Look& look) {
    look(app, words);
    for (const auto* command : app.get_subcommands({})) {
        auto longer = words;
        longer.push_back(command->get_name());
        for_each_command(*command, longer, look);
    }
}

template<class Look>
void for_each_command(const Look& look) {
    for (const auto program : programs) {
        Call unused;
        for_each_command(*make_tree(program, unused), {std::string(program)}, look);
    }
}

/// get_name() has nothing for hidden options.
std::string name_of(const CLI::Option& option) {
    return option.get_lnames().empty() ? "-" + option.get_snames().front()
                                       : "--" + option.get_lnames().front();
}

/// A value that the option takes.
std::string value_for(const CLI::Option& option) {
    const auto text = describe(option);
    return text.choices.empty() ? "1" : text.choices.front();
}

TEST(Tree, EveryOptionIsParsed) {
    for_each_command([](const CLI::App& command, const Words& words) {
        for (const auto* option : command.get_options()) {
            if (option->get_positional() || option == command.get_help_ptr()) continue;
            auto line = words;
            auto give = [&line](const CLI::Option& one) {
                line.push_back(name_of(one));
                if (one.get_items_expected_max() != 0) line.push_back(value_for(one));
            };
            give(*option);
            for (const auto* needed : option->get_needs())
                give(*needed);
            for (const auto* positional : command.get_options())
                if (positional->get_required() && positional->get_positional())
                    line.push_back(value_for(*positional));
            const Parsed parsed(line);
            if (name_of(*option) == "--version") continue;
            ASSERT_FALSE(parsed.answer) << name_of(*option) << ": " << parsed.answer->text;
            EXPECT_TRUE(parsed.call.action);
            EXPECT_EQ(innermost(*parsed.tree).get_option(name_of(*option))->count(), 1U);
        }
    });
}

TEST(Tree, EveryCommandHasHelp) {
    for_each_command([](const CLI::App&, Words words) {
        words.emplace_back("--help");
        const Parsed parsed(words);
        ASSERT_TRUE(parsed.answer);
        EXPECT_EQ(parsed.answer->code, 0);
        std::istringstream lines(parsed.answer->text);
        for (std::string line; std::getline(lines, line);)
            EXPECT_LE(line.size(), 120U) << line;
    });
}

TEST(Tree, EveryDescriptionIsASentence) {
    for_each_command([](const CLI::App& command, const Words& words) {
        const auto check = [&](const std::string& text, const std::string& name) {
            ASSERT_FALSE(text.empty()) << words.back() << " " << name;
            EXPECT_FALSE(text.ends_with('.')) << text; // it is added where a text is shown
        };
        check(command.get_description(), "");
        for (const auto* option : command.get_options())
            check(option->get_description(), option->get_name());
    });
}

TEST(Tree, GivesValues) {
    struct Case {
        const char *line, *option;
        Words values;
    };
    for (const auto& [line, option, values] : {
             Case{"containerize new --prefix=a -r b --requirements c env.yml", "-r", {"b", "c"}},
             Case{"containerize new --prefix a -r b env.yml", "SPEC", {"env.yml"}},
             Case{"containerize new -w bin,sbin --wrapper-paths lib/x env.yml",
                  "-w",
                  {"bin", "sbin", "lib/x"}},
             Case{"containerize new --host-profile slurm,/x env.yml", "--host-profile", {"slurm", "/x"}},
             Case{"containerize new --bind /a:/b:ro --bind /c env.yml", "--bind", {"/a:/b:ro", "/c"}},
             Case{"containerize new --profile python env.yml", "--profile", {"python"}},
             Case{"containerize update d -- pip install x", "DIR", {"d"}},
             Case{"containerize update d env.yml --prune", "SPEC", {"env.yml"}},
             Case{"containerize import-tykky old new", "NEWPREFIX", {"new"}},
             Case{"containerize rollback d 3 -q", "N", {"3"}},
             Case{"containerize run d -- bash -c x --help", "COMMAND", {"--", "bash", "-c", "x", "--help"}},
             Case{"containerize run d bash --help", "COMMAND", {"bash", "--help"}},
             Case{"containerize cache clean --unused-for 3", "--unused-for", {"3"}},
             Case{"containerize cache clean --unused-for 3 --max-size 20G", "--max-size", {"20G"}},
             Case{"containerize exec --with a[x] --with=[y] --conda", "--with", {"a[x]", "[y]"}},
             Case{"containerize exec --with-requirements a --with-requirements b",
                  "--with-requirements",
                  {"a", "b"}},
             Case{"conda-containerize new -w a,b env.yml --prefix p", "-w", {"a", "b"}},
             Case{"pip-containerize new --slim --pyver 3.12 req.txt", "env_file", {"req.txt"}},
             Case{"wrap-install /opt/x -w bin --mask", "dir", {"/opt/x"}},
         }) {
        const Parsed parsed(line);
        ASSERT_FALSE(parsed.answer) << line << ": " << parsed.answer->text;
        EXPECT_EQ(innermost(*parsed.tree).get_option(option)->results(), values) << line;
    }
}

TEST(Tree, SeparatesPrograms) {
    for (const char* command : {"update d", "dev d", "profile d", "launch", "job", "exec --with x"}) {
        const Parsed parsed(std::string("containerize ") + command + " -- prog [a,b] --help -- -q");
        ASSERT_FALSE(parsed.answer) << parsed.answer->text;
        EXPECT_EQ(parsed.call.program, (Words{"prog", "[a,b]", "--help", "--", "-q"}));
    }
}

TEST(Tree, ExplainsMistakes) {
    struct Case {
        const char *line, *text;
    };
    for (const auto& [line, text] : {
             Case{"containerize udpate x",
                  "unknown command: udpate; did you mean update? (see `containerize --help`)"},
             Case{"containerize nonsense", "unknown command: nonsense (see `containerize --help`)"},
             Case{"containerize nonsense --help", "unknown command: nonsense (see `containerize --help`)"},
             Case{"containerize --help udpate", "unknown command: udpate; did you mean update?"},
             Case{"containerize --hepl", "unknown argument: --hepl; did you mean --help?"},
             Case{"containerize cache inffo",
                  "unknown command: inffo; did you mean info? (see `containerize cache --help`)"},
             Case{"containerize cache info --jsno",
                  "unknown argument: --jsno; did you mean --json? (see `containerize cache info --help`)"},
             Case{"containerize new --prefx x --help",
                  "unknown argument: --prefx; did you mean --prefix? (see `containerize new --help`)"},
             Case{"containerize new --prefx", "unknown argument: --prefx; did you mean --prefix?"},
             Case{"containerize update d e pip", "unknown argument: pip; give a command to run after --"},
             Case{"containerize new", "SPEC is required"},
             Case{"containerize new --json e", "--json requires --dry-run"},
             Case{"containerize new -v -q e", "--verbose excludes --quiet"},
             Case{"containerize new --profile x --no-profile e", "--no-profile excludes --profile"},
             Case{"containerize cache clean --all --unused-for 3", "--unused-for excludes --all"},
             Case{"containerize cache clean --all --max-size 1G", "--max-size excludes --all"},
             Case{"containerize stage --brought x", " requires --node"},
             Case{"containerize new --jobs 0 e", "--jobs: Value 0 not in range 1 to 1024"},
             Case{"containerize new --jobs many e", "--jobs"},
             Case{"containerize new --gpu voodoo e", "--gpu: voodoo not in {auto,nvidia,amd,intel,none}"},
             Case{"containerize rollback x -1", "-1"},
             Case{"containerize rollback x many", "invalid value for N: 'many' ("},
             Case{"containerize base", "subcommand is required"},
             Case{"conda-containerize neew",
                  "unknown command: neew; did you mean new? (see `conda-containerize --help`)"},
             Case{"pip-containerize nonsense --help",
                  "unknown command: nonsense (see `pip-containerize --help`)"},
         }) {
        const Parsed parsed(line);
        ASSERT_TRUE(parsed.answer) << line;
        EXPECT_EQ(parsed.answer->code, 2) << line;
        EXPECT_TRUE(parsed.answer->text.contains(text)) << line << ": " << parsed.answer->text;
    }
}

TEST(Tree, ShowsHelpAndVersion) {
    EXPECT_TRUE(Parsed("containerize").answer->text.contains("Usage: containerize [OPTIONS] [COMMAND]"));
    EXPECT_TRUE(Parsed("containerize --version").answer->text.starts_with("containerize "));
    EXPECT_TRUE(Parsed("containerize dev --help")
                    .answer->text.contains("containerize dev [OPTIONS] DIR [-- COMMAND ...]"));
    EXPECT_FALSE(Parsed("containerize cache --help").answer->text.contains("first installation"));
    EXPECT_TRUE(Parsed("wrap-install").answer->text.contains("usage: wrap-install [OPTIONS] dir"));
    EXPECT_FALSE(Parsed("containerize activate demo --help").answer->code);
}

TEST(Tree, OptionsAgreeWithTheConfiguration) {
    Call unused;
    const auto tree = make_tree("containerize", unused);
    const auto* command = tree->get_subcommand("new");
    for (const auto& key : config::all_keys()) {
        EXPECT_FALSE(key.description.empty() || key.description.ends_with('.')) << key.name;
        EXPECT_NE(key.standard.empty(), key.otherwise.empty()) << key.name;
        for (const auto& choice : CLI::detail::split(std::string(key.choices), ','))
            EXPECT_TRUE(choice.empty() || choice == "..." || key.check(choice)) << key.name << ": " << choice;
        if (key.option.empty()) continue;
        const auto text = describe(*command->get_option(std::string(key.option)));
        EXPECT_TRUE(text.key == key.name || key.key == config::Key::environment) << key.name;
    }
}

TEST(Tree, DescribesOptions) {
    Call unused;
    const auto tree = make_tree("containerize", unused);
    const auto option = [&](const std::string& command, const std::string& name) {
        return describe(*tree->get_subcommand(command)->get_option(name));
    };
    EXPECT_EQ(option("new", "--quiet").names, (Words{"-q", "--quiet"}));
    EXPECT_EQ(option("new", "--quiet").description, "Show only warnings and errors (not with --verbose).");
    EXPECT_EQ(option("new", "--jobs").description, "Number of parallel workers (1 to 1024; default: as many "
                                                   "as CPUs and memory allow, at most 8 outside a job).");
    EXPECT_EQ(option("new", "--tmpdir").value, "DIR");
    EXPECT_EQ(option("new", "--tmpdir").offer, Offer::directories);
    EXPECT_EQ(option("new", "SPEC").offer, Offer::files);
    EXPECT_EQ(option("new", "--installer").choices, (Words{"auto", "pip", "uv", "pip-tree"}));
    EXPECT_TRUE(option("new", "--bind").is_repeatable);
    EXPECT_TRUE(option("job", "--site").description.contains("or the variable CONTAINERIZE_SITE"));
    EXPECT_EQ(option("activate", "INSTALLATION").offer, Offer::installations);
    const auto kinds = option("job", "--kind").choices;
    EXPECT_TRUE(std::ranges::find(kinds, "torchrun") != kinds.end());
}

} // namespace

} // namespace containerize::cli
