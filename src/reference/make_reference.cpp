// Usage: make_reference SOURCE BUILD. Writes to BUILD what cmake --install installs, and to
// BUILD/docs/reference what the documentation shows. SOURCE has the completion scripts, into which the
// commands are put.
#include "core/filesystem.h"
#include "core/text.h"
#include "pages.h"

#include <cstdio>

#include <fmt/format.h>

namespace {

using namespace containerize;
using namespace containerize::reference;

struct Program {
    std::unique_ptr<CLI::App> tree;
    std::vector<Command> commands;
};

Status write_all(const fs::path& directory, const std::vector<Page>& pages) {
    std::error_code failed;
    fs::remove_all(directory, failed);
    fs::create_directories(directory, failed);
    for (const auto& page : pages)
        TRY(write_file(directory / page.file, page.text));
    return {};
}

using Table = std::string (*)(const std::vector<Command>& commands);

Result<Page> completion(const fs::path& script, const std::string& file, Table table,
                        const std::vector<Program>& programs) {
    auto text = TRY(read_file(script));
    std::string all;
    for (const auto& program : programs)
        all += table(program.commands);
    replace_all(text, "@table@\n", all);
    return Page{file, text};
}

Status run(const fs::path& source, const fs::path& build) {
    cli::Call unused;
    std::vector<Program> programs;
    std::vector<std::string_view> names(cli::programs.begin(), cli::programs.end());
    names.push_back(cli::tykky_function);
    std::vector<Command> commands; // without the shell function
    std::vector<Page> manual;
    for (const auto name : names) {
        auto& program = programs.emplace_back();
        program.tree = cli::make_tree(name, unused);
        program.commands = with_subcommands(*program.tree, std::string(name));
        if (name == cli::tykky_function) continue;
        commands.insert(commands.end(), program.commands.begin(), program.commands.end());
        const auto pages = manual_pages(program.commands);
        manual.insert(manual.end(), pages.begin(), pages.end());
    }
    TRY(write_all(build / "docs/reference", markdown_pages(commands)));
    TRY(write_all(build / "share/man/man1", manual));
    struct Shell {
        const char *script, *directory, *file;
        Table table;
    };
    for (const auto& shell :
         {Shell{"completion.bash", "share/bash-completion/completions", "containerize", table_for_bash},
          Shell{"completion.zsh", "share/zsh/site-functions", "_containerize", table_for_zsh},
          Shell{"completion.fish", "share/fish/vendor_completions.d", "containerize.fish", table_for_fish}}) {
        auto page = TRY(completion(source / shell.script, shell.file, shell.table, programs));
        const fs::path directory = build / shell.directory;
        TRY(write_all(directory, {page}));
        // bash and fish look for a file with the command's name. In zsh, the file itself says what it is for.
        for (const auto name : std::vector(names.begin() + 1, names.end()))
            if (std::string_view(shell.file).starts_with("containerize"))
                fs::create_symlink(
                    shell.file, directory / (std::string(name) + fs::path(shell.file).extension().string()));
    }
    return {};
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto done = run(argv[1], argv[2]);
    if (!done) fmt::print(stderr, "make_reference: {}\n", to_string(done.error()));
    return done ? 0 : 1;
}
