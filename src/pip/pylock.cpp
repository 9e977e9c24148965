#include "pip/pylock.h"

#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "core/version.h"
#include "pip/resolution.h"
#include "spec/package_name.h"
#include "util/json.h"
#include "util/toml_file.h"
#include "util/user_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::pip {

namespace {

using spec::LockedPackage;
using spec::PipSource;

/// A line with a key, or nothing if there is no value.
std::string line(std::string_view key, const std::string& value) {
    return value.empty() ? "" : fmt::format("{} = {}\n", key, quoted(value));
}

std::string lines(std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return {};
    std::string text = fmt::format("{} = [\n", key);
    for (const auto& value : values)
        text += fmt::format("    {},\n", quoted(value));
    return text + "]\n";
}

std::string location(const std::string& url) {
    return url.starts_with("file:") ? line("path", file_url_path(url)) : line("url", url);
}

std::string size_line(std::uint64_t size) {
    return size > 0 ? fmt::format("size = {}\n", size) : "";
}

std::string checksum(const std::string& sha256) {
    return sha256.empty() ? "" : fmt::format("hashes = {{ sha256 = {} }}\n", quoted(sha256));
}

std::string head_of(const PipSource& source) {
    switch (source.kind) {
    case PipSource::Kind::repository:
        return "[packages.vcs]\n" + line("type", source.vcs);
    case PipSource::Kind::directory:
        return "[packages.directory]\n";
    case PipSource::Kind::index:
        return (source.file.ends_with(".whl") ? "[[packages.wheels]]\n" : "[packages.sdist]\n") +
               line("name", source.file);
    default:
        return "[packages.archive]\n";
    }
}

std::string source_text(const PipSource& source) {
    return head_of(source) + location(source.url) + line("commit-id", source.commit) +
           (source.editable ? "editable = true\n" : "") + size_line(source.size) +
           line("subdirectory", source.subdirectory) + checksum(source.sha256);
}

std::string tool_text(const Pylock& lock) {
    const auto text =
        lines("options", lock.options) + lines("of-venv", lock.of_venv) + lines("left-out", lock.left_out);
    return text.empty() ? "" : "\n[tool.containerize]\n" + text;
}

/// Reads packages back.
class WrittenLockReader {
public:
    explicit WrittenLockReader(const TomlFile& toml) : toml_(toml) {}

    Result<Pylock> read() {
        Pylock lock;
        for (const auto* entry : TRY(toml_.tables(toml_.root(), "packages")))
            lock.packages.push_back(TRY(package(*entry)));
        const auto* ours = TRY(tool_table(toml_.root()));
        if (ours == nullptr) return lock;
        lock.options = TRY(toml_.texts(*ours, "options"));
        for (const auto& option : lock.options)
            if (printable_line(option) != option)
                return toml_.refuse(*ours, "an option has control characters");
        lock.of_venv = TRY(toml_.texts(*ours, "of-venv"));
        lock.left_out = TRY(toml_.texts(*ours, "left-out"));
        return lock;
    }

private:
    /// Our own table of the whole lock or of a package, if there is one.
    [[nodiscard]] Result<const toml::table*> tool_table(const toml::table& parent) const {
        const auto* tool = TRY(toml_.table(parent, "tool"));
        return tool == nullptr ? nullptr : TRY(toml_.table(*tool, "containerize"));
    }

