#include "environments/conda_contents.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace containerize::environments {

namespace fs = std::filesystem;

Result<CondaContents> read_contents(const fs::path& root, const std::string& python_name) {
    auto packages = TRY(conda::read_installed(root));
    CondaContents contents{.packages = std::move(packages), .of_conda = {}, .of_pip = {}};
    if (python_name.empty()) return contents;
    std::set<std::string> files;
    for (const auto& package : contents.packages)
        files.insert(package.files.begin(), package.files.end());
    const std::string site_packages = "lib/" + python_name + "/site-packages";
    for (auto& one : pip::read_distributions(root / site_packages)) {
        auto& list = files.contains(site_packages + "/" + one.metadata) ? contents.of_conda : contents.of_pip;
        list.push_back(std::move(one));
    }
    return contents;
}

void record_contents(const CondaContents& contents, const std::string& python_name, BuildContext& context) {
    context.record["conda_packages"] = contents.packages.size();
    context.record.erase("python");
    for (const auto& package : contents.packages)
        if (package.record.name == "python" && !python_name.empty())
            context.record["python"] = {{"version", package.record.version},
                                        {"executable", context.python().string()},
                                        {"channel", package.record.channel},
                                        {"bundled", true}};
}

bool only_python_is_requested(const CondaContents& contents) {
    return std::ranges::all_of(contents.packages, [](const conda::InstalledPackage& package) {
        return package.requested.empty() || package.record.name == "python" || package.record.name == "pip";
    });
}

std::string pip_list(const std::vector<pip::Distribution>& distributions) {
    std::string text;
    for (const auto& one : distributions)
        text += one.name + "==" + one.version + "\n";
    return text;
}

std::string package_list(const CondaContents& contents) {
    std::set<std::string> lines;
    const auto add = [&](const std::string& name, const std::string& version, const std::string& build,
                         const std::string& channel) {
        lines.insert(fmt::format("{:<30} {:<15} {:<25} {}", name, version, build, channel));
    };
    for (const auto& [record, requested, files, file] : contents.packages) {
        const auto slash = record.channel.rfind('/');
        add(record.name, record.version, record.build,
            slash == std::string::npos ? record.channel : record.channel.substr(slash + 1));
    }
    for (const auto& one : contents.of_pip)
        add(one.name, one.version, "pypi_0", "pypi");
    std::string text;
    for (const auto& line : lines)
        text += line + "\n";
    return text;
}

} // namespace containerize::environments
