#include "environments/lock_check.h"

#include "util/log.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace containerize::environments {

namespace {

using spec::LockedPackage;

/// "1.0 (py311_0)" or "1.0 (commit 0123...)".
std::string description(const std::string& version, const std::string& build, const std::string& commit) {
    std::string text = version.empty() ? "no version" : version;
    if (!build.empty()) text += " (" + build + ")";
    if (!commit.empty()) text += " (commit " + commit + ")";
    return text;
}

std::string difference(const LockedPackage& locked, const std::string& installed) {
    return "\n- " + locked.name + ": the lock has " +
           description(locked.version, locked.build, locked.commit) + ", and " + installed + " is installed";
}

std::string differences_of_conda(const std::vector<LockedPackage>& locked,
                                 const std::vector<conda::InstalledPackage>& installed) {
    std::string text;
    std::set<std::string> names;
    for (const auto& one : locked) {
        names.insert(one.name);
        const auto found = std::ranges::find_if(
            installed, [&](const conda::InstalledPackage& other) { return other.record.name == one.name; });
        if (found == installed.end())
            text += difference(one, "nothing");
        else if (found->record.version != one.version || found->record.build != one.build)
            text += difference(one, description(found->record.version, found->record.build, {}));
    }
    for (const auto& one : installed)
        if (!names.contains(one.record.name))
            text += "\n- " + one.record.name + " " + one.record.version + ": it is not in the lock";
    return text;
}

bool is_the_same(const LockedPackage& locked, const pip::Distribution& installed) {
    const auto commit = installed.origin ? installed.origin->commit : std::string();
    if (locked.commit != commit) return false;
    return locked.version.empty() ||
           pip::normalised_version(locked.version) == pip::normalised_version(installed.version);
}

std::string differences_of_pip(const std::vector<LockedPackage>& locked, const CondaContents& installed,
                               const std::vector<pip::Distribution>& before) {
    std::map<std::string, const pip::Distribution*> present, added;
    for (const auto* list : {&installed.of_conda, &installed.of_pip})
        for (const auto& one : *list)
            present[pip::normalised_name(one.name)] = &one;
    for (const auto& one : installed.of_pip)
        added.emplace(pip::normalised_name(one.name), &one);
    for (const auto& one : before)
        added.erase(pip::normalised_name(one.name));
    std::string text;
    for (const auto& one : locked) {
        const auto name = pip::normalised_name(one.name);
        added.erase(name);
        const auto found = present.find(name);
        if (found == present.end()) {
            text += difference(one, "nothing");
            continue;
        }
        const auto& there = *found->second;
        if (is_the_same(one, there)) continue;
        if (one.directory)
            log::info("Note: " + one.name + " is installed from its directory in the current version " +
                      there.version + ", and the lock has " + one.version + ".");
        else
            text += difference(
                one, description(there.version, {}, there.origin ? there.origin->commit : std::string()));
    }
    for (const auto& [name, one] : added)
        text += "\n- " + one->name + " " + one->version + ": it is not in the lock";
    return text;
}

} // namespace

Status check_against_lock(const spec::LockedEnvironment& locked, const CondaContents& installed,
                          const std::vector<pip::Distribution>& before, const std::string& file) {
    auto text = differences_of_conda(locked.of_conda, installed.packages);
    if (locked.of_pip) text += differences_of_pip(*locked.of_pip, installed, before);
    if (text.empty()) return {};
    return fail(
        {.what = "the installed packages differ from the lock",
         .why = std::move(text),
         .where = file,
         .hint = "Lock the environment again, because the packages do not match their entries in the file."});
}

} // namespace containerize::environments