    [[nodiscard]] Result<LockedPackage> package(const toml::table& entry) const {
        const auto* ours = TRY(tool_table(entry));
        LockedPackage package{.name = TRY(toml_.text(entry, "name")),
                              .version = TRY(toml_.text(ours == nullptr ? entry : *ours, "version"))};
        for (const auto& [key, kind] :
             {std::pair("vcs", PipSource::Kind::repository),
              std::pair("directory", PipSource::Kind::directory),
              std::pair("archive", PipSource::Kind::archive), std::pair("sdist", PipSource::Kind::index)})
            if (const auto* table = TRY(toml_.table(entry, key))) package.source = TRY(source(*table, kind));
        for (const auto* wheel : TRY(toml_.tables(entry, "wheels")))
            package.source = TRY(source(*wheel, PipSource::Kind::index));
        if (!spec::is_package_name(package.name) || package.source.kind == PipSource::Kind::unknown)
            return toml_.refuse(entry, "a package has no name, or no file");
        // They become parts of requirement lines.
        const auto& source = package.source;
        for (const auto* part : {&std::as_const(package).version, &source.url, &source.sha256, &source.vcs,
                                 &source.commit, &source.subdirectory})
            if (!is_one_word(*part))
                return toml_.refuse(entry,
                                    "a value of " + package.name + " has blanks or control characters");
        return package;
    }

    [[nodiscard]] Result<PipSource> source(const toml::table& table, PipSource::Kind kind) const {
        PipSource source{.kind = kind,
                         .file = TRY(toml_.text(table, "name")),
                         .url = TRY(toml_.text(table, "url")),
                         .vcs = TRY(toml_.text(table, "type")),
                         .commit = TRY(toml_.text(table, "commit-id")),
                         .subdirectory = TRY(toml_.text(table, "subdirectory"))};
        if (const auto path = TRY(toml_.text(table, "path")); !path.empty()) source.url = file_url(path);
        if (const auto* hashes = TRY(toml_.table(table, "hashes")))
            source.sha256 = TRY(toml_.text(*hashes, "sha256"));
        source.size = static_cast<std::uint64_t>(std::max<std::int64_t>(0, table["size"].value_or(0L)));
        source.editable = table["editable"].value_or(false);
        return source;
    }

    const TomlFile& toml_;
};

/// Its version may change with its content, so only our own table has the one that was installed.
bool is_source_tree(const PipSource& source) {
    return source.kind == PipSource::Kind::repository || source.kind == PipSource::Kind::directory;
}

} // namespace

Status check_lockable(const LockedPackage& package) {
    const auto& source = package.source;
    const auto refuse = [&](std::string why, std::string hint) {
        return fail_input("the address of " + printable_line(package.name) + " cannot be locked",
                          std::move(why), printable_line(source.url), std::move(hint));
    };
    if (source.kind == PipSource::Kind::unknown || (source.url.empty() && source.file.empty()))
        return refuse("it is not known", "Name it in the requirements.");
    // Nothing else than the address can be written, because that names the file.
    if (!source.url.starts_with("file:") && !spec::is_lasting(source.url))
        return refuse("it contains a query or a token, which may be secret",
                      "Give an address without it, and keep the login in ~/.netrc.");
    if (!is_utf8(file_url_path(source.url)) || !is_utf8(source.file) || !is_utf8(source.url))
        return refuse("its decoded path is not UTF-8", "Rename the file.");
    return {};
}

Result<std::string> pylock_text(const Pylock& lock, const ChosenFor& chosen_for) {
    const auto minor =
        chosen_for.python.substr(0, chosen_for.python.find('.', chosen_for.python.find('.') + 1));
    std::string text = fmt::format(R"(lock-version = "1.0"
environments = ["sys_platform == 'linux' and platform_machine == '{}'"]
requires-python = "=={}.*"
created-by = "containerize"
)",
                                   chosen_for.machine, minor);
    for (const auto& package : lock.packages) {
        TRY(check_lockable(package));
        text += "\n[[packages]]\n" + line("name", normalised_name(package.name));
        const auto version = line("version", package.version);
        if (!is_source_tree(package.source)) text += version;
        text += source_text(package.source);
        if (is_source_tree(package.source)) text += "[packages.tool.containerize]\n" + version;
    }
    return text + tool_text(lock);
}

Result<Pylock> parse_pylock(std::string_view text, const std::string& file) {
    const auto toml = TRY(TomlFile::parse(text, file));
    return WrittenLockReader(toml).read();
}

} // namespace containerize::pip
