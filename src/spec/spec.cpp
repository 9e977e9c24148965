#include "spec/spec.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "spec/conda_environment.h"
#include "spec/locked_lines.h"
#include "spec/locked_package.h"
#include "spec/requirements.h"
#include "util/text_limits.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <vector>

#include <sys/stat.h>

namespace containerize::spec {

namespace {

constexpr std::size_t longest_start = 8192;

bool has_binary_start(std::string_view content) {
    return content.substr(0, longest_start).find('\0') != std::string_view::npos ||
           content.starts_with("PK\x03\x04") || content.starts_with("\x1f\x8b") ||
           content.starts_with("BZh9");
}

/// Whether the line is "[table]" or "[[table]]".
bool is_table(std::string_view line) {
    return line.starts_with('[') && line.ends_with(']') && line.find_first_of("=,") == std::string_view::npos;
}

} // namespace

/// The lines of a text file without comments and empty ones. Keeps indentation, which distinguishes top-level
/// YAML keys from others.
class Sample {
public:
    Sample(std::string_view content, std::string_view name) : name_(name) {
        const bool utf16 = content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF");
        binary_ = !utf16 && has_binary_start(content);
        if (binary_) return;
        // Text in other encodings is used undecoded; the file's reader will reject it.
        text_ = decode(content, fs::path(name)).value_or(std::string(content));
        for (const auto line : split_lines(text_))
            if (const auto part = trimmed(line); !part.empty() && !part.starts_with('#'))
                lines_.push_back(line.substr(0, line.find_last_not_of(" \t\f\v") + 1));
    }

