#include "spec/pixi_dependencies.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/locked_lines.h"
#include "spec/locked_package.h"
#include "spec/package_name.h"
#include "util/similar_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::spec {

namespace {

constexpr std::string_view of_conda_names = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
/// Conditions for versions of pip's packages (PEP 440).
constexpr std::string_view of_conditions =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*+!<>=~, ";
constexpr std::string_view of_revisions =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+";

/// The keys of a dependency on a conda package, and those of match specs.
constexpr auto keys_of_spec = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"version", "version"},
    {"build", "build"},
    {"build-number", "build_number"},
    {"file-name", "fn"},
    {"channel", "channel"},
    {"subdir", "subdir"},
    {"license", "license"},
    {"license-family", "license_family"},
    {"md5", "md5"},
    {"sha256", "sha256"},
});

class CondaEntry {
public:
    CondaEntry(const TomlFile& toml, std::string_view name, const toml::node& value)
        : toml_(toml), name_(lower(name)), value_(value) {}

    Result<CondaDependency> read() {
        if (name_.empty() || name_.find_first_not_of(of_conda_names) != name_.npos)
            return toml_.refuse(value_, "invalid name of a package: '" + printable_line(name_) + "'", {},
                                "The version is the value: `numpy = \">=1.26\"`.");
        if (const auto* version = value_.as_string()) {
            TRY(add("version", version->get()));
            return finish(with_attributes());
        }
        const auto* table = value_.as_table();
        if (table == nullptr)
            return toml_.refuse(value_, "'" + name_ + "' must be a version or a table", {},
                                "Write the version in quotes, as in `numpy = \"1.26.*\"`.");
        TRY(check_keys(*table));
        if (table->contains("url")) return read_url(*table);
        for (const auto& [key, of_spec] : keys_of_spec) {
            if (!table->contains(key)) continue;
            const auto text = TRY(toml_.text(*table, key));
            TRY(add(of_spec, text));
        }
        return finish(with_attributes());
    }

private:
    Status check_keys(const toml::table& table) const {
        for (const char* key : {"git", "path"})
            if (table.contains(key))
                return toml_.refuse(value_,
                                    "'" + name_ + "' must be built from source, which containerize cannot do",
                                    std::string("it has `") + key + "`",
                                    "Build it with `pixi build`, and give the resulting package: `url = "
                                    "\"FILE.conda\"`.");
        for (const char* key : {"extras", "flags", "when"})
            if (table.contains(key)) TRY(finish(name_ + "[" + key + "=x]")); // which says what to do instead
        return check_pixi_keys(toml_, table, "the entry of '" + name_ + "'",
                               {"version", "build", "build-number", "file-name", "channel", "subdir",
                                "license", "license-family", "md5", "sha256", "url"});
    }

    Status add(std::string_view key, const std::string& text) {
        const auto value = std::string(trimmed(text));
        if (key == "version" && value == "*") return {};
        const char quote = value.find('"') == value.npos ? '"' : '\'';
        if (value.find(quote) != value.npos || value.find('#') != value.npos)
            return toml_.refuse(value_, "invalid `" + std::string(key) + "` of '" + name_ + "'");
        attributes_ += (attributes_.empty() ? "" : ",") + std::string(key) + "=" + quote + value + quote;
        return {};
    }

    [[nodiscard]] std::string with_attributes() const {
        return attributes_.empty() ? name_ : name_ + "[" + attributes_ + "]";
    }

    /// A package at an address, with a checksum if there is one.
    Result<CondaDependency> read_url(const toml::table& table) {
        auto text = TRY(toml_.text(table, "url"));
        for (const auto& [key, value] : table)
            if (key != "url" && key != "md5" && key != "sha256")
                return toml_.refuse(value_,
                                    "'" + name_ + "' has both `url` and `" + printable_line(key.str()) + "`");
        if (!is_url(text)) text = fs::absolute(toml_.file().parent_path() / text).lexically_normal().string();
        for (const char* key : {"sha256", "md5"})
            if (const auto digest = TRY(toml_.text(table, key)); !digest.empty()) {
                text += "#" + digest;
                break;
            }
        auto found = TRY(finish(text));
        if (found.spec.url.empty() || found.spec.name != name_)
            return toml_.refuse(value_, "the `url` of '" + name_ + "' is not that of such a package",
                                without_credentials_within(text),
                                "Addresses of packages end in NAME-VERSION-BUILD.conda.");
        return found;
    }

