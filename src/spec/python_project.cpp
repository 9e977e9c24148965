// Reads what Python projects (pyproject.toml) and scripts (PEP 723) depend on. These are no locks.
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/text_limits.h"
#include "util/toml_file.h"
#include "util/user_text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

/// The name at the start of a requirement; empty if there is none.
std::string_view name_of_requirement(std::string_view text) {
    const auto* const end = std::ranges::find_if_not(
        text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
    const auto name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    return is_package_name(name) ? name : std::string_view();
}

/// The extras in brackets after the name.
std::vector<std::string> extras_of_requirement(std::string_view text) {
    const auto open = text.find('[');
    const auto close = text.find(']');
    if (open == text.npos || close == text.npos || close < open) return {};
    return words_in(text.substr(open + 1, close - open - 1), ", \t");
}

/// Collects requirements as a file has them.
class ProjectReader {
public:
    ProjectReader(const TomlFile& toml, const LockChoice& choice) : toml_(toml), choice_(choice) {}

    Result<ConvertedFile> read_project() {
        const auto* project = TRY(toml_.table(toml_.root(), "project"));
        const auto* groups = TRY(toml_.table(toml_.root(), "dependency-groups"));
        if (project == nullptr && (groups == nullptr || choice_.groups.empty()))
            return fail_input(
                "this pyproject file lists no dependencies", "it has no table [project]",
                toml_.file().string(),
                "If it is a project of Poetry, give its poetry.lock. If it only has groups, choose "
                "one with --group.");
        TRY(check_parts(choice_.groups, names_in(groups), "--group", toml_.file()));
        if (project != nullptr)
            TRY(take_project(*project));
        else
            TRY(check_parts(choice_.extras, {}, "--extra", toml_.file()));
        for (const auto& group : choice_.groups)
            TRY(take_group(*groups, normalised_name(group)));
        return finish();
    }

    Result<ConvertedFile> read_script() {
        converted_.python = TRY(python_versions(toml_, toml_.root()));
        TRY(take_list(toml_.root(), "dependencies"));
        return finish();
    }

private:
    static std::vector<std::string> names_in(const toml::table* lists) {
        std::vector<std::string> names;
        if (lists != nullptr)
            for (const auto& [name, value] : *lists)
                names.emplace_back(name.str());
        return names;
    }

    Status take_project(const toml::table& project) {
        name_ = normalised_name(TRY(toml_.text(project, "name")));
        TRY(check_dynamic(project));
        converted_.python = TRY(python_versions(toml_, project));
        extras_ = TRY(toml_.table(project, "optional-dependencies"));
        TRY(take_list(project, "dependencies"));
        TRY(check_parts(choice_.extras, names_in(extras_), "--extra", toml_.file()));
        for (const auto& extra : choice_.extras)
            TRY(take_extra(normalised_name(extra)));
        return {};
    }

    /// A project may say that only its build knows what it depends on.
    Status check_dynamic(const toml::table& project) const {
        for (const auto& one : TRY(toml_.texts(project, "dynamic")))
            if (one == "dependencies" || (one == "optional-dependencies" && !choice_.extras.empty()))
                return toml_.refuse(
                    *project.get("dynamic"), "the `" + one + "` of this project are dynamic",
                    "only a build of the project knows them",
                    "Give a lock of the project, or list its directory in a requirements file: "
                    "`./PROJECT`.");
        return {};
    }

    Status take_list(const toml::table& parent, std::string_view key) {
        const auto* node = parent.get(key);
        if (node == nullptr) return {};
        TRY(toml_.texts(parent, key));
        for (const auto& one : *node->as_array())
            TRY(take(one.as_string()->get(), toml_.where(one)));
        return {};
    }

    Status take_extra(const std::string& extra) {
        if (extras_ == nullptr || !taken_extras_.insert(extra).second) return {};
        for (const auto& [name, list] : *extras_)
            if (normalised_name(name.str()) == extra) TRY(take_list(*extras_, name.str()));
        return {};
    }

    /// A requirement on the project itself stands for what its extras add.
    Status take(const std::string& text, const std::string& where) {
        const auto requirement = std::string(trimmed(text));
        TRY(check_requirement_text(requirement, where));
        const auto name = name_of_requirement(requirement);
        if (name.empty())
            return fail_input("invalid requirement: '" + printable_line(requirement.substr(0, 200)) + "'", {},
                              where,
                              "Write a package name and optional version conditions, such as "
                              "`numpy>=1.26,<3`.");
        if (normalised_name(name) == name_ && extras_ != nullptr) return take_own_extras(requirement, where);
        TRY(check_source(std::string(name), where));
        if (std::ranges::find(converted_.lines, requirement, &Located::text) == converted_.lines.end())
            converted_.lines.push_back({.text = requirement, .where = where});
        if (converted_.lines.size() > most_packages) return too_large(where, "50,000 requirements");
        return {};
    }

    Status take_own_extras(const std::string& requirement, const std::string& where) {
        if (requirement.find(';') != requirement.npos)
            return fail_input("the project depends on itself under a condition", {}, where,
                              "Move the condition to the requirements of the extra.");
        for (const auto& extra : extras_of_requirement(requirement)) {
            const auto names = names_in(extras_);
            const bool is_there = std::ranges::any_of(
                names, [&](const auto& one) { return normalised_name(one) == normalised_name(extra); });
            if (!is_there)
                return fail_input("this project has no extra '" + printable_line(extra) + "'", {}, where,
                                  "Correct the name.");
            TRY(take_extra(normalised_name(extra)));
        }
        return {};
    }

    /// uv takes some packages from elsewhere. A package of that name on PyPI may be another one.
    Status check_source(const std::string& name, const std::string& where) const {
        const auto* tool = toml_.root()["tool"]["uv"]["sources"].as_table();
        for (const auto& one : names_in(tool))
            if (normalised_name(one) == normalised_name(name))
                return fail_input("'" + name +
                                      "' comes from where [tool.uv.sources] says, which only uv reads",
                                  {}, where, "Lock it with `uv lock`, and give the uv.lock.");
        return {};
    }

    Status take_group(const toml::table& groups, const std::string& wanted) {
        for (const auto& [name, list] : groups) {
            if (normalised_name(name.str()) != wanted) continue;
            if (std::ranges::find(open_groups_, wanted) != open_groups_.end())
                return toml_.refuse(list, "the group '" + printable_line(name.str()) + "' includes itself",
                                    {}, "Remove one of the `include-group`.");
            if (!taken_groups_.insert(wanted).second) return {};
            const auto* items = list.as_array();
            if (items == nullptr)
                return toml_.refuse(list, "the group '" + printable_line(name.str()) + "' must be a list");
            open_groups_.push_back(wanted);
            for (const auto& item : *items)
                TRY(take_item(groups, item));
            open_groups_.pop_back();
            return {};
        }
        return {};
    }

    Status take_item(const toml::table& groups, const toml::node& item) {
        if (const auto* text = item.as_string()) return take(text->get(), toml_.where(item));
        const auto* include = item.as_table();
        if (include == nullptr || include->size() != 1 || !include->contains("include-group"))
            return toml_.refuse(item, "an item of a group must be a requirement or an `include-group`");
        const auto included = TRY(toml_.text(*include, "include-group"));
        const auto has = names_in(&groups);
        const bool is_there = std::ranges::any_of(
            has, [&](const auto& one) { return normalised_name(one) == normalised_name(included); });
        if (!is_there)
            return toml_.refuse(item, "there is no group '" + printable_line(included) + "' to include", {},
                                "Correct the name.");
        if (open_groups_.size() == most_groups)
            return toml_.refuse(item, "groups include one another too deeply");
        // Cycles must be found, though what a group has is taken only once.
        const auto name = normalised_name(included);
        if (std::ranges::find(open_groups_, name) == open_groups_.end() && taken_groups_.contains(name))
            return {};
        return take_group(groups, name);
    }

    Result<ConvertedFile> finish() {
        if (converted_.lines.empty())
            return fail_input("this file requires no package", {}, toml_.file().string());
        if (toml_.root()["tool"]["uv"]["index"].as_array() != nullptr)
            converted_.notes.emplace_back(
                "The indexes in [tool.uv] are not used. pip's configuration names the "
                "indexes, or a uv.lock.");
        return std::move(converted_);
    }

    static constexpr std::size_t most_groups = 100; ///< each takes stack space

    const TomlFile& toml_;
    const LockChoice& choice_;
    ConvertedFile converted_;
    std::string name_; ///< of the project, normalised
    const toml::table* extras_ = nullptr;
    std::set<std::string> taken_extras_, taken_groups_;
    std::vector<std::string> open_groups_; ///< each includes the next
};

/// The TOML in the comment of a script, and how many lines come before it.
struct Block {
    std::string text;
    std::size_t lines_before = 0;
};

Result<Block> block_of_script(std::string_view text, const fs::path& file) {
    const auto lines = split_lines(text);
    constexpr std::string_view start = "# /// script";
    constexpr std::string_view end = "# ///";
    const auto is_comment = [](std::string_view line) { return line == "#" || line.starts_with("# "); };
    const auto where = [&](std::size_t at) { return file.string() + ":" + std::to_string(at + 1); };
    Block block;
    bool found = false;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        if (trimmed(lines[at]) != start || lines[at].starts_with(' ')) continue;
        // The block ends at the last such line of the comment.
        std::size_t last = at;
        for (std::size_t next = at + 1; next < lines.size() && is_comment(lines[next]); ++next)
            if (lines[next] == end) last = next;
        if (last == at)
            return fail_input("the block of metadata in this script does not end", {}, where(at),
                              "End it with a line `# ///`.");
        if (found)
            return fail_input("this script has two blocks of metadata", {}, where(at), "Keep one of them.");
        found = true;
        block.lines_before = at + 1;
        for (std::size_t next = at + 1; next < last; ++next)
            block.text +=
                std::string(lines[next].substr(std::min<std::size_t>(2, lines[next].size()))) + "\n";
        at = last;
    }
    return block;
}

} // namespace

Result<ConvertedFile> read_pyproject(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return ProjectReader(toml, choice).read_project();
}

Result<ConvertedFile> read_script(const fs::path& file, const LockChoice& choice) {
    const auto content = TRY(read_input_file(file, largest_text));
    const auto text = TRY(decode(content, file));
    const auto block = TRY(block_of_script(text, file));
    const auto toml = TRY(TomlFile::parse(block.text, file, block.lines_before));
    return ProjectReader(toml, choice).read_script();
}

} // namespace containerize::spec
