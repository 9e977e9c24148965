#include "cli/command.h"
#include "cli/configured.h"
#include "cli/exec.h"
#include "cli/installation.h"
#include "diagnosis/diagnosis.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using diagnosis::Finding;

constexpr const char* verdict_names[] = {"ok", "note", "missing"};

struct DoctorArguments {
    std::string prefix;
    bool as_json = false;
};

/// With these errors, builds and most other commands fail.
Finding finding_of(const char* name, const Error& error) {
    return {.name = name,
            .verdict = Finding::Verdict::missing,
            .found = redacted(fmt::format("{}: {}: {}", error.where, error.what, error.why)),
            .advice = redacted(error.hint)};
}

Result<int> run_doctor(const DoctorArguments& arguments) {
    const auto configured = Configured::read();
    auto findings = diagnosis::diagnose(
        arguments.prefix, configured ? configured->text(config::Key::python, {}) : std::string());
    if (!configured) findings.push_back(finding_of("configuration", configured.error()));
    if (const auto complete = check_installation_tree(); !complete)
        findings.push_back(finding_of("containerize", complete.error()));
    // A prefix may be that of a new installation, and there need not be an active one.
    if (const auto installation = find_installation(arguments.prefix))
        findings.push_back(
            diagnosis::diagnose_programs(*installation, installation_tree() / "libexec/containerize"));
    const bool usable = std::ranges::none_of(
        findings, [](const Finding& finding) { return finding.verdict == Finding::Verdict::missing; });
    if (arguments.as_json) {
        nlohmann::json list = nlohmann::json::array();
        for (const auto& finding : findings)
            list.push_back({{"name", finding.name},
                            {"verdict", verdict_names[static_cast<std::size_t>(finding.verdict)]},
                            {"found", finding.found},
                            {"advice", finding.advice}});
        fmt::print("{}\n", nlohmann::json{{"usable", usable}, {"findings", list}}.dump(2));
        return usable ? 0 : 1;
    }
    for (const auto& finding : findings) {
        fmt::print("{:8} {:22} {}\n", verdict_names[static_cast<std::size_t>(finding.verdict)], finding.name,
                   finding.found);
        for (const auto& line : split_lines(finding.advice))
            fmt::print("{:31} {}\n", "", line);
    }
    fmt::print("\n{}\n", usable ? "Installations can be built and run on this machine."
                                : "This machine lacks something that installations need.");
    return usable ? 0 : 1;
}

} // namespace

void add_doctor(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("doctor", "Show what this machine allows and what is missing");
    const auto arguments = std::make_shared<DoctorArguments>();
    command
        ->add_option("--prefix", arguments->prefix,
                     "Also check this installation, or whether one can be in this directory")
        ->type_name("DIR");
    command->add_flag("--json", arguments->as_json, json_description);
    command->footer("Of an installation, the version of its programs is shown. Without --prefix, this is the "
                    "active installation, else that\nof the first python on PATH, if there is one.");
    on(*command, call, [arguments] { return run_doctor(*arguments); });
}

} // namespace containerize::cli
