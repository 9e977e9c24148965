#include "environments/root_of_build.h"

#include "core/filesystem.h"
#include "root/root.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::environments {

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

/// The root of a build: the base, plus every path of the host that the build needs.
root::RootRequest build_root(const manifest::Base& base, const inputs::Inputs& inputs, const fs::path& prefix,
                             const fs::path& staging) {
    root::RootRequest request{
        .base = base, .needed = {prefix.string(), staging.string()}, .binds = inputs.settings.binds};
    // The build's inputs are on the host, even if the finished programs are isolated from it.
    request.base.isolate = false;
    // Only nodes that run the programs must have the binds, and the build may write to them.
    for (auto& bind : request.binds)
        bind.required = bind.read_only = false;
    for (const auto& [name, field] : {std::pair{Variable("USER"), &request.user},
                                      {Variable("HOME"), &request.home},
                                      {Variable("SHELL"), &request.shell}})
        *field = variable(inputs.environment, name);
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

Result<BuildNamespace> make_namespace(const inputs::Inputs& inputs, const fs::path& prefix,
                                      const fs::path& staging) {
    if (inputs.settings.base.is_host() && inputs.settings.binds.empty()) return BuildNamespace::create();
    const auto work = staging / "base";
    TRY(make_directory(work, "cannot create a staging directory"));
    const auto request = build_root(inputs.settings.base, inputs, prefix, staging);
    return BuildNamespace::create([&]() -> Status {
        TRY(launch::enter_namespaces());
        const auto entered = TRY(root::enter_root(request, work));
        return {};
    });
}

} // namespace containerize::environments
