#include "build/provide_environment.h"

#include "build/build.h"
#include "core/filesystem.h"
#include "core/staging.h"
#include "core/text.h"
#include "prefix/cleanup_process.h"
#include "util/own_process.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace containerize::build {

namespace {

/// Names the option in place of the file that was made of it.
Error in_terms_of_options(Error error, const CommandRequest& request, const fs::path& specification) {
    if (error.where == specification.string() || error.where.starts_with(specification.string() + ":"))
        error.where = request.packages.empty() ? "--with-requirements" : "--with";
    for (auto* text : {&error.why, &error.hint})
        replace_all(*text, specification.string(), specification_name(request));
    return error;
}

Status build_into(const ClaimedEnvironment& claimed, inputs::BuildOptions options) {
    options.prefix = claimed.prefix().string();
    return in_own_process([&]() -> Status {
        umask(options.umask_bits);
        TRY(build(options));
        return {};
    });
}

/// Whatever happens to this process, the clean-up process removes what is not shared.
Result<ClaimedEnvironment> claim_and_build(const std::string& key, const CommandRequest& request,
                                           const inputs::BuildOptions& options,
                                           const ProvideOptions& provide) {
    const CommandEnvironments environments(provide.directory);
    auto claimed = TRY(environments.claim(key, words_of(request), provide.anew));
    if (claimed.complete) return claimed;
    auto cleanup = TRY(prefix::CleanupProcess::start());
    cleanup.remove_tree_later(options.spec.parent_path());
    cleanup.remove_tree_later(claimed.directory);
    TRY(build_into(claimed, options));
    cleanup.keep_all_but({options.spec.parent_path()});
    TRY(environments.share(claimed, provide.limit));
    return claimed;
}

Result<ClaimedEnvironment> provide_from(const CommandRequest& request, const inputs::BuildOptions& options,
                                        const ProvideOptions& provide) {
    inputs::Inputs inputs;
    TRY(inputs::read_spec(options, inputs));
    const auto machine = TRY(machine_of(options, inputs));
    return claim_and_build(key_of(request, options, inputs, machine), request, options, provide);
}

} // namespace

Result<ClaimedEnvironment> provide_environment(const CommandRequest& request, inputs::BuildOptions options,
                                               const ProvideOptions& provide) {
    TRY(check_packages(request));
    sweep_staging(options.staging_parent);
    const auto staging = TRY(Staging::create(options.staging_parent));
    options.spec = staging.path() / specification_name(request);
    options.profile = false;
    TRY(write_file(options.spec, specification_of(request)));
    auto provided = provide_from(request, options, provide);
    if (!provided) return fail(in_terms_of_options(std::move(provided.error()), request, options.spec));
    return provided;
}

} // namespace containerize::build
