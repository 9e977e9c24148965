#include "spec/spec.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "util/user_text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <vector>

#include <sys/stat.h>

namespace containerize::spec {

namespace {

/// The lines without comments and empty ones. Keeps indentation, which distinguishes top-level YAML keys from
/// others.
class Lines {
public:
    explicit Lines(std::string_view text) {
        for (const auto line : split_lines(text))
            if (const auto content = trimmed(line); !content.empty() && !content.starts_with('#'))
                lines_.push_back(line.substr(0, line.find_last_not_of(" \t\f\v") + 1));
    }

    [[nodiscard]] bool empty() const { return lines_.empty(); }
    [[nodiscard]] std::string_view first() const { return trimmed(lines_.front()); }

    template<class Predicate>
    [[nodiscard]] bool any(Predicate predicate) const {
        return std::ranges::any_of(lines_, predicate);
    }
    template<class Predicate>
    [[nodiscard]] bool all(Predicate predicate) const {
        return std::ranges::all_of(lines_, predicate);
    }
    [[nodiscard]] bool has(std::string_view start) const {
        return any([start](std::string_view line) { return line.starts_with(start); });
    }
    /// Whether a TOML key is assigned, in a table or outside: `key = value`.
    [[nodiscard]] bool assigns(std::string_view key) const {
        return any([key](std::string_view line) {
            line = trimmed(line);
            return line.starts_with(key) && trimmed(line.substr(key.size())).starts_with('=');
        });
    }

private:
    std::vector<std::string_view> lines_;
};

bool is_binary(std::string_view content) {
    return content.substr(0, 8192).find('\0') != std::string_view::npos ||
           content.starts_with("PK\x03\x04") || content.starts_with("\x1f\x8b") ||
           content.starts_with("BZh9");
}

/// Whether the line is "[table]" or "[[table]]".
bool is_table(std::string_view line) {
    return line.starts_with('[') && line.ends_with(']') && line.find_first_of("=,") == std::string_view::npos;
}

SpecKind recognise_toml(const Lines& lines) {
    if (lines.has("[[package]]")) return lines.has("[metadata]") ? SpecKind::poetry_lock : SpecKind::uv_lock;
    if (lines.has("[[packages]]") || lines.assigns("lock-version")) return SpecKind::pylock;
    if (lines.has("[[source]]") || lines.has("[packages]")) return SpecKind::pipfile;
    if (lines.assigns("channels") && !lines.has("[tool.")) return SpecKind::pixi_toml;
    if (lines.has("[project]") || lines.has("[build-system]") || lines.has("[tool."))
        return SpecKind::pyproject;
    // setup.cfg
    if (lines.has("[options]") || lines.assigns("install_requires")) return SpecKind::setup_script;
    return SpecKind::unknown;
}

SpecKind recognise_yaml(const Lines& lines) {
    const bool packages = lines.has("packages:") || lines.has("package:");
    if (lines.has("environments:") && packages) return SpecKind::pixi_lock;
    if (lines.has("metadata:") && packages) return SpecKind::conda_lock;
    if (lines.has("package:") && (lines.has("requirements:") || lines.has("build:") || lines.has("source:")))
        return SpecKind::conda_recipe;
    if (lines.has("dependencies:") || lines.has("channels:")) return SpecKind::environment_yaml;
    return SpecKind::unknown;
}

/// Recognises an incomplete lock by what is left, so that its reader can report what is missing.
SpecKind recognise_part_of_lock(const Lines& lines, std::string_view text, std::string_view name) {
    const auto first = lines.first();
    if (first.starts_with('{')) {
        const bool ours = text.find("\"channels\"") != std::string_view::npos &&
                          text.find("\"conda\"") != std::string_view::npos;
        return ours || name.ends_with("containerize.lock") ? SpecKind::lock : SpecKind::unknown;
    }
    if (name.ends_with("conda-lock.yml")) return SpecKind::conda_lock;
    const bool pixi = name.ends_with("pixi.lock");
    if (!pixi && !first.starts_with("version:")) return SpecKind::unknown;
    return lines.has("metadata:") || lines.has("package:") ? SpecKind::conda_lock : SpecKind::pixi_lock;
}

bool is_python_script(const Lines& lines) {
    return lines.any([](std::string_view line) {
        return line.starts_with("import ") || line.starts_with("def ") ||
               (line.starts_with("from ") && line.find(" import ") != std::string_view::npos);
    });
}

bool is_container_recipe(const Lines& lines) {
    const auto first = lower(lines.first());
    if (first.starts_with("bootstrap:")) return true;
    return (first.starts_with("from ") || first.starts_with("arg ")) &&
           lines.any([](std::string_view line) { return lower(line).starts_with("from "); });
}

/// A line "name=version=build", which is not a valid requirement.
bool is_exported(std::string_view line) {
    const auto first = line.find('=');
    const auto second = line.find('=', first == std::string_view::npos ? first : first + 1);
    return second != std::string_view::npos && first > 0 && second > first + 1 && second + 1 < line.size() &&
           line.find_first_of(" <>!~;,[", 0) == std::string_view::npos &&
           line.find('=', second + 1) == std::string_view::npos;
}

bool is_conda_package_url(std::string_view line) {
    const auto end = line.find('#');
    const auto url = line.substr(0, end);
    return url.find("://") != std::string_view::npos &&
           (url.ends_with(".conda") || url.ends_with(".tar.bz2")) &&
           (url.ends_with(".conda") || url.find("/linux-") != std::string_view::npos ||
            url.find("/noarch/") != std::string_view::npos);
}

} // namespace

SpecKind recognise(std::string_view content, std::string_view name) {
    const bool utf16 = content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF");
    if (!utf16 && is_binary(content)) return SpecKind::archive;
    const auto decoded = decode(content, fs::path(name));
    // Text in other encodings is used undecoded; the file's reader will reject it.
    const std::string text = decoded ? *decoded : std::string(content);
    const Lines lines(text);
    if (lines.empty()) return SpecKind::empty;

    if (lines.first().starts_with('<')) return SpecKind::html;
    if (lines.has("@EXPLICIT") || lines.all(is_conda_package_url)) return SpecKind::conda_explicit;
    if (lines.all(is_exported)) return SpecKind::conda_list_export;
    if (lines.first().starts_with('{') && text.find("\"containerize-lock\"") != std::string::npos)
        return SpecKind::lock;
    if (lines.first().starts_with('{') && text.find("\"pipfile-spec\"") != std::string::npos)
        return SpecKind::pipfile;
    if (is_python_script(lines))
        return text.find("setup(") != std::string::npos ? SpecKind::setup_script : SpecKind::unknown;
    if (is_container_recipe(lines)) return SpecKind::container_recipe;
    if (lines.any(is_table))
        if (const auto kind = recognise_toml(lines); kind != SpecKind::unknown) return kind;
    if (const auto kind = recognise_yaml(lines); kind != SpecKind::unknown) return kind;
    if (const auto kind = recognise_part_of_lock(lines, text, name); kind != SpecKind::unknown) return kind;
    if (name.ends_with(".yml") || name.ends_with(".yaml")) return SpecKind::environment_yaml;
    const bool data = lines.first().starts_with('{') || lines.first().starts_with('[');
    return data || name.ends_with(".toml") || name.ends_with(".json") ? SpecKind::unknown
                                                                      : SpecKind::requirements;
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
    case SpecKind::lock:
        return "a lock file of containerize";
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
        return "an archive or other binary file";
    case SpecKind::html:
        return "a web page";
    case SpecKind::empty:
        return "an empty file";
    case SpecKind::unknown:
        break;
    }
    return "a file of no known kind";
}

