#include "environments/lock_check.h"

#include "core/text.h"
#include "core/url.h"
#include "util/log.h"

#include <algorithm>
#include <cstring>
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

/// Without a login, and without the checksum that uv records.
std::string address_of(std::string_view url) {
    return without_credentials(url.substr(0, url.find('#')));
}

/// The form that all spellings of an address have in common: pip encodes more of a path than others do, and
/// uv normalises URLs.
std::string normal_address(std::string_view url) {
    auto address = address_of(url);
    const auto end = address.find("://");
    if (end == address.npos) return address;
    const auto scheme = lower(address.substr(0, end));
    if (scheme == "file")
        return "file://" + std::string(without_end_slash(file_url_path(scheme + address.substr(end))));
    auto host = url_host(address);
    for (const auto& [of_scheme, port] : {std::pair("https", ":443"), std::pair("http", ":80")})
        if (scheme == of_scheme && host.ends_with(port)) host.resize(host.size() - std::strlen(port));
    const auto path = std::min(address.find('/', end + 3), address.size());
    return scheme + "://" + host + std::string(without_end_slash("/" + url_decoded(address.substr(path))));
}

std::string difference(const LockedPackage& locked, const std::string& installed) {
    const auto name = locked.name.empty() ? address_of(locked.url) : locked.name;
    return "\n- " + name + ": the lock has " + description(locked.version, locked.build, locked.commit) +
           ", and " + installed + " is installed";
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

/// The normalised name; for a package of which the lock has only the URL, that of what came from there. Empty
/// if nothing did.
std::string name_of(const LockedPackage& locked, const CondaContents& installed) {
    if (!locked.name.empty()) return pip::normalised_name(locked.name);
    const auto found = std::ranges::find_if(installed.of_pip, [&](const pip::Distribution& one) {
        return one.origin && normal_address(one.origin->url) == normal_address(locked.url) &&
               one.origin->commit == locked.commit;
    });
    return found == installed.of_pip.end() ? "" : pip::normalised_name(found->name);
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
        const auto name = name_of(one, installed);
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

/// "1.0 from https://host/x.whl (commit 0123...)".
std::string description(const pip::Distribution& one) {
    if (!one.origin) return one.version;
    return one.version + " from " + address_of(one.origin->url) +
           (one.origin->commit.empty() ? "" : " (commit " + one.origin->commit + ")");
}

} // namespace

Status check_unchanged(const std::vector<pip::Distribution>& locked, const CondaContents& installed,
                       const std::string& file) {
    std::string text;
    for (const auto& one : locked) {
        const auto same_name = [name = pip::normalised_name(one.name)](const pip::Distribution& other) {
            return pip::normalised_name(other.name) == name;
        };
        const auto found = std::ranges::find_if(installed.of_pip, same_name);
        const bool is_there = found != installed.of_pip.end();
        if (is_there && found->version == one.version && found->origin == one.origin) continue;
        text += "\n- " + one.name + ": the lock has " + description(one) + ", and " +
                (is_there ? description(*found) : "nothing") + " is installed";
    }
    if (text.empty()) return {};
    return fail({.what = "these requirements change packages of the lock",
                 .why = std::move(text),
                 .where = file,
                 .hint = "Remove these packages from the requirements, or lock the environment with them."});
}

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