    Result<CondaDependency> finish(const std::string& text) const {
        auto spec = conda::parse_match_spec(text);
        if (!spec) return toml_.refuse(value_, what_and_why(spec.error()), {}, spec.error().hint);
        if (spec->url.empty()) spec->text = spec->to_string();
        return CondaDependency{.spec = std::move(*spec), .where = toml_.where(value_)};
    }

    const TomlFile& toml_;
    std::string name_;
    const toml::node& value_;
    std::string attributes_; ///< of the match spec
};

class PipEntry {
public:
    PipEntry(const TomlFile& toml, std::string_view name, const toml::node& value)
        : toml_(toml), name_(name), value_(value) {}

    Result<Located> read() {
        if (!is_package_name(name_))
            return toml_.refuse(value_, "invalid name of a package: '" + printable_line(name_) + "'");
        const auto text = TRY(value_.is_string() ? versions(value_.as_string()->get()) : of_table());
        // An editable requirement is an option, whose value must not contain another one.
        constexpr std::string_view editable = "-e ";
        const auto plain = text.starts_with(editable) ? text.substr(editable.size()) : text;
        TRY(check_requirement_text(plain, toml_.where(value_)));
        return Located{.text = text, .where = toml_.where(value_)};
    }

private:
    Result<std::string> of_table() {
        const auto* table = value_.as_table();
        if (table == nullptr)
            return toml_.refuse(value_, "'" + name_ + "' must be a version or a table", {},
                                "Write it as `" + name_ + " = \">=1.26\"`.");
        TRY(check_keys(*table));
        auto requirement = TRY(from_source(*table));
        const auto markers = TRY(toml_.text(*table, "env-markers"));
        if (markers.empty()) return requirement;
        TRY(marker_at(markers, {}, toml_.where(value_)));
        return requirement + " ; " + markers;
    }

    Status check_keys(const toml::table& table) {
        TRY(check_pixi_keys(toml_, table, name_,
                            {"version", "extras", "index", "git", "rev", "tag", "branch", "subdirectory",
                             "path", "editable", "url", "env-markers"}));
        if (table.contains("index"))
            return toml_.refuse(value_, "'" + name_ + "' has an index of its own, which pip does not know",
                                {},
                                "Name the index in `extra-index-urls` of [pypi-options]. pip then takes the "
                                "best version of all indexes.");
        const auto sources = std::ranges::count_if(std::array{"version", "git", "path", "url"},
                                                   [&](const char* key) { return table.contains(key); });
        if (sources > 1)
            return toml_.refuse(value_, "'" + name_ + "' comes from several places", {},
                                "Keep one of `version`, `git`, `path` and `url`.");
        const auto extras = TRY(toml_.texts(table, "extras"));
        for (const auto& extra : extras)
            if (!is_package_name(extra))
                return toml_.refuse(value_, "invalid extra: '" + printable_line(extra) + "'");
        if (!extras.empty()) extras_ = "[" + joined(extras, ",") + "]";
        return {};
    }

    Result<std::string> from_source(const toml::table& table) {
        if (table.contains("git")) return of_git(table);
        if (table.contains("path")) return of_path(table);
        const auto url = TRY(toml_.text(table, "url"));
        if (!table.contains("url")) return versions(TRY(toml_.text(table, "version")));
        if (!is_url(url))
            return toml_.refuse(value_, "the `url` of '" + name_ + "' is no URL", {},
                                "For a file or a directory, write `path`.");
        return name_ + extras_ + " @ " + without_marker(url) + TRY(fragment(table));
    }

    Result<std::string> versions(const std::string& given) const {
        const auto text = std::string(trimmed(given));
        if (text.empty() || text == "*") return name_ + extras_;
        const bool is_condition = std::string_view("<>=!~").find(text.front()) != std::string_view::npos;
        if (is_condition && text.find_first_not_of(of_conditions) == text.npos) return name_ + extras_ + text;
        return toml_.refuse(value_, "invalid version of '" + name_ + "': '" + printable_line(text) + "'", {},
                            "Write it like `==1.26.4` or `>=1.26,<3`.");
    }

    /// "#subdirectory=DIRECTORY"; empty if it names none.
    Result<std::string> fragment(const toml::table& table, const std::string& before = {}) const {
        const auto directory = TRY(toml_.text(table, "subdirectory"));
        if (directory.empty()) return before;
        return before + (before.empty() ? "#" : "&") + "subdirectory=" + percent_encoded(directory, "/");
    }

