#include "environments/link_scripts.h"

#include "core/filesystem.h"
#include "util/log.h"

namespace containerize::environments {

namespace {

/// Sources the script, as conda does, because it may end with `return`.
Command command_of(const BuildContext& context, const conda::LinkScript& script) {
    std::string program = script.before ? ""
                                        : "for one in \"$PREFIX\"/etc/conda/activate.d/*.sh; do [ ! -f "
                                          "\"$one\" ] || . \"$one\"; done; ";
    program += "one=$1; shift; . \"$one\"";
    auto command = context.inside(
        {"bash", "--noprofile", "--norc", "-c", program, "bash", (context.prefix / script.path).string()});
    auto& environment = *command.environment;
    environment["PREFIX"] = environment["ROOT_PREFIX"] = environment["CONDA_ROOT_PREFIX"] =
        context.prefix.string();
    environment["PKG_NAME"] = script.package.name;
    environment["PKG_VERSION"] = script.package.version;
    environment["PKG_BUILDNUM"] = std::to_string(script.package.build_number);
    environment["PKG_BUILD"] = script.package.build;
    if (script.before) environment["SOURCE_DIR"] = context.prefix.string();
    environment["PATH"] = (context.prefix / "bin").string() + ":" + search_path(environment);
    return command;
}

// Shows and removes the file into which scripts write messages for the user.
void show_message(const BuildContext& context, const std::string& package) {
    const auto messages = context.root() / ".messages.txt";
    const auto text = read_file(messages);
    if (!text || text->empty()) return;
    log::info(package + " printed:\n" + *text);
    std::error_code ignored;
    fs::remove(messages, ignored);
}

} // namespace

Status run_link_scripts(const BuildContext& context, const std::vector<conda::LinkScript>& scripts) {
    if (scripts.empty()) return {};
    Stage stage("Running link scripts");
    for (const auto& script : scripts) {
        auto command = command_of(context, script);
        command.on_line = [&stage](std::string_view line) { stage.detail(line); };
        auto outcome = TRY(run(command));
        show_message(context, script.package.name);
        if (outcome.ok()) continue;
        return fail(
            {.what = std::string("the ") + (script.before ? "pre-link" : "post-link") + " script of " +
                     script.package.distribution() + " failed",
             .why = "exit code " + std::to_string(outcome.exit_code) + "\n" + tail(outcome.output, 12),
             .hint = "Request another version of " + script.package.name +
                     ", or tell the package's maintainers."});
    }
    stage.finish(human_count(scripts.size()));
    return {};
}

void run_unlink_scripts(const BuildContext& context, const std::vector<conda::PackageRecord>& packages) {
    for (const auto& package : packages) {
        const conda::LinkScript script{
            .package = package, .path = "bin/." + package.name + "-pre-unlink.sh", .before = false};
        std::error_code failed;
        if (!fs::is_regular_file(fs::symlink_status(context.root() / script.path, failed))) continue;
        const auto outcome = run(command_of(context, script));
        show_message(context, package.name);
        if (!outcome || !outcome->ok())
            log::warn("the pre-unlink script of " + package.distribution() +
                      " failed. The package is removed anyway.");
    }
}

} // namespace containerize::environments
