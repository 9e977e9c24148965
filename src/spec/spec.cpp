#include "spec/spec.h"

#include "util/filesystem.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

#include <sys/stat.h>

namespace containerize::spec {

namespace {

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    return text;
}

/// Lines that say something: without blanks around them, without comments and empty ones.
std::vector<std::string_view> telling_lines(std::string_view content) {
    std::vector<std::string_view> lines;
    while (!content.empty()) {
        const auto end = content.find('\n');
        const auto line = trimmed(content.substr(0, end));
        if (!line.empty() && !line.starts_with('#')) lines.push_back(line);
        if (end == std::string_view::npos) break;
        content.remove_prefix(end + 1);
    }
    return lines;
}

bool any_starts_with(const std::vector<std::string_view>& lines, std::string_view start) {
    return std::ranges::any_of(lines, [start](std::string_view line) { return line.starts_with(start); });
}

bool is_binary(std::string_view content) {
    return content.substr(0, 8192).find('\0') != std::string_view::npos ||
           content.starts_with("PK\x03\x04") || content.starts_with("\x1f\x8b");
}

SpecKind recognise_toml(const std::vector<std::string_view>& lines) {
    if (any_starts_with(lines, "lock-version")) return SpecKind::pylock;
    if (any_starts_with(lines, "[[source]]") || any_starts_with(lines, "[packages]"))
        return SpecKind::pipfile;
    if (any_starts_with(lines, "[workspace]") || any_starts_with(lines, "[dependencies]"))
        return SpecKind::pixi_toml;
    if (any_starts_with(lines, "[project]") || any_starts_with(lines, "[build-system]") ||
        any_starts_with(lines, "[tool."))
        return SpecKind::pyproject;
    if (any_starts_with(lines, "[[package]]"))
        return any_starts_with(lines, "[metadata]") ? SpecKind::poetry_lock : SpecKind::uv_lock;
    return SpecKind::unknown;
}

SpecKind recognise_yaml(const std::vector<std::string_view>& lines) {
    const bool packages = any_starts_with(lines, "packages:") || any_starts_with(lines, "package:");
    if (any_starts_with(lines, "environments:") && packages) return SpecKind::pixi_lock;
    if (any_starts_with(lines, "metadata:") && packages) return SpecKind::conda_lock;
    if (any_starts_with(lines, "requirements:") && any_starts_with(lines, "package:"))
        return SpecKind::conda_recipe;
    return any_starts_with(lines, "dependencies:") || any_starts_with(lines, "channels:")
               ? SpecKind::environment_yaml
               : SpecKind::unknown;
}

} // namespace

SpecKind recognise(std::string_view content, std::string_view name) {
    if (is_binary(content)) return SpecKind::archive;
    if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
    const auto lines = telling_lines(content);
    if (lines.empty()) return SpecKind::empty;

    std::string first(lines.front());
    std::ranges::transform(first, first.begin(), [](unsigned char c) { return std::tolower(c); });
    if (first.starts_with("<!doctype html") || first.starts_with("<html")) return SpecKind::html;
    if (any_starts_with(lines, "@EXPLICIT")) return SpecKind::conda_explicit;
    if (first.starts_with("bootstrap:") || first.starts_with("from ")) return SpecKind::container_recipe;
    if (any_starts_with(lines, "from setuptools") || any_starts_with(lines, "import setuptools") ||
        any_starts_with(lines, "from distutils"))
        return SpecKind::setup_script;

    static const std::regex toml_table(R"(\[\[?[A-Za-z0-9_."'-]+\]\]?)");
    const bool toml = std::ranges::any_of(lines, [](std::string_view line) {
        return line.starts_with("lock-version") || std::regex_match(line.begin(), line.end(), toml_table);
    });
    if (toml)
        if (const auto kind = recognise_toml(lines); kind != SpecKind::unknown) return kind;
    if (const auto kind = recognise_yaml(lines); kind != SpecKind::unknown) return kind;

    // `conda list --export`: each line name=version=build, which no requirement can be.
    static const std::regex exported(R"([A-Za-z0-9_.-]+=[^=<>!~\s]+=[^=\s]+)");
    if (std::ranges::all_of(lines, [](std::string_view line) {
            return std::regex_match(line.begin(), line.end(), exported);
        }))
        return SpecKind::conda_list_export;
    if (name.ends_with(".yml") || name.ends_with(".yaml")) return SpecKind::environment_yaml;
    return SpecKind::requirements;
}

std::string describe(SpecKind kind) {
    switch (kind) {
    case SpecKind::requirements:
        return "a pip requirements file";
    case SpecKind::environment_yaml:
        return "a conda environment file";
    case SpecKind::conda_explicit:
        return "an explicit list of conda packages";
    case SpecKind::conda_list_export:
        return "a list made by `conda list --export`";
    case SpecKind::conda_lock:
        return "a conda-lock file";
    case SpecKind::pixi_lock:
        return "a pixi lock file";
    case SpecKind::pixi_toml:
        return "a pixi project file";
    case SpecKind::pylock:
        return "a pylock file (PEP 751)";
    case SpecKind::pyproject:
        return "a pyproject file";
    case SpecKind::uv_lock:
        return "a uv lock file";
    case SpecKind::poetry_lock:
        return "a poetry lock file";
    case SpecKind::pipfile:
        return "a Pipfile";
    case SpecKind::setup_script:
        return "a setup script";
    case SpecKind::conda_recipe:
        return "a conda recipe";
    case SpecKind::container_recipe:
        return "a container recipe";
    case SpecKind::archive:
        return "a binary file";
    case SpecKind::html:
        return "a web page";
    case SpecKind::empty:
        return "empty";
    case SpecKind::unknown:
        break;
    }
    return "of no known kind";
}

Result<SpecKind> recognise_supported(const std::filesystem::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
        auto error = fail_errno("cannot read the requirements", file.string());
        error.error().fault = Fault::input;
        return error;
    }
    if (S_ISDIR(info.st_mode))
        return fail_input("this is a directory", {}, file.string(), "Give a requirements.txt.");
    auto content = read_file(file);
    if (!content) {
        content.error().fault = Fault::input;
        return fail(std::move(content.error()));
    }
    const auto kind = recognise(*content, file.filename().string());
    if (kind == SpecKind::requirements) return kind;
    if (kind == SpecKind::empty)
        return fail_input("there is no requirement in it", {}, file.string(),
                          "Put one package a line into it, such as `numpy`.");
    return fail_input("this is " + describe(kind) + ", which this version cannot build", {}, file.string(),
                      "Give a pip requirements file.");
}

} // namespace containerize::spec
