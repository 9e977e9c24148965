#include "install/base.h"

#include "base/base.h"
#include "image/layers_view.h"
#include "util/filesystem.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string>

#include <gnu/libc-version.h>

namespace containerize::install {

namespace {

/// The host's settings and CA certificates that package installers read.
constexpr std::array<const char*, 4> installer_settings = {"/etc/pip.conf", "/etc/uv", "/etc/ssl",
                                                           "/etc/pki"};

/// Paths named by the environment variables that package installers read.
std::vector<std::string> paths_in(const Environment& environment) {
    constexpr std::array<std::string_view, 5> others = {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
                                                        "CURL_CA_BUNDLE", "NETRC"};
    std::vector<std::string> paths;
    for (const auto& [name, value] : environment) {
        const bool counts = name.starts_with("PIP_") || name.starts_with("UV_") ||
                            std::ranges::find(others, name) != others.end();
        std::istringstream words(counts ? value : std::string());
        for (std::string word; words >> word;)
            if (word.starts_with('/') && stays_below(word.substr(1))) paths.push_back(word);
    }
    return paths;
}

/// Whether `directory` lies below /opt, /var or /root: a base has these too, but not the host's files in
/// them.
bool is_users_own(const fs::path& directory) {
    const auto relative = directory.relative_path();
    if (std::distance(relative.begin(), relative.end()) < 2) return false;
    const auto top = relative.begin()->string();
    return top == "opt" || top == "var" || top == "root";
}

/// glibc 2.28, the baseline of manylinux_2_28: current wheels and conda-forge packages need it or newer.
constexpr int oldest_glibc_minor = 28;

/// The variables that an image sets, without those that must stay the caller's.
std::vector<runtime::EnvironmentChange> changes_by(const std::vector<std::string>& variables) {
    using runtime::EnvironmentChange;
    constexpr std::array<std::string_view, 7> of_caller = {"HOME", "USER", "LOGNAME", "SHELL",
                                                           "TERM", "PWD",  "HOSTNAME"};
    std::vector<EnvironmentChange> changes;
    for (const auto& variable : variables) {
        const auto equals = variable.find('=');
        if (equals == 0 || equals == std::string::npos) continue;
        const auto name = variable.substr(0, equals);
        if (std::ranges::find(of_caller, name) != of_caller.end()) continue;
        const auto kind = name == "PATH" ? EnvironmentChange::Kind::prepend : EnvironmentChange::Kind::set;
        changes.push_back({kind, name, variable.substr(equals + 1)});
    }
    return changes;
}

/// The root of a build: the base, plus every path of the host that the build needs.
runtime::RootRequest build_root(const runtime::Base& base, const Inputs& inputs, const fs::path& prefix,
                                const fs::path& staging) {
    runtime::RootRequest request{.base = base,
                                 .needed = {prefix.string(), staging.string()},
                                 .binds = inputs.binds,
                                 .offered = {},
                                 .user = {},
                                 .home = {},
                                 .shell = {},
                                 .inject = {}};
    // The build's inputs are on the host, even if the finished programs are isolated from it.
    request.base.isolate = false;
    // Only nodes that run the programs must have the binds, and the build may write to them.
    for (auto& bind : request.binds)
        bind.required = bind.read_only = false;
    for (const auto& [name, field] : {std::pair{"USER", &request.user}, std::pair{"HOME", &request.home},
                                      std::pair{"SHELL", &request.shell}})
        if (const auto found = inputs.environment.find(name); found != inputs.environment.end())
            *field = found->second;
    for (const auto& file : inputs.files)
        request.needed.push_back(file.string());
    if (inputs.tykky) request.needed.push_back(inputs.tykky->image.string());
    if (inputs.uv) request.needed.push_back(inputs.uv->string());
    if (is_users_own(inputs.working_directory)) request.needed.push_back(inputs.working_directory.string());
    request.needed.insert(request.needed.end(), installer_settings.begin(), installer_settings.end());
    const auto named = paths_in(inputs.environment);
    request.needed.insert(request.needed.end(), named.begin(), named.end());
    return request;
}

} // namespace

bool host_serves() {
    int major = 0, minor = 0;
    std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
    return major > 2 || minor >= oldest_glibc_minor;
}

Result<runtime::Base> find_base(const BuildOptions& options, const std::string& asked) {
    const std::string reference = asked != "auto" ? asked : host_serves() ? "host" : options.auto_base;
    if (reference.empty())
        return fail_input(
            "this host's C library is too old for current packages, and no image is configured instead",
            std::string("it is version ") + gnu_get_libc_version(), {},
            "Set `auto_base` in the configuration, or give --base an image.");
    if (reference == "host") return runtime::Base();
    auto image = base::obtain(reference, options.bases);
    if (!image) return fail(std::move(image.error()));
    return runtime::Base{.reference = std::move(image->reference),
                         .digest = std::move(image->digest),
                         .file = std::move(image->file),
                         .offset = image->offset,
                         .isolate = false,
                         .environment = changes_by(image->config.environment)};
}

Result<std::unique_ptr<image::TreeView>> open_tree(const runtime::Base& base) {
    std::error_code failed;
    if (base.is_host() || fs::is_directory(base.file, failed))
        return std::make_unique<image::DirectoryView>(base.is_host() ? "/" : base.file);
    auto files = runtime::open_base(base);
    if (!files) return fail(std::move(files.error()));
    auto layers = image::Layers::open(std::move(*files));
    if (!layers) return fail(std::move(layers.error()));
    return std::make_unique<image::LayersView>(std::move(*layers));
}

Result<runtime::BuildNamespace> make_namespace(const Inputs& inputs, const fs::path& prefix,
                                               const fs::path& staging) {
    if (inputs.base.is_host() && inputs.binds.empty()) return runtime::BuildNamespace::create();
    std::error_code failed;
    const auto work = staging / "base";
    fs::create_directory(work, failed);
    if (failed) return fail_errno("cannot make a staging directory", work.string(), failed.value());
    return runtime::BuildNamespace::create(build_root(inputs.base, inputs, prefix, staging), work);
}

} // namespace containerize::install
