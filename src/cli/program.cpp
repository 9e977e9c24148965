#include "cli/program.h"

#include "cli/exec.h"
#include "cli/parse.h"
#include "cli/tree.h"
#include "cli/tykky.h"
#include "core/exit_code.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "util/process.h"
#include "util/redact.h"

#include <cstdio>
#include <filesystem>

namespace containerize::cli {

namespace {

int report(const Error& error) {
    std::fprintf(stderr, "containerize: %s\n", redacted(to_string(error)).c_str());
    if (interrupted()) return exit_signal + interrupt_signal();
    return error.fault == Fault::input ? exit_usage : exit_failure;
}

} // namespace

int run_program(int argc, char** argv) {
    Call call{.words = {argv, argv + argc}, .program = {}, .line = {}, .action = {}};
    remember_secrets_of(current_environment());
    remember_secrets_of(call.words);
    if (call.words.empty()) call.words.emplace_back();
    const auto called = std::filesystem::path(call.words.front()).filename().string();
    const bool as_tykky = is_name_of_tykky(called);
    call.words.front() = as_tykky ? called : programs.front();
    call.line = redacted_command(call.words);
    if (as_tykky) write_as_tykky();
    const auto tree = make_tree(call.words.front(), call);
    if (const auto answer = parse(*tree, call)) {
        const auto text = answer->code == 0 ? answer->text : redacted(answer->text);
        if (answer->code == 0)
            std::fputs(text.c_str(), stdout);
        else if (as_tykky)
            show_mistake_as_tykky(answer->command, text);
        else
            std::fprintf(stderr, "containerize: %s\n", text.c_str());
        return answer->code;
    }
    hide_secrets_of_process(argc, argv);
    const auto place = installation_tree();
    auto done = call.action();
    if (done) return *done;
    if (!quiet::exists(place / "bin"))
        done.error().hint = "containerize was moved or removed while it ran: it was in " + place.string() +
                            ". Run the command again.";
    return as_tykky ? report_as_tykky(std::move(done.error()), *tree) : report(done.error());
}

} // namespace containerize::cli