    [[nodiscard]] bool is_binary() const { return binary_; }
    [[nodiscard]] bool is_empty() const { return lines_.empty(); }
    [[nodiscard]] bool is_json() const { return first().starts_with('{'); }
    [[nodiscard]] bool is_python() const {
        return any([](std::string_view line) {
            return line.starts_with("import ") || line.starts_with("def ") ||
                   (line.starts_with("from ") && line.find(" import ") != std::string_view::npos);
        });
    }
    [[nodiscard]] std::string_view first() const { return is_empty() ? "" : trimmed(lines_.front()); }
    [[nodiscard]] bool is_named(std::string_view end) const { return name_.ends_with(end); }
    [[nodiscard]] bool contains(std::string_view part) const { return text_.find(part) != text_.npos; }
    /// Whether it is named "pylock.toml" or "pylock.NAME.toml".
    [[nodiscard]] bool is_pylock() const { return name_.starts_with("pylock.") && is_named(".toml"); }
    /// A pixi.toml, or a pyproject.toml with nothing but pixi's tables.
    [[nodiscard]] bool is_pixi_toml() const {
        if (is_named("pixi.toml")) return true;
        if (!assigns("channels")) return false;
        return !has("[tool.") ||
               (has("[tool.pixi.", "[tool.pixi]") && !has("[project]", "[dependency-groups]"));
    }
    /// Whether it is a script with metadata in a comment (PEP 723).
    [[nodiscard]] bool has_metadata_of_script() const {
        return std::ranges::any_of(split_lines(text_),
                                   [](std::string_view line) { return line == "# /// script"; });
    }
    [[nodiscard]] bool any(bool (*is_so)(std::string_view)) const {
        return std::ranges::any_of(lines_, is_so);
    }
    [[nodiscard]] bool all(bool (*is_so)(std::string_view)) const {
        return std::ranges::all_of(lines_, is_so);
    }
    /// Whether a line begins with one of these.
    [[nodiscard]] bool has(auto... starts) const {
        return std::ranges::any_of(lines_,
                                   [=](std::string_view line) { return (line.starts_with(starts) || ...); });
    }
    /// Whether a TOML key is assigned, in a table or outside: `key = value`.
    [[nodiscard]] bool assigns(std::string_view key) const {
        return any(is_table) && std::ranges::any_of(lines_, [key](std::string_view line) {
                   line = trimmed(line);
                   return line.starts_with(key) && trimmed(line.substr(key.size())).starts_with('=');
               });
    }

private:
    std::string_view name_;
    bool binary_ = false;
    std::string text_;
    std::vector<std::string_view> lines_;
};

namespace {

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

bool is_container_recipe(const Sample& sample) {
    const auto first = lower(sample.first());
    if (first.starts_with("bootstrap:")) return true;
    return (first.starts_with("from ") || first.starts_with("arg ")) && !sample.is_python() &&
           sample.any([](std::string_view line) { return lower(line).starts_with("from "); });
}

/// Whether it is a lock of conda-lock or pixi of which the end, or a key, is missing.
bool is_part_of_lock(const Sample& sample) {
    return sample.is_named("pixi.lock") || sample.first().starts_with("version:");
}

constexpr std::array<std::string_view, 2> parts_of_project = {"--group", "--extra"};

constexpr auto table =
    std::to_array<Format>({
        {.kind = SpecKind::archive,
         .description = "an archive or other binary file",
         .is = [](const Sample& file) { return file.is_binary(); },
         .advice = "To install a package file, list its path in a requirements file."},
        {.kind = SpecKind::script,
         .description = "a Python script with metadata",
         .is = [](const Sample& file) { return file.has_metadata_of_script(); },
         .reader = read_script},
        {.kind = SpecKind::empty,
         .description = "an empty file",
         .is = [](const Sample& file) { return file.is_empty(); },
         .advice = "List one package per line, such as `numpy`."},
        {.kind = SpecKind::html,
         .description = "a web page",
         .is = [](const Sample& file) { return file.first().starts_with('<'); },
         .advice = "If you downloaded it, use the URL of the file itself, not of the page that shows it."},
        {.kind = SpecKind::conda_explicit,
         .description = "an explicit list of conda packages",
         .is = [](const Sample& file) { return file.has("@EXPLICIT") || file.all(is_conda_package_url); },
         .reader = read_explicit},
        {.kind = SpecKind::conda_list_export,
         .description = "a list from `conda list --export`",
         .is = [](const Sample& file) { return file.all(is_exported); },
         .reader = [](const fs::path& file, const LockChoice&) { return read_list_export(file); }},
        {.kind = SpecKind::lock,
         .description = "a containerize lock file",
         .is = [](const Sample& file) { return file.is_json() && file.contains("\"containerize-lock\""); },
         .may_be =
             [](const Sample& file) {
                 return file.is_json() && ((file.contains("\"channels\"") && file.contains("\"conda\"")) ||
                                           file.is_named("containerize.lock"));
             },
         .reader = read_own_lock,
         .sorted = true},
        {.kind = SpecKind::unknown,
         .description = "a file of unknown kind",
         .is = [](const Sample& file) { return file.is_python() && !file.contains("setup("); }},
        {.kind = SpecKind::container_recipe, .description = "a container recipe", .is = is_container_recipe},
        {.kind = SpecKind::pdm_lock,
         .description = "a PDM lock file",
         .is = [](const Sample& file) { return file.has("[[package]]") && file.assigns("content_hash"); },
         .advice = "`pdm export -o requirements.txt` converts it to a requirements file."},
        {.kind = SpecKind::poetry_lock,
         .description = "a poetry lock file",
         .is = [](const Sample& file) { return file.has("[[package]]") && file.has("[metadata]"); },
         .may_be = [](const Sample& file) { return file.is_named("poetry.lock"); },
         .reader = read_poetry_lock,
         .part_options = parts_of_project},
        {.kind = SpecKind::uv_lock,
         .description = "a uv lock file",
         .is = [](const Sample& file) { return file.has("[[package]]"); },
         .may_be = [](const Sample& file) { return file.is_named("uv.lock"); },
         .reader = read_uv_lock,
         .part_options = parts_of_project},
        {.kind = SpecKind::pylock,
         .description = "a pylock file",
         .is = [](const Sample& file) { return file.has("[[packages]]") || file.assigns("lock-version"); },
         .may_be = [](const Sample& file) { return file.is_pylock(); },
         .reader = read_pylock,
         .part_options = parts_of_project},
        {.kind = SpecKind::pipfile_lock,
         .description = "a Pipfile.lock",
         .is = [](const Sample& file) { return file.is_json() && file.contains("\"pipfile-spec\""); },
         .may_be = [](const Sample& file) { return file.is_named("Pipfile.lock"); },
         .reader = read_pipfile_lock,
         .part_options = {"--group"}},
        {.kind = SpecKind::pipfile,
         .description = "a Pipfile",
         .is = [](const Sample& file) { return file.has("[[source]]", "[packages]"); },
         .advice = "Lock it with `pipenv lock`, and give the Pipfile.lock."},
        {.kind = SpecKind::pixi_toml,
         .description = "a pixi manifest",
         .is = [](const Sample& file) { return file.is_pixi_toml(); },
         .reader = read_pixi_toml,
         .part_options = {"--environment"}},
        {.kind = SpecKind::pyproject,
         .description = "a pyproject file",
         .is =
             [](const Sample& file) {
                 return file.has("[project]", "[build-system]", "[dependency-groups]", "[tool.");
             },
         .may_be = [](const Sample& file) { return file.is_named("pyproject.toml"); },
         .reader = read_pyproject,
         .part_options = parts_of_project},
        {.kind = SpecKind::setup_script,
         .description = "a setup script",
         .is =
             [](const Sample& file) {
                 return file.is_python() ? file.contains("setup(")
                                         : file.has("[options]") || file.assigns("install_requires");
             },
         .advice = "To install a project, list its directory in a requirements file: `./PROJECT`."},
        {.kind = SpecKind::conda_lock,
         .description = "a conda-lock file",
         .is =
             [](const Sample& file) {
                 return file.has("metadata:") && file.has("package:", "packages:") &&
                        !file.has("environments:");
             },
         .may_be =
             [](const Sample& file) {
                 return !file.is_json() && (file.is_named("conda-lock.yml") ||
                                            (is_part_of_lock(file) && file.has("metadata:", "package:")));
             },
         .reader = read_conda_lock,
         .part_options = {"--category"}},
        {.kind = SpecKind::pixi_lock,
         .description = "a pixi lock file",
         .is =
             [](const Sample& file) {
                 return file.has("environments:") && file.has("package:", "packages:");
             },
         .may_be = [](const Sample& file) { return !file.is_json() && is_part_of_lock(file); },
         .reader = read_pixi_lock,
         .part_options = {"--environment"}},
        {.kind = SpecKind::conda_recipe,
         .description = "a conda recipe",
         .is =
             [](const Sample& file) {
                 return file.has("package:") && file.has("requirements:", "build:", "source:");
             }},
        {.kind = SpecKind::environment_yaml,
         .description = "a conda environment file",
         .is = [](const Sample& file) { return file.has("dependencies:", "channels:"); },
         .may_be = [](const Sample& file) { return file.is_named(".yml") || file.is_named(".yaml"); },
         .reader = [](const fs::path& file, const LockChoice&) { return read_environment_yaml(file); }},
        {.kind = SpecKind::toml,
         .description = "a TOML file of unknown kind",
         .may_be = [](const Sample& file) { return file.is_named(".toml") || is_table(file.first()); },
         .advice = "Give a pylock.toml or a pyproject.toml."},
        {.kind = SpecKind::requirements,
         .description = "a pip requirements file",
         .may_be =
             [](const Sample& file) {
                 return !file.is_json() && !file.first().starts_with('[') && !file.is_named(".json");
             },
         .reader = read_requirements},
    });

/// The format of a file that is too large to be read, as far as its start tells.
const Format& format_of_start(const fs::path& file) {
    std::string start(longest_start, '\0');
    std::ifstream stream(file, std::ios::binary);
    stream.read(start.data(), static_cast<std::streamsize>(start.size()));
    start.resize(static_cast<std::size_t>(stream.gcount()));
    return format_of(recognise(start, file.filename().string()));
}

/// What to do about a file that is too large. Locks of the other formats are for one environment.
std::string remedy_for_size(const Format& format) {
    const bool has_parts =
        std::holds_alternative<LockReader>(format.reader) && !format.part_options.front().empty();
    return has_parts ? "Lock fewer environments or platforms." : "";
}

/// How many lines a reader makes of the text, at most.
std::size_t count_ends(std::string_view text) {
    std::size_t ends = 0;
    for (std::size_t at = 0; (at = text.find_first_of("\r\n", at)) != text.npos; ++at)
        if (!text.substr(at).starts_with("\r\n")) ++ends; // a CRLF counts with its LF
    return ends;
}

std::unexpected<Error> unsupported(const fs::path& file, const Format& format) {
    return fail_input("this is " + std::string(format.description) + ", which cannot be built", {},
                      file.string(), std::string(format.advice));
}

} // namespace

std::span<const Format> formats() {
    return table;
}

const Format& format_of(SpecKind kind) {
    return *std::ranges::find(table, kind, &Format::kind);
}

SpecKind recognise(std::string_view content, std::string_view name) {
    const Sample sample(content, name);
    for (const auto function : {&Format::is, &Format::may_be})
        for (const auto& format : table)
            if (const auto fits = format.*function; fits != nullptr && fits(sample)) return format.kind;
    return SpecKind::unknown;
}

std::string describe(SpecKind kind) {
    return std::string(format_of(kind).description);
}

Result<SpecKind> recognise_supported(const std::filesystem::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
        auto error = fail_errno("cannot read the environment file", file.string());
        error.error().fault = Fault::input;
        return error;
    }
    if (S_ISDIR(info.st_mode))
        return fail_input("this is a directory", {}, file.string(),
                          "Give a file in it, such as environment.yml, pixi.toml or requirements.txt.");
    // A pipe cannot be read more than once.
    if (!S_ISREG(info.st_mode))
        return fail_input("this is not a regular file", {}, file.string(),
                          std::string(format_of(SpecKind::unknown).advice));
    if (static_cast<std::uint64_t>(info.st_size) > largest_text) {
        const auto& format = format_of_start(file);
        if (format.kind == SpecKind::archive) return unsupported(file, format);
        return too_large(file.string(), "16 MiB", remedy_for_size(format));
    }
    auto content = TRY(read_input_file(file, largest_text));
    if (count_ends(content) > most_lines)
        return too_large(file.string(), "1,000,000 lines", remedy_for_size(format_of_start(file)));
    const auto& format = format_of(recognise(content, file.filename().string()));
    if (!std::holds_alternative<std::monostate>(format.reader)) return format.kind;
    if (format.kind == SpecKind::empty)
        return fail_input("the file contains no requirement", {}, file.string(), std::string(format.advice));
    return unsupported(file, format);
}

} // namespace containerize::spec