namespace {

/// How to convert this kind of file to a requirements file.
std::string advice(SpecKind kind) {
    switch (kind) {
    case SpecKind::uv_lock:
        return "`uv export --format requirements-txt` makes a requirements file of it.";
    case SpecKind::poetry_lock:
        return "`poetry export` makes a requirements file of it.";
    case SpecKind::pipfile:
        return "`pipenv requirements` makes a requirements file of it.";
    case SpecKind::pyproject:
    case SpecKind::setup_script:
        return "To install a project, write its directory into a requirements file: `./PROJECT`.";
    case SpecKind::archive:
        return "To install a package file, write its path into a requirements file.";
    case SpecKind::html:
        return "If it was downloaded: take the address of the file itself, not of the page that shows it.";
    case SpecKind::empty:
        return "Write one package a line into it, such as `numpy`.";
    default:
        return "Give a conda environment.yml or a pip requirements.txt.";
    }
}

std::unexpected<Error> unsupported(const fs::path& file, SpecKind kind) {
    return fail_input("this is " + describe(kind) + ", which cannot be built", {}, file.string(),
                      advice(kind));
}

} // namespace

Result<SpecKind> recognise_supported(const std::filesystem::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
        auto error = fail_errno("cannot read the environment's description", file.string());
        error.error().fault = Fault::input;
        return error;
    }
    if (S_ISDIR(info.st_mode))
        return fail_input("this is a directory", {}, file.string(),
                          "Give an environment.yml or a requirements.txt.");
    // A pipe cannot be read more than once.
    if (!S_ISREG(info.st_mode))
        return fail_input("this is not a regular file", {}, file.string(), advice(SpecKind::unknown));
    // Such as a disk image: no text file is this large.
    constexpr off_t longest_text = off_t{64} << 20U;
    if (info.st_size > longest_text) return unsupported(file, SpecKind::archive);
    auto content = read_file(file);
    if (!content) {
        content.error().fault = Fault::input;
        return fail(std::move(content.error()));
    }
    const auto kind = recognise(*content, file.filename().string());
    switch (kind) {
    case SpecKind::requirements:
    case SpecKind::environment_yaml:
    case SpecKind::conda_explicit:
    case SpecKind::conda_list_export:
    case SpecKind::conda_lock:
    case SpecKind::pixi_lock:
    case SpecKind::lock:
        return kind;
    default:
        break;
    }
    if (kind == SpecKind::empty)
        return fail_input("there is no requirement in it", {}, file.string(), advice(kind));
    return unsupported(file, kind);
}

} // namespace containerize::spec
