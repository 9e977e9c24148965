#include "build/record_profile.h"
#include "cli/command.h"
#include "cli/exec.h"
#include "cli/installation.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "manifest/manifest.h"
#include "prefix/programs.h"
#include "util/progress.h"

#include <memory>
#include <sstream>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

using nlohmann::json;

struct InspectArguments : ShowArguments {
    bool packages = false;
};

std::size_t count_commands(const fs::path& prefix, const manifest::Manifest& manifest) {
    std::size_t count = 0;
    std::error_code failed;
    for (const auto& path : manifest.wrapper_paths)
        for (const auto& entry : entries_in(prefix / path, failed)) {
            const auto permissions = entry.status(failed).permissions();
            const bool executable = (permissions & fs::perms::owner_exec) != fs::perms::none;
            const auto name = entry.path().filename().string();
            const bool ours = name.starts_with("_debug_") || name == "containerize-rank";
            if (executable && !ours) ++count;
        }
    return count;
}

json profile_of(const fs::path& prefix) {
    const auto coverage = build::profile_coverage(prefix);
    if (!coverage || coverage->blocks == 0) return nullptr;
    return {{"blocks", coverage->blocks}, {"bytes", coverage->bytes}, {"requests", coverage->requests}};
}

json layers_of(const manifest::Manifest& manifest) {
    json layers = json::array();
    for (const auto& layer : manifest.layers)
        layers.push_back({{"file", layer.file}, {"bytes", layer.size}, {"sha256", layer.sha256}});
    return layers;
}

json describe(const prefix::Programs& programs, const fs::path& prefix) {
    return {{"version", programs.version},
            {"difference", prefix::difference(programs)},
            {"command", prefix::command_to_upgrade(programs, prefix)}};
}

Result<json> describe(const fs::path& prefix) {
    auto manifest = TRY(manifest::read_manifest(prefix));
    const auto programs = prefix::programs_of(manifest, prefix, installation_tree() / "libexec/containerize");
    const auto session = live_session(prefix);
    return json{
        {"path", prefix.string()},
        {"built_for", manifest.prefix.string()},
        {"moved", manifest.prefix != prefix},
        {"created", manifest.created},
        {"tool_version", manifest.tool_version},
        {"programs", describe(programs, prefix)},
        {"base", manifest.settings.base.reference},
        {"engine", manifest.settings.engine},
        {"image",
         {{"file", manifest.image.file}, {"bytes", manifest.image.size}, {"sha256", manifest.image.sha256}}},
        {"layers", layers_of(manifest)},
        {"state", manifest.state},
        {"wrapper_paths", manifest.wrapper_paths},
        {"commands", count_commands(prefix, manifest)},
        {"profile", profile_of(prefix)},
        {"prefetch", manifest.settings.prefetch},
        {"stage", manifest.settings.stage},
        {"session_pid", session ? session->supervisor : 0},
        {"build", manifest.build}};
}

void print_programs(const json& programs) {
    fmt::print("Programs      of containerize {}", printable_line(programs.value("version", "")));
    if (const auto difference = programs.value("difference", ""); !difference.empty())
        fmt::print(", {}", difference);
    if (const auto command = programs.value("command", ""); !command.empty())
        fmt::print(": `{}` replaces them", printable_line(command));
    fmt::print("\n");
}

void print(const json& about) {
    const auto& image = about.at("image");
    const auto& build = about.at("build");
    const auto text = [](const json& object, const char* name) {
        return printable_line(object.value(name, ""));
    };
    fmt::print("Installation  {}\n", text(about, "path"));
    if (about.at("moved").get<bool>())
        fmt::print("Moved         built for {}, a path that exists only inside\n", text(about, "built_for"));
    fmt::print("Created       {} by containerize {}\n", text(about, "created"), text(about, "tool_version"));
    print_programs(about.at("programs"));
    fmt::print("Base          {}\n", text(about, "base"));
    fmt::print("Engine        {}\n", text(about, "engine"));
    if (build.contains("python")) {
        const auto& python = build["python"];
        fmt::print("Python        {} from {}{}\n", text(python, "version"),
                   python.contains("channel") ? "conda: " + text(python, "channel")
                                              : text(python, "executable"),
                   python.value("bundled", false) ? ", bundled" : "");
    }
    fmt::print("Image         {}, {}, {}, sha256 {}\n", text(image, "file"),
               human_bytes(image.at("bytes").get<std::uint64_t>()),
               counted(build.value("files", 0ULL), "file"), text(image, "sha256"));
    for (const auto& layer : about.at("layers"))
        fmt::print("Layer         {}, {}, sha256 {}\n", text(layer, "file"),
                   human_bytes(layer.at("bytes").get<std::uint64_t>()), text(layer, "sha256"));
    fmt::print("State         {}\n", about.at("state").get<unsigned>());
    fmt::print("Commands      {}\n", about.at("commands").get<std::size_t>());
    if (const auto& profile = about.at("profile"); profile.is_null())
        fmt::print("Profile       none, so nothing is read ahead\n");
    else
        fmt::print("Profile       {} recorded, in {}; read ahead: {}\n",
                   human_bytes(profile.at("bytes").get<std::uint64_t>()),
                   counted(profile.at("requests").get<std::uint64_t>(), "request"),
                   about.at("prefetch") == "auto" ? "if the images are on a network filesystem (auto)"
                                                  : text(about, "prefetch"));
    if (const auto stage = text(about, "stage"); stage != "auto") fmt::print("Copies        {}\n", stage);
    const auto pid = about.at("session_pid").get<pid_t>();
    fmt::print("Session       {}\n", pid == 0 ? "none on this node" : "process " + std::to_string(pid));
}

/// Prints share/packages.txt, written by the build.
Result<int> list_packages(const fs::path& prefix, bool as_json) {
    auto text = TRY(read_file(prefix / "share/packages.txt"));
    if (!as_json) {
        fmt::print("{}", printable(text));
        return 0;
    }
    json packages = json::array();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, version, build, channel;
        words >> name >> version >> build >> channel;
        // Lists by pip have "name==version".
        if (const auto equals = name.find("=="); equals != std::string::npos) {
            version = name.substr(equals + 2);
            name.resize(equals);
            channel = "pypi";
        }
        packages.push_back({{"name", name}, {"version", version}, {"build", build}, {"channel", channel}});
    }
    fmt::print("{}\n", packages.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
}

Result<int> run_inspect(const InspectArguments& arguments) {
    auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    if (arguments.packages) return list_packages(prefix, arguments.as_json);
    auto about = TRY(describe(prefix));
    if (arguments.as_json)
        fmt::print("{}\n", about.dump(2, ' ', false, json::error_handler_t::replace));
    else
        print(about);
    return 0;
}

} // namespace

void add_inspect(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("inspect", "Show what an installation consists of");
    const auto arguments = std::make_shared<InspectArguments>();
    add_installation(*command, arguments->directory);
    command->add_flag("--packages", arguments->packages, "List its packages");
    command->add_flag("--json", arguments->as_json, json_description);
    on(*command, call, [arguments] { return run_inspect(*arguments); });
}

} // namespace containerize::cli
