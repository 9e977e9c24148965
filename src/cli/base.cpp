#include "base/bootstrap.h"
#include "cli/command.h"
#include "cli/configured.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/printable.h"
#include "util/progress.h"

#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using nlohmann::json;

struct BaseArguments {
    std::string reference;
    bool as_json = false;
    base::BootstrapOptions bootstrap;
};

Result<base::Options> options_in_use() {
    const auto configured = TRY(Configured::read());
    return configured.bases();
}

Result<int> run_pull(const BaseArguments& arguments) {
    auto options = TRY(options_in_use());
    options.refresh = true;
    auto image = TRY(base::obtain(arguments.reference, options));
    fmt::print("{}\n", image.digest.empty() ? image.file.string() : image.digest);
    return 0;
}

json as_json(const base::StoredImage& image, bool is_site) {
    return {{"references", image.references},
            {"digest", image.digest},
            {"file", image.file.string()},
            {"bytes", image.size},
            {"architecture", image.config.platform.architecture},
            {"environment", image.config.environment},
            {"site", is_site}};
}

Result<int> run_list(const BaseArguments& arguments) {
    auto options = TRY(options_in_use());
    auto stores = options.site_stores;
    stores.push_back(options.store);
    json all = json::array();
    for (const auto& store : stores)
        for (const auto& image : base::list_images(store)) {
            all.push_back(as_json(image, store != options.store));
            if (arguments.as_json) continue;
            fmt::print("{}  {:>9}  {}\n", image.digest.substr(0, image.digest.find(':') + 13),
                       human_bytes(image.size),
                       image.references.empty()
                           ? "(no name)"
                           : printable_line(fmt::format("{}", fmt::join(image.references, ", "))));
        }
    if (arguments.as_json) fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
}

/// Finds an image in the user's store by reference, digest or the beginning of a digest.
Result<base::StoredImage> find_own(const std::string& name, const fs::path& store) {
    const auto reference = base::parse_reference(name);
    const auto spelled = reference ? reference->text : name;
    if (auto found = base::find_image({store}, spelled)) return std::move(*found);
    std::vector<base::StoredImage> similar;
    for (auto& image : base::list_images(store))
        if (const auto digits = image.digest.substr(image.digest.find(':') + 1);
            name.size() >= 6 && (image.digest.starts_with(name) || digits.starts_with(name)))
            similar.push_back(std::move(image));
    if (similar.size() == 1) return std::move(similar.front());
    return fail_input(similar.empty() ? "there is no such base image" : "several base images match", {}, name,
                      "`containerize base list` lists them. You cannot remove the site's images.");
}

Result<int> run_remove(const BaseArguments& arguments) {
    auto options = TRY(options_in_use());
    auto image = TRY(find_own(arguments.reference, options.store));
    TRY(base::remove_image(options.store, image));
    fmt::print("Removed {}, {}\n", image.digest, human_bytes(image.size));
    return 0;
}

Result<int> run_bootstrap(const BaseArguments& arguments) {
    auto options = TRY(options_in_use());
    auto image = TRY(base::bootstrap(arguments.bootstrap, options));
    fmt::print("{}\n", image.reference);
    return 0;
}

} // namespace

void add_base(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("base", "Manage base images: root filesystems that programs can run in");
    command->require_subcommand(1);
    const auto arguments = std::make_shared<BaseArguments>();
    const auto add = [&](const char* name, const char* description,
                         Result<int> (*run)(const BaseArguments&)) {
        auto* one = command->add_subcommand(name, description);
        on(*one, call, [arguments, run] {
            catch_interrupts();
            return run(*arguments);
        });
        return one;
    };
    add("pull", "Fetch an image into the store, and print its digest", run_pull)
        ->add_option("REFERENCE", arguments->reference,
                     "The image: docker://NAME[:TAG][@DIGEST], oci:DIR[:TAG], oci-archive:FILE or "
                     "docker-archive:FILE")
        ->required();
    add("list", "List the images of your store and of the site", run_list)
        ->add_flag("--json", arguments->as_json, json_description);
    add("remove", "Remove an image. Installations that use it no longer start", run_remove)
        ->add_option("IMAGE", arguments->reference,
                     "Its reference or digest, as `containerize base list` shows it")
        ->required();
    auto* bootstrap =
        add("bootstrap", "Make a small image of this host's C library, shell and tools, and print its name",
            run_bootstrap);
    bootstrap
        ->add_option("-o,--output", arguments->bootstrap.output,
                     "File to write, instead of an image in the store")
        ->type_name("FILE");
    bootstrap->add_flag("--python", arguments->bootstrap.python, "Include the host's python3");
}

} // namespace containerize::cli
