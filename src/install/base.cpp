#include "install/base.h"

#include "util/filesystem.h"

#include <algorithm>
#include <array>
#include <string>

namespace containerize::install {

namespace {

/// Settings of the host for programs that install packages.
constexpr std::array<const char*, 3> installer_settings = {"/etc/pip.conf", "/etc/uv/uv.toml",
                                                           "/etc/containerize"};

/// A directory that only the host has, though a base has one of that name, too: a user's own in /opt or /var.
bool is_users_own(const fs::path& directory) {
    const auto relative = directory.relative_path();
    if (std::distance(relative.begin(), relative.end()) < 2) return false;
    const auto top = relative.begin()->string();
    return top == "opt" || top == "var" || top == "root";
}

/// A build's root: it sees what the build works with, wherever that is.
runtime::RootRequest build_root(const runtime::Base& base, const Inputs& inputs, const fs::path& prefix,
                                const fs::path& staging) {
    runtime::RootRequest request{.base = base,
                                 .needed = {prefix.string(), staging.string()},
                                 .binds = {},
                                 .user = {},
                                 .home = {},
                                 .shell = {},
                                 .inject = {}};
    // What is to be built comes from the host, whatever the finished programs may see of it.
    request.base.isolate = false;
    for (const auto& [name, field] : {std::pair{"USER", &request.user}, std::pair{"HOME", &request.home},
                                      std::pair{"SHELL", &request.shell}})
        if (const auto found = inputs.environment.find(name); found != inputs.environment.end())
            *field = found->second;
    for (const auto& file : inputs.files)
        request.needed.push_back(file.string());
    if (inputs.uv) request.needed.push_back(inputs.uv->string());
    if (is_users_own(inputs.working_directory)) request.needed.push_back(inputs.working_directory.string());
    request.needed.insert(request.needed.end(), installer_settings.begin(), installer_settings.end());
    return request;
}

} // namespace

Result<runtime::Base> find_base(const BuildOptions&, const std::string& reference) {
    if (reference == "host") return runtime::Base();
    auto file = resolve(reference);
    if (!file) return fail(std::move(file.error()));
    return runtime::Base{.reference = reference,
                         .digest = {},
                         .file = std::move(*file),
                         .offset = 0,
                         .isolate = false,
                         .environment = {}};
}

runtime::Base base_of(const runtime::Manifest& manifest) {
    auto base = manifest.base;
    if (!base.is_host() && base.file.is_relative()) base.file = manifest.prefix / base.file;
    return base;
}

Result<runtime::BuildNamespace> make_namespace(const Inputs& inputs, const fs::path& prefix,
                                               const fs::path& staging) {
    if (inputs.base.is_host()) return runtime::BuildNamespace::create();
    std::error_code failed;
    const auto work = staging / "base";
    fs::create_directory(work, failed);
    if (failed) return fail_errno("cannot make a staging directory", work.string(), failed.value());
    return runtime::BuildNamespace::create(build_root(inputs.base, inputs, prefix, staging), work);
}

} // namespace containerize::install