    Result<std::string> of_git(const toml::table& table) {
        auto url = TRY(toml_.text(table, "git"));
        if (url.starts_with("git+")) url.erase(0, 4);
        if (!is_url(url) || url.find('#') != url.npos)
            return toml_.refuse(value_, "unsupported address of a git repository",
                                without_credentials_within(url),
                                "Give an address that begins with https:// or ssh://.");
        std::string revision;
        for (const char* key : {"rev", "tag", "branch"}) {
            const auto text = TRY(toml_.text(table, key));
            if (text.empty()) continue;
            if (!revision.empty() || text.find_first_not_of(of_revisions) != text.npos)
                return toml_.refuse(value_, "'" + name_ + "' needs one revision", {},
                                    "Keep one of `rev`, `tag` and `branch`.");
            revision = "@" + text;
        }
        // pip rejects "name @ git+file:///...", whose URL has no host.
        if (url.starts_with("file:"))
            return "git+" + without_marker(url) + revision + TRY(fragment(table, "#egg=" + name_ + extras_));
        return name_ + extras_ + " @ git+" + without_marker(url) + revision + TRY(fragment(table));
    }

    Result<std::string> of_path(const toml::table& table) {
        const auto path = TRY(toml_.text(table, "path"));
        const auto full = fs::absolute(toml_.file().parent_path() / path).lexically_normal();
        std::error_code failed;
        if (!fs::exists(full, failed))
            return toml_.refuse(value_, "there is no file or directory '" + printable_line(path) + "'", {},
                                "Paths are relative to the manifest.");
        const auto url = without_marker(file_url(full.string()));
        const auto* editable = table.get("editable");
        if (editable != nullptr && !editable->is_boolean())
            return toml_.refuse(*editable, "`editable` must be true or false");
        if (editable != nullptr && editable->as_boolean()->get()) return "-e " + url + extras_;
        return name_ + extras_ + " @ " + url + TRY(fragment(table));
    }

    const TomlFile& toml_;
    std::string name_;
    const toml::node& value_;
    std::string extras_; ///< "[a,b]"
};

/// Whether the value can stand in a line of options. Quotes and backslashes would be read by pip.
bool is_plain_url(std::string_view text) {
    return is_url(text) && text.find_first_of(" \t\"'\\") == text.npos;
}

} // namespace

Status check_pixi_keys(const TomlFile& toml, const toml::table& table, std::string_view name,
                       std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : table) {
        if (std::ranges::find(known, key.str()) != known.end()) continue;
        const auto similar =
            similar_names(std::vector<std::string>(known.begin(), known.end()), std::string(key.str()));
        return toml.refuse(value,
                           "`" + printable_line(key.str()) + "` is not a key that containerize knows in " +
                               printable_line(name),
                           {},
                           similar.empty() ? "Remove it, or give the pixi.lock."
                                           : "Did you mean `" + similar.front() + "`?");
    }
    return {};
}

Result<CondaDependency> pixi_conda_dependency(const TomlFile& toml, std::string_view name,
                                              const toml::node& value) {
    return CondaEntry(toml, name, value).read();
}

Result<Located> pixi_requirement(const TomlFile& toml, std::string_view name, const toml::node& value) {
    return PipEntry(toml, name, value).read();
}

Status PixiPipOptions::add(const toml::table& options, bool of_workspace) {
    TRY(check_pixi_keys(toml_, options, "[pypi-options]",
                        {"index-url", "extra-index-urls", "find-links", "no-build", "no-binary",
                         "prerelease-mode", "index-strategy", "no-build-isolation",
                         "skip-wheel-filename-check", "dependency-overrides"}));
    TRY(refuse_others(options));
    TRY(single(options, "index-url", index_, of_workspace));
    TRY(single(options, "prerelease-mode", prereleases_, of_workspace));
    TRY(check_requirement_text(index_.text, index_.where));
    if (!index_.text.empty() && !is_plain_url(index_.text))
        return fail_input("invalid address of an index", {}, index_.where,
                          "Give a URL, such as https://HOST/simple.");
    const auto& mode = prereleases_.text;
    if (!mode.empty() && mode != "allow" && mode != "if-necessary-or-explicit")
        return fail_input("pip has no counterpart of `prerelease-mode = \"" + printable_line(mode) + "\"`",
                          {}, prereleases_.where, "Leave it out, or write \"allow\".");
    TRY(indexes(options));
    TRY(links(options));
    TRY(formats(options, "no-build", "--only-binary"));
    return formats(options, "no-binary", "--no-binary");
}

Status PixiPipOptions::refuse_others(const toml::table& options) const {
    for (const char* key : {"no-build-isolation", "skip-wheel-filename-check", "dependency-overrides"}) {
        const auto* value = options.get(key);
        if (value == nullptr || (value->is_boolean() && !value->as_boolean()->get())) continue;
        return toml_.refuse(*value, std::string("`") + key + "` is not supported",
                            "a requirements file cannot say it",
                            "Remove it, or lock with `pixi lock`, and give the pixi.lock.");
    }
    const auto strategy = TRY(toml_.text(options, "index-strategy"));
    if (strategy.empty() || strategy == "unsafe-best-match") return {};
    return toml_.refuse(*options.get("index-strategy"),
                        "`index-strategy = \"" + printable_line(strategy) + "\"` is not supported",
                        "pip takes the best version of all indexes",
                        "Write \"unsafe-best-match\" if you accept that, or give the pixi.lock.");
}

Status PixiPipOptions::single(const toml::table& options, std::string_view key, Located& value,
                              bool of_workspace) const {
    const auto text = TRY(toml_.text(options, key));
    if (text.empty()) return {};
    const auto where = toml_.where(*options.get(key));
    const bool is_other_feature = !value.text.empty() && !of_workspace;
    if (is_other_feature && value.text != text)
        return fail_input("two features of this environment have another `" + std::string(key) + "`",
                          "the other one is in " + value.where, where, "Remove one of them.");
    if (value.text.empty()) value = {.text = text, .where = where};
    return {};
}

void PixiPipOptions::add_line(std::string text, std::string where) {
    if (std::ranges::find(lines_, text, &Located::text) == lines_.end())
        lines_.push_back({.text = std::move(text), .where = std::move(where)});
}

Status PixiPipOptions::indexes(const toml::table& options) {
    const auto* value = options.get("extra-index-urls");
    if (value == nullptr) return {};
    for (const auto* url : TRY(toml_.strings(*value, "extra-index-urls"))) {
        TRY(check_requirement_text(url->get(), toml_.where(*url)));
        if (!is_plain_url(url->get()))
            return toml_.refuse(*url, "invalid address of an index", {},
                                "Give a URL, such as https://HOST/simple.");
        add_line("--extra-index-url " + url->get(), toml_.where(*url));
    }
    return {};
}

Status PixiPipOptions::links(const toml::table& options) {
    for (const auto* link : TRY(toml_.tables(options, "find-links"))) {
        TRY(check_pixi_keys(toml_, *link, "`find-links`", {"path", "url"}));
        auto text = TRY(toml_.text(*link, "url"));
        if (!link->contains("url")) {
            const auto path = TRY(toml_.text(*link, "path"));
            text = fs::absolute(toml_.file().parent_path() / path).lexically_normal().string();
        } else if (!is_plain_url(text)) {
            return toml_.refuse(*link, "invalid address in `find-links`");
        }
        TRY(check_requirement_text(text, toml_.where(*link)));
        add_line("--find-links " + shell_quoted(text), toml_.where(*link));
    }
    return {};
}

/// `no-build` and `no-binary` are true, false, or a list of packages.
Status PixiPipOptions::formats(const toml::table& options, std::string_view key, std::string_view option) {
    const auto* value = options.get(key);
    if (value == nullptr) return {};
    if (const auto* all = value->as_boolean()) {
        if (all->get()) add_line(std::string(option) + " :all:", toml_.where(*value));
        return {};
    }
    for (const auto* name : TRY(toml_.strings(*value, key))) {
        if (!is_package_name(name->get()))
            return toml_.refuse(*name, "invalid name of a package: '" + printable_line(name->get()) + "'");
        add_line(std::string(option) + " " + name->get(), toml_.where(*name));
    }
    return {};
}

std::vector<Located> PixiPipOptions::lines() const {
    auto lines = lines_;
    if (!index_.text.empty())
        lines.insert(lines.begin(), {.text = "--index-url " + index_.text, .where = index_.where});
    if (prereleases_.text == "allow") lines.push_back({.text = "--pre", .where = prereleases_.where});
    return lines;
}

} // namespace containerize::spec
